package redisstore

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"time"

	"github.com/topsail-serving/topsail/internal/adapter/stored"
	"github.com/topsail-serving/topsail/serving"
)

// keptReplies is how many replies there may be.
const keptReplies = 10_000

// claim is a reply that is not there yet, with a random name that tells it from others.
type claim struct {
	serving.Reply
	Claim string `json:"claim"`
}

// ClaimReply takes a name for a request that has not been answered, for ReplyClaimed.
// Where the name is taken it returns what is kept under it. It fails with
// ErrTooManyReplies while there are 10 000 names.
func (s *Store) ClaimReply(ctx context.Context, name, fingerprint string) (taken *serving.Reply, err error) {
	mine, err := json.Marshal(claim{serving.Reply{Fingerprint: fingerprint}, rand.Text()})
	if err != nil {
		return nil, fmt.Errorf("encode a claim: %w", err)
	}
	result, err := s.run(ctx, s.scripts.claim, []string{s.keys.reply(name), s.keys.replies},
		mine, serving.ReplyClaimed.Milliseconds(), keptReplies, time.Now().UnixMilli())
	if err != nil {
		return nil, fmt.Errorf("claim the name of a request: %w", err)
	}
	if answer := result.([]any); answer[0] == full {
		return nil, fmt.Errorf("claim the name of a request: %w", serving.ErrTooManyReplies)
	}
	return takenReply(result)
}

// takenReply is the reply that a script came upon, or nil.
func takenReply(result any) (*serving.Reply, error) {
	answer := result.([]any)
	if answer[0] == done {
		return nil, nil
	}
	return stored.DecodeReply([]byte(answer[1].(string)))
}

// KeepReply keeps the answer for ReplyKept, in place of the claim, or returns the one that is
// kept already. It fails where header and body have more than 1 MiB; the claim stays then.
func (s *Store) KeepReply(ctx context.Context, name string, reply serving.Reply) (taken *serving.Reply, err error) {
	text, err := stored.EncodeReply(reply)
	if err != nil {
		return nil, fmt.Errorf("keep a reply: %w", err)
	}
	result, err := s.settle(ctx, name, string(text))
	if err != nil {
		return nil, fmt.Errorf("keep a reply: %w", err)
	}
	return takenReply(result)
}

// DropReply frees a name that is claimed.
func (s *Store) DropReply(ctx context.Context, name string) error {
	if _, err := s.settle(ctx, name, ""); err != nil {
		return fmt.Errorf("drop a reply: %w", err)
	}
	return nil
}

func (s *Store) settle(ctx context.Context, name, text string) (result any, err error) {
	return s.run(ctx, s.scripts.reply, []string{s.keys.reply(name), s.keys.replies},
		text, serving.ReplyKept.Milliseconds(), time.Now().UnixMilli())
}

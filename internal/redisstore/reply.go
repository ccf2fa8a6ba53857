package redisstore

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"topsail/internal/stored"
	"topsail/serving"
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
	switch answer := result.([]any); answer[0] {
	case done:
		return nil, nil
	case full:
		return nil, fmt.Errorf("claim the name of a request: %w", serving.ErrTooManyReplies)
	default:
		return stored.DecodeReply([]byte(answer[1].(string)))
	}
}

// KeepReply keeps the answer for ReplyKept, in place of the claim. It fails where header
// and body have more than 1 MiB; the claim stays then.
func (s *Store) KeepReply(ctx context.Context, name string, reply serving.Reply) error {
	text, err := stored.EncodeReply(reply)
	if err != nil {
		return fmt.Errorf("keep a reply: %w", err)
	}
	key, due := s.keys.reply(name), time.Now().Add(serving.ReplyKept)
	err = s.replaceReply(ctx, func(ctx context.Context, p redis.Pipeliner) {
		p.ZAdd(ctx, s.keys.replies, redis.Z{Score: float64(due.UnixMilli()), Member: key})
		p.Set(ctx, key, text, serving.ReplyKept)
	})
	if err != nil {
		return fmt.Errorf("keep a reply: %w", err)
	}
	return nil
}

// DropReply frees a name.
func (s *Store) DropReply(ctx context.Context, name string) error {
	key := s.keys.reply(name)
	err := s.replaceReply(ctx, func(ctx context.Context, p redis.Pipeliner) {
		p.Del(ctx, key)
		p.ZRem(ctx, s.keys.replies, key)
	})
	if err != nil {
		return fmt.Errorf("drop a reply: %w", err)
	}
	return nil
}

// replaceReply runs commands as one step that may be repeated.
func (s *Store) replaceReply(ctx context.Context, commands func(context.Context, redis.Pipeliner)) error {
	return s.call(ctx, func(ctx context.Context) error {
		_, err := s.client.TxPipelined(ctx, func(p redis.Pipeliner) error {
			commands(ctx, p)
			return nil
		})
		return err
	})
}

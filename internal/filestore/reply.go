package filestore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.etcd.io/bbolt"

	"topsail/serving"
)

// errTaken ends a claim that has nothing to write.
var errTaken = errors.New("the name is taken")

// ClaimReply takes a name for a request that has not been answered, for ReplyClaimed.
// Where the name is taken it returns what is kept under it. It fails with
// ErrTooManyReplies while there are 10 000 names, or 128 MiB of replies.
func (s *Store) ClaimReply(ctx context.Context, name, fingerprint string) (taken *serving.Reply, err error) {
	now := time.Now()
	err = s.reply(ctx, now, func(r replies) error {
		if taken = r.live(nameHash(name), now); taken != nil {
			return errTaken
		}
		return r.put(nameHash(name), serving.Reply{Fingerprint: fingerprint}, now.Add(serving.ReplyClaimed))
	})
	if err != nil && !errors.Is(err, errTaken) {
		return nil, fmt.Errorf("claim the name of a request: %w", err)
	}
	return taken, nil
}

// KeepReply keeps the answer for ReplyKept, in place of the claim. It fails where header
// and body have more than 1 MiB, or with ErrTooManyReplies; the claim stays then.
func (s *Store) KeepReply(ctx context.Context, name string, reply serving.Reply) error {
	now := time.Now()
	err := s.reply(ctx, now, func(r replies) error { return r.put(nameHash(name), reply, now.Add(serving.ReplyKept)) })
	if err != nil {
		return fmt.Errorf("keep a reply: %w", err)
	}
	return nil
}

// DropReply frees a name.
func (s *Store) DropReply(ctx context.Context, name string) error {
	err := s.reply(ctx, time.Now(), func(r replies) error { return r.remove(nameHash(name)) })
	if err != nil {
		return fmt.Errorf("drop a reply: %w", err)
	}
	return nil
}

// reply changes the replies, all or nothing, after it has cleared some that have expired.
func (s *Store) reply(ctx context.Context, now time.Time, change func(replies) error) error {
	if err := s.lock(ctx); err != nil {
		return err
	}
	defer s.unlock()
	return s.db.Update(func(tx *bbolt.Tx) error {
		r, err := makeReplies(tx)
		if err != nil {
			return err
		}
		if err := r.clear(now); err != nil {
			return err
		}
		return change(r)
	})
}

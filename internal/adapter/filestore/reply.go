package filestore

import (
	"context"
	"fmt"
	"maps"
	"time"

	"github.com/topsail-serving/topsail/serving"
)

// claims are the requests that are being done, by the hashes of their names. They are in
// memory, as a request ends with its process.
type claims map[string]claim

type claim struct {
	fingerprint string
	until       time.Time
}

// ClaimReply takes a name for a request that has not been answered, for ReplyClaimed.
// Where the name is taken it returns what is kept under it. It fails with
// ErrTooManyReplies while there are 10 000 names, or 128 MiB of replies.
func (s *Store) ClaimReply(ctx context.Context, name, fingerprint string) (taken *serving.Reply, err error) {
	if err := s.lock(ctx); err != nil {
		return nil, fmt.Errorf("claim the name of a request: %w", err)
	}
	defer s.unlock()
	hash, now := nameHash(name), time.Now()
	maps.DeleteFunc(s.claims, func(_ string, c claim) bool { return !c.until.After(now) })
	room := true
	err = s.view(func(t *tx) error {
		r := readReplies(t)
		taken, room = r.live(hash, now), r.room(len(s.claims))
		return nil
	})
	if err == nil && taken == nil {
		if c, there := s.claims[string(hash)]; there {
			return &serving.Reply{Fingerprint: c.fingerprint}, nil
		}
		if !room {
			err = s.makeRoom(now)
		}
	}
	switch {
	case err != nil:
		return nil, fmt.Errorf("claim the name of a request: %w", err)
	case taken == nil:
		s.claims[string(hash)] = claim{fingerprint, now.Add(serving.ReplyClaimed)}
	}
	return taken, nil
}

// makeRoom makes room for one more reply, or fails.
func (s *Store) makeRoom(now time.Time) error {
	return s.update(func(t *tx) error {
		r, err := makeReplies(t)
		if err != nil {
			return err
		}
		if err := r.clear(now); err != nil {
			return err
		}
		if !r.room(len(s.claims)) {
			return serving.ErrTooManyReplies
		}
		return nil
	})
}

// KeepReply keeps the answer for ReplyKept, in place of the claim, or returns the one that is
// kept already. It fails where header and body have more than 1 MiB, or with
// ErrTooManyReplies; the claim stays then.
func (s *Store) KeepReply(ctx context.Context, name string, reply serving.Reply) (taken *serving.Reply, err error) {
	if err := s.lock(ctx); err != nil {
		return nil, fmt.Errorf("keep a reply: %w", err)
	}
	defer s.unlock()
	err = s.update(func(t *tx) (err error) {
		taken, err = keepReply(t, name, reply)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("keep a reply: %w", err)
	}
	delete(s.claims, string(nameHash(name)))
	return taken, nil
}

// DropReply frees a name that is claimed.
func (s *Store) DropReply(ctx context.Context, name string) error {
	if err := s.lock(ctx); err != nil {
		return fmt.Errorf("drop a reply: %w", err)
	}
	defer s.unlock()
	delete(s.claims, string(nameHash(name)))
	return nil
}

// addReply keeps the reply of a change, if there is one.
func addReply(t *tx, reply *serving.NamedReply) error {
	if reply == nil {
		return nil
	}
	taken, err := keepReply(t, reply.Name, reply.Reply)
	if taken != nil {
		return serving.ErrReplied
	}
	return err
}

// keepReply keeps a reply, unless there is one; then it returns that.
func keepReply(t *tx, name string, reply serving.Reply) (taken *serving.Reply, err error) {
	now := time.Now()
	r, err := makeReplies(t)
	if err != nil {
		return nil, err
	}
	if err := r.clear(now); err != nil {
		return nil, err
	}
	if taken = r.live(nameHash(name), now); taken != nil {
		return taken, nil
	}
	return nil, r.put(nameHash(name), reply, now.Add(serving.ReplyKept))
}

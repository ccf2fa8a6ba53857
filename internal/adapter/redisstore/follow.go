package redisstore

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/topsail-serving/topsail/internal/retry"
)

// follow publishes what others write, as soon as the log of changes says that there
// is something, and looks every blockFor in any case: a flush makes no change.
func (s *Store) follow(ctx context.Context) {
	log := s.tail(ctx, s.keys.log)
	defer log.close()
	for ctx.Err() == nil {
		newest, err := s.look(ctx)
		s.applyRemedy(ctx)
		if err == nil {
			_, err = log.after(ctx, newest)
		}
		if err != nil {
			retry.Sleep(ctx, retryAfter())
		}
	}
}

// look refreshes, and returns the id of the newest change in the log. An alarm is
// no reason not to wait for the next change.
func (s *Store) look(ctx context.Context) (newest string, err error) {
	if err := s.lock(ctx); err != nil {
		return "", err
	}
	defer s.unlock()
	r, err := s.refreshLocked(ctx)
	if r == nil {
		return "", err
	}
	return r.newest, nil
}

// refresh publishes what is in Redis.
func (s *Store) refresh(ctx context.Context) error {
	if err := s.lock(ctx); err != nil {
		return err
	}
	defer s.unlock()
	_, err := s.refreshLocked(ctx)
	return err
}

// refreshLocked is refresh for a caller that has the lock. With an alarm there is a
// reading, too.
func (s *Store) refreshLocked(ctx context.Context) (*reading, error) {
	r, err := s.read(ctx, s.current.Load().at)
	if err == nil {
		err = s.take(r)
	}
	if ctx.Err() == nil {
		s.note(err)
	}
	return r, err
}

// take publishes what was read, unless it is known or must not be followed.
func (s *Store) take(r *reading) error {
	if r.same {
		s.confirm()
		return nil
	}
	known := s.current.Load().at
	if err := r.follows(known); err != nil {
		return err
	}
	if r.at == known {
		s.confirm()
		return nil
	}
	cat, err := r.catalog()
	if err != nil {
		return err
	}
	s.publish(newSnapshot(cat, r.at, r.epochHistory))
	return nil
}

// retryAfter keeps processes that lost Redis at the same time from retrying at the same time.
func retryAfter() time.Duration {
	return 200*time.Millisecond + rand.N(200*time.Millisecond)
}

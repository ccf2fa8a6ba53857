package redisstore

import (
	"context"

	"github.com/topsail-serving/topsail/serving"
)

// snapshot is a catalog, its place in the history that Redis keeps, and the news
// that there is a newer one.
type snapshot struct {
	catalog      *serving.Catalog
	at           position
	epochHistory epochHistory
	unread       bool          // it stands for a catalog that has not been read yet
	superseded   chan struct{} // closed after the next snapshot has been stored
}

func newSnapshot(cat *serving.Catalog, at position, l epochHistory) *snapshot {
	return &snapshot{catalog: cat, at: at, epochHistory: l, superseded: make(chan struct{})}
}

// unreadSnapshot stands in until there is a catalog.
func unreadSnapshot() *snapshot {
	s := newSnapshot(&serving.Catalog{Apps: map[string]*serving.App{}, Models: map[string]*serving.Model{}}, position{}, nil)
	s.unread = true
	return s
}

// confirm publishes what is there, now that it is known to be what Redis holds. It
// needs the lock.
func (s *Store) confirm() {
	if now := s.current.Load(); now.unread {
		s.publish(newSnapshot(now.catalog, now.at, now.epochHistory))
	}
}

// publish needs the lock.
func (s *Store) publish(next *snapshot) {
	old := s.current.Swap(next)
	close(old.superseded)
}

// Watch calls fn with the current catalog at once and then with newer ones, until
// ctx ends; it returns why ctx ended. While there is no catalog at all, because Redis
// has not been reached and no file has one, it waits for the first. It calls fn from the caller's goroutine, one
// call at a time, and skips catalogs that are superseded while fn runs, but never
// the newest. What others change comes while Run runs.
func (s *Store) Watch(ctx context.Context, fn func(*serving.Catalog)) error {
	for ctx.Err() == nil {
		now := s.current.Load()
		if !now.unread {
			fn(now.catalog)
		}
		select {
		case <-now.superseded:
		case <-ctx.Done():
		}
	}
	return context.Cause(ctx)
}

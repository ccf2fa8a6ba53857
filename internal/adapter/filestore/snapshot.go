package filestore

import (
	"context"

	"github.com/topsail-serving/topsail/serving"
)

// snapshot is a catalog and the news that there is a newer one.
type snapshot struct {
	catalog    *serving.Catalog
	superseded chan struct{} // closed after the next snapshot has been stored
}

func newSnapshot(cat *serving.Catalog) *snapshot {
	return &snapshot{catalog: cat, superseded: make(chan struct{})}
}

// publish needs the write lock.
func (s *Store) publish(cat *serving.Catalog) {
	old := s.current.Swap(newSnapshot(cat))
	close(old.superseded)
}

// Watch calls fn with the current catalog at once and then with newer ones, until
// ctx ends; it returns why ctx ended. It calls fn from the caller's goroutine, one
// call at a time, and skips catalogs that are superseded while fn runs, but never
// the newest.
func (s *Store) Watch(ctx context.Context, fn func(*serving.Catalog)) error {
	for ctx.Err() == nil {
		now := s.current.Load()
		fn(now.catalog)
		select {
		case <-now.superseded:
		case <-ctx.Done():
		}
	}
	return context.Cause(ctx)
}

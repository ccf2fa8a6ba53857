package redisstore

import (
	"context"
	"errors"
	"fmt"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/serving/catalog"
)

// ErrNotLost says that there is nothing to restore or accept.
var ErrNotLost = errors.New("nothing to do: redis holds all that this process knows")

// Restore writes the last good catalog of this process back to a Redis that was
// flushed or restored from an old copy, whatever it holds. It begins a new epoch
// that every process follows, save one that knows a later revision than this one
// did: that one keeps its alarm, and Restore there wins. It fails with ErrNotLost
// where there is no alarm to end.
func (s *Store) Restore(ctx context.Context) (*serving.Catalog, error) {
	return s.resolve(ctx, func(known *snapshot, r *reading) (*snapshot, commit, error) {
		upTo := known.at.Revision
		if r.at.Epoch == known.at.Epoch {
			upTo = max(upTo, r.at.Revision)
		}
		cat := *known.catalog
		docs, err := catalog.Diff(&serving.Catalog{}, &cat)
		return begin(&cat, known, r, upTo), commit{clear: true, fields: documentFields(docs), usage: s.usageKeys(docs)}, err
	})
}

// Accept declares that what is in Redis is right, nothing included. It begins a new
// epoch that every process follows which knows the catalog of this process, at
// whatever revision. It fails with ErrNotLost where there is no alarm to end.
func (s *Store) Accept(ctx context.Context) (*serving.Catalog, error) {
	return s.resolve(ctx, func(known *snapshot, r *reading) (*snapshot, commit, error) {
		cat, err := r.catalog()
		if err != nil {
			return nil, commit{}, err
		}
		return begin(cat, known, r, 0), commit{clear: r.at.Epoch == ""}, nil
	})
}

// resolve ends an ErrLost with the snapshot that settle makes of what is known and
// what is in Redis.
func (s *Store) resolve(ctx context.Context, settle func(*snapshot, *reading) (*snapshot, commit, error)) (*serving.Catalog, error) {
	if err := s.lock(ctx); err != nil {
		return nil, fmt.Errorf("wait to write: %w", err)
	}
	defer s.unlock()
	for {
		r, err := s.refreshLocked(ctx)
		if err == nil {
			return nil, ErrNotLost
		}
		if !errors.Is(err, ErrLost) {
			return nil, err
		}
		next, c, err := settle(s.current.Load(), r)
		if err != nil {
			return nil, err
		}
		epochHistory, err := next.epochHistory.fields()
		if err != nil {
			return nil, err
		}
		c.fields = append(c.fields, epochHistory...)
		outcome, err := s.commit(ctx, r.at, next.at, c)
		if err != nil {
			return nil, fmt.Errorf("write revision %d: %w", next.at.Revision, err)
		}
		if outcome == done {
			s.publish(next)
			s.note(nil)
			return next.catalog, nil
		}
	}
}

// begin is the snapshot that begins an epoch with cat, at a revision that is higher
// than all before.
func begin(cat *serving.Catalog, known *snapshot, r *reading, upTo uint64) *snapshot {
	cat.Revision = max(known.at.Revision, r.at.Revision) + 1
	at := newEpoch(cat.Revision)
	return newSnapshot(cat, at, join(known, r, at.Epoch, upTo))
}

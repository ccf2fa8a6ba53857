package change

import (
	"context"
	"errors"
	"fmt"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/serving/catalog"
)

// Store holds the catalog.
type Store interface {
	Catalog() *serving.Catalog
	// Apply is catalog.Apply, made durable.
	Apply(ctx context.Context, change catalog.Change, ifRevision uint64) (*serving.Catalog, error)
}

// Writer serializes the changes of a store's catalog by requests of this process, so that they do
// not conflict.
type Writer struct {
	store Store
	lock  chan struct{} // holds a token while a request changes the catalog
}

// New makes the writer of a store.
func New(store Store) *Writer { return &Writer{store: store, lock: make(chan struct{}, 1)} }

// Plan says what is to be changed in a catalog. It may be asked several times, of
// catalogs ever newer, and writes to none of them.
type Plan func(*serving.Catalog) ([]catalog.Change, error)

// Make makes the changes that plan wants, by an author: all as one revision or, where one of
// them is refused, none. It returns the catalog that was planned on and the one that came of
// it. Where another process is quicker, plan is called again, until ctx ends.
func (t *Writer) Make(ctx context.Context, by serving.Author, plan Plan) (before, after *serving.Catalog, err error) {
	done, err := t.Lock(ctx)
	if err != nil {
		return nil, nil, err
	}
	defer done()
	for {
		before = t.store.Catalog()
		after, err = t.make(ctx, by, before, plan)
		switch {
		case err == nil:
			return before, after, nil
		case !errors.Is(err, catalog.ErrConflict):
			return nil, nil, err
		case ctx.Err() != nil:
			return nil, nil, fmt.Errorf("other clients kept changing the catalog: %w", context.Cause(ctx))
		}
	}
}

// make makes the changes on paper first, and the same of the catalog if that is as before.
func (t *Writer) make(ctx context.Context, by serving.Author, before *serving.Catalog, plan Plan) (*serving.Catalog, error) {
	changes, err := plan(before)
	if err != nil {
		return nil, err
	}
	after, err := DryRun(before, by, changes)
	if err != nil || after == before {
		return after, err
	}
	signed := catalog.Signed{Change: catalog.Outcome{After: after}, By: by}
	return t.store.Apply(ctx, signed, before.Revision)
}

// Lock waits for the catalog, which lasts until done is called. Nothing else of this process
// changes the catalog meanwhile.
func (t *Writer) Lock(ctx context.Context) (done func(), err error) {
	select {
	case t.lock <- struct{}{}:
		return func() { <-t.lock }, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("wait for other changes: %w", context.Cause(ctx))
	}
}

// DryRun makes changes on paper, by an author.
func DryRun(cat *serving.Catalog, by serving.Author, changes []catalog.Change) (*serving.Catalog, error) {
	return catalog.Apply(cat, catalog.Signed{Change: catalog.All(changes), By: by}, 0)
}

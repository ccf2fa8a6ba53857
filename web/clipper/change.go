package clipper

import (
	"context"
	"errors"
	"fmt"

	"topsail/serving"
	"topsail/serving/catalog"
)

// refusal is a sentence that says why a request is refused.
type refusal string

func (r refusal) Error() string { return string(r) }

func refused(format string, args ...any) error { return refusal(fmt.Sprintf(format, args...)) }

// change makes the changes that plan wants on a catalog, all or, where one of them is
// refused, none. Requests take turns here; where another process is quicker, plan is
// asked again on the catalog as it is then.
func (a *admin) change(ctx context.Context, plan func(*serving.Catalog) ([]catalog.Change, error)) error {
	select {
	case a.turn <- struct{}{}:
		defer func() { <-a.turn }()
	case <-ctx.Done():
		return fmt.Errorf("wait for other changes: %w; send it again", context.Cause(ctx))
	}
	for {
		cat := a.store.Catalog()
		changes, err := plan(cat)
		if err == nil {
			err = a.apply(ctx, cat, changes)
		}
		if !errors.Is(err, catalog.ErrConflict) {
			return err
		}
	}
}

// apply tries the changes on paper first. Only the first one depends on cat; the
// others fail by themselves where somebody came between.
func (a *admin) apply(ctx context.Context, cat *serving.Catalog, changes []catalog.Change) (err error) {
	next := cat
	for _, c := range changes {
		if next, err = catalog.Apply(next, c, 0); err != nil {
			return err
		}
	}
	revision := cat.Revision
	for _, c := range changes {
		if _, err = a.store.Apply(ctx, c, revision); err != nil {
			return err
		}
		revision = 0
	}
	return nil
}

// one is the plan of a single change.
func one(c catalog.Change) []catalog.Change { return []catalog.Change{c} }

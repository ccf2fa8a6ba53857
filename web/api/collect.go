package api

import (
	"context"
	"errors"
	"slices"
	"time"
)

// Unused remembers since when bundles have had no user, for all processes together.
type Unused interface {
	// UnusedBundles takes those that have none now, and returns since when each of them has
	// been seen without one. All others are forgotten.
	UnusedBundles(ctx context.Context, digests []string) (map[string]time.Time, error)
}

// Collect deletes the bundles that no version has used for that long. Several processes may
// do it at a time. It returns those that are gone.
func (a *API) Collect(ctx context.Context, unused Unused, keep time.Duration) (gone []string, err error) {
	digests, err := a.api.unusedBundles(ctx)
	if err != nil {
		return nil, err
	}
	since, err := unused.UnusedBundles(ctx, digests)
	if err != nil {
		return nil, err
	}
	var errs []error
	for _, digest := range digests {
		if at, seen := since[digest]; !seen || a.api.Now().Sub(at) < keep {
			continue
		}
		deleted, err := a.api.deleteUnused(ctx, digest)
		errs = append(errs, err)
		if deleted {
			gone = append(gone, digest)
		}
	}
	return gone, errors.Join(errs...)
}

// unusedBundles reads the list before the catalog, so that what is registered just now with
// a bundle that is new counts.
func (a *api) unusedBundles(ctx context.Context) ([]string, error) {
	digests, err := a.Artifacts.List(ctx)
	if err != nil {
		return nil, err
	}
	users := view{cat: a.Store.Catalog()}.users()
	return slices.DeleteFunc(digests, func(digest string) bool { return len(users[digest]) > 0 }), nil
}

// deleteUnused keeps others of this process from registering a version of the bundle
// meanwhile.
func (a *api) deleteUnused(ctx context.Context, digest string) (bool, error) {
	done, err := a.writer.Lock(ctx)
	if err != nil {
		return false, err
	}
	defer done()
	if len(view{cat: a.Store.Catalog()}.users()[digest]) > 0 {
		return false, nil
	}
	if err := a.Artifacts.Delete(ctx, digest); errors.Is(err, ErrNoBundle) {
		return false, nil // another process was quicker
	} else if err != nil {
		return false, err
	}
	return true, nil
}

package gateway

import (
	"context"
	"errors"
	"fmt"

	"github.com/topsail-serving/topsail/serving"
)

// forgetAtOnce is how many states are read at a time.
const forgetAtOnce = 1000

// StateStore holds the states of policies; it may lay them aside.
type StateStore interface {
	LoadState(ctx context.Context, key serving.StateKey) (text []byte, revision uint64, err error)
	SetStateAside(ctx context.Context, key serving.StateKey, revision uint64, why string) (as string, err error)
	StatesOf(ctx context.Context, app string, limit int) ([]serving.StateKey, error)
}

// Forget sets aside what the policy of an app has learned for a user and a context, or,
// where both are empty, all that it has learned. Gateways begin anew within a second
// or two. It fails with serving.ErrUnknownApp where there is no such app.
func Forget(ctx context.Context, store StateStore, cat *serving.Catalog, app, user, about string) error {
	spec := cat.Apps[app]
	if spec == nil {
		return fmt.Errorf("app %q: %w", app, serving.ErrUnknownApp)
	}
	if user != "" || about != "" {
		return setAside(ctx, store, serving.StateKey{App: app, Kind: spec.Policy.KindName(), User: user, Context: about})
	}
	for {
		keys, err := store.StatesOf(ctx, app, forgetAtOnce)
		if err != nil || len(keys) == 0 {
			return err
		}
		for _, key := range keys {
			if err := setAside(ctx, store, key); err != nil {
				return err
			}
		}
		if len(keys) < forgetAtOnce {
			return nil
		}
	}
}

// setAside begins again where a gateway stores the state meanwhile.
func setAside(ctx context.Context, store StateStore, key serving.StateKey) error {
	for {
		text, revision, err := store.LoadState(ctx, key)
		if err != nil || text == nil {
			return err
		}
		if _, err = store.SetStateAside(ctx, key, revision, "forgotten by request"); !errors.Is(err, serving.ErrStateConflict) {
			return err
		}
	}
}

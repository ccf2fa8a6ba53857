package state

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/topsail-serving/topsail/gateway/selection"
	"github.com/topsail-serving/topsail/internal/obs"
)

// ForReading are states to explain, which learn nothing: a state that is corrupt is logged and
// counted in corrupt as it is where it answers queries.
func ForReading(store Store, log *slog.Logger, corrupt obs.Counter) *States {
	s := New(store, log, obs.NewRegistry())
	s.metrics.corrupt = corrupt
	return s
}

// Explain reads the state that a user in a context has now, fitted to the app, and says
// how its models stand in it, in the order of the state's.
func (s *States) Explain(ctx context.Context, a *App, user, context string) (*selection.State, []selection.Standing, error) {
	state := a.fresh
	for key, ok := a.key(user, context), true; ok; key, ok = parent(key) {
		k, err := s.fetch(ctx, s.entry(key))
		if err != nil {
			return nil, nil, err
		}
		if k.state == nil {
			continue
		}
		if state, err = a.fit(k.state, false, time.Now()); err != nil {
			return nil, nil, fmt.Errorf("explain the policy of app %q: %w", a.name, err)
		}
		break
	}
	standings, err := a.explain(state)
	if err != nil {
		return nil, nil, fmt.Errorf("explain the policy of app %q: %w", a.name, err)
	}
	return state, standings, nil
}

func (a *App) explain(s *selection.State) (_ []selection.Standing, err error) {
	defer recovered(&err, "explain itself")
	return a.learner.Explain(s), nil
}

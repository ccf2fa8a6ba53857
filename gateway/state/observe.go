package state

import (
	"context"
	"time"

	"topsail/gateway/selection"
)

// Observe tells a policy that is an Observer how asking went at this gateway since the
// last time, and returns when it is stored; other policies ignore it. Without tallies
// it only makes sure that the app has a state, which then knows when it began.
func (s *States) Observe(ctx context.Context, a *App, tallies []selection.Tally) error {
	observer, ok := a.learner.(selection.Observer)
	if !ok {
		return nil
	}
	key := a.key("", "")
	if len(tallies) == 0 {
		if k, err := s.recent(ctx, s.entry(key)); err != nil || k.state != nil {
			return err
		}
	}
	j := s.submit(ctx, a, key, func(_ *App, state *selection.State) (*selection.State, error) {
		if next := observer.Observe(state, tallies, time.Now()); next != state {
			return next, nil
		}
		return nil, nil
	})
	return s.await(ctx, j)
}

package state

import (
	"context"
	"strings"
	"time"

	"github.com/topsail-serving/topsail/gateway/selection"
)

// Observe tells a policy that is an Observer how asking went at this gateway since the
// last time, and returns when it is stored; other policies ignore it. Without tallies
// it only makes sure that the app's state has begun. It logs what the policy has to
// say of its models, whichever gateway found it out.
func (s *States) Observe(ctx context.Context, a *App, tallies []selection.Tally) error {
	observer, ok := a.learner.(selection.Observer)
	if !ok {
		return nil
	}
	key := a.key("", "")
	e := s.entry(key)
	if _, err := s.recent(ctx, e); err != nil {
		return err
	}
	j := s.submit(ctx, a, key, func(_ *App, state *selection.State) (*selection.State, error) {
		if next := observer.Observe(state, tallies, time.Now()); next != state {
			return next, nil
		}
		return nil, nil
	})
	// Not with ctx: it must be known whether the tallies are stored, or they would count twice.
	if err := s.await(context.WithoutCancel(ctx), j); err != nil {
		return err
	}
	s.announce(a, e)
	return nil
}

// announce logs the note of a state when it is new here.
func (s *States) announce(a *App, e *entry) {
	k := e.kept.Load()
	if k == nil || k.state == nil {
		return
	}
	if note := strings.TrimSpace(k.state.Note); e.tell(note) && note != "" {
		s.log.Warn("a model version on trial was withdrawn, and stays so until the app's policy names another", "app", a.name, "reason", note)
	}
}

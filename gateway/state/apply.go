package state

import (
	"context"
	"fmt"

	"github.com/topsail-serving/topsail/gateway/selection"
	"github.com/topsail-serving/topsail/serving"
)

// apply makes the changes of a batch, each on top of the others. The text is nil when
// there is nothing to store. A change that fails is left out and fails alone.
func apply(a *App, s *selection.State, batch []*job) (next *selection.State, text []byte, err error) {
	for _, check := range []bool{false, true} { // a second time to find the change that made a state which cannot be stored
		if next = applyEach(a, s, batch, check); next == s {
			return s, nil, nil
		}
		if text, err = encode(next); err == nil {
			return next, text, nil
		}
	}
	return s, nil, err
}

func applyEach(a *App, s *selection.State, batch []*job, check bool) *selection.State {
	for _, j := range batch {
		next, err := j.call(a, s)
		if err == nil && next != nil && check {
			_, err = encode(next)
		}
		j.err, j.changed = err, err == nil && next != nil
		if j.changed {
			s = next
		}
	}
	return s
}

func (j *job) call(a *App, s *selection.State) (_ *selection.State, err error) {
	if j.ctx.Err() != nil {
		return nil, context.Cause(j.ctx) // a policy may take its time, and no caller waits any more
	}
	defer recovered(&err, "learn")
	return j.change(a, s)
}

func encode(s *selection.State) ([]byte, error) {
	text, err := s.Encode()
	if err == nil {
		err = serving.CheckState(text)
	}
	if err != nil {
		return nil, fmt.Errorf("the policy made a state that cannot be stored: %w", err)
	}
	return text, nil
}

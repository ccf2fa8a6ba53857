package state

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/topsail-serving/topsail/gateway/selection"
	"github.com/topsail-serving/topsail/internal/retry"
	"github.com/topsail-serving/topsail/serving"
)

// maxConflictWait bounds the pause after a conflict.
const maxConflictWait = 64 * time.Millisecond

// commit takes entries with jobs, one batch at a time.
func (s *States) commit(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case e := <-s.commits:
			s.commitBatch(ctx, e, e.take())
			if e.leave() {
				s.commits <- e
			}
		}
	}
}

// commitBatch stores what a batch changes. When the state changed meanwhile, it begins
// anew, as long as a caller waits for it.
func (s *States) commitBatch(ctx context.Context, e *entry, batch []*job) {
	k := e.kept.Load()
	for backOff := time.Millisecond; ; backOff = min(2*backOff, maxConflictWait) {
		batch = s.awaited(batch)
		if len(batch) == 0 {
			return
		}
		err := s.try(ctx, e, k, batch)
		if !errors.Is(err, serving.ErrStateConflict) {
			s.endAll(batch, err)
			return
		}
		s.metrics.conflicts.Inc()
		retry.Sleep(ctx, rand.N(backOff))
		k = nil
	}
}

// awaited ends the jobs that no caller waits for any more, and returns the others.
func (s *States) awaited(batch []*job) []*job {
	return slices.DeleteFunc(batch, func(j *job) bool {
		if j.ctx.Err() == nil {
			return false
		}
		s.end(j, context.Cause(j.ctx))
		return true
	})
}

func (s *States) endAll(batch []*job, err error) {
	for _, j := range batch {
		s.end(j, err)
	}
}

// try makes the next state of k, or of what the store has if that is nil, and stores it.
func (s *States) try(ctx context.Context, e *entry, k *kept, batch []*job) (err error) {
	if k == nil {
		if k, err = s.fetch(ctx, e); err != nil {
			return err
		}
	}
	a := batch[len(batch)-1].app
	state, err := s.beginning(ctx, a, e, k)
	if err != nil {
		return err
	}
	state, text, err := apply(a, state, batch)
	if text == nil {
		return err
	}
	return s.swap(ctx, e, k, a, &kept{state: state, bytes: len(text)}, text)
}

// beginning is the state that a batch changes, fitted to its app: k's, or that of the
// nearest parent.
func (s *States) beginning(ctx context.Context, a *App, e *entry, k *kept) (*selection.State, error) {
	if k.state != nil {
		// Gateways hear of a new version at different times, and each move costs
		// certainty. So each moves a state once, and leaves it where others moved it.
		return a.fit(k.state, slices.Equal(e.moved, a.models), time.Now())
	}
	for key, ok := parent(e.key); ok; key, ok = parent(key) {
		above, err := s.recent(ctx, s.entry(key))
		if err != nil {
			return nil, err
		}
		if above.state != nil {
			begun := *above.state
			begun.Trained = nil
			return a.fit(&begun, false, time.Now())
		}
	}
	return a.fresh, nil
}

// recent is what the store has, or had about a second ago.
func (s *States) recent(ctx context.Context, e *entry) (*kept, error) {
	if k := e.kept.Load(); k != nil && s.now() < e.due.Load() {
		return k, nil
	}
	return s.fetch(ctx, e)
}

// swap replaces k in the store by next.
func (s *States) swap(ctx context.Context, e *entry, k *kept, a *App, next *kept, text []byte) (err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	next.revision, err = s.store.SwapState(ctx, e.key, k.revision, text)
	if err != nil {
		return unavailable("store", e.key, err)
	}
	s.metrics.swaps.Inc()
	e.moved = a.models
	s.keep(e, next)
	return nil
}

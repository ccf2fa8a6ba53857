package state

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/topsail-serving/topsail/gateway/selection"
	"github.com/topsail-serving/topsail/serving"
)

const (
	refreshEvery = time.Second     // for states that are asked for
	maxRetryWait = 5 * time.Second // between readings that fail
	patience     = 5 * time.Second // with one call of the store, which has its own limits
)

// schedule has an entry read if it is due. When too many wait already, the next query
// tries again.
func (s *States) schedule(e *entry, now int64) {
	if now < e.due.Load() || e.queued.Load() || !e.queued.CompareAndSwap(false, true) {
		return
	}
	queue := s.refreshes
	if e.kept.Load() == nil {
		queue = s.loads // those that nothing is known of do not stand behind those
	}
	select {
	case queue <- e:
	default:
		e.queued.Store(false)
	}
}

func (s *States) load(ctx context.Context, queue <-chan *entry) {
	for {
		select {
		case <-ctx.Done():
			return
		case e := <-queue:
			_, _ = s.fetch(ctx, e) // the metrics and the log have it
			e.queued.Store(false)
		}
	}
}

// fetch reads a state. A state that was stored from here in the meantime stays: it is
// the newer one. The error is serving.ErrStateConflict when it changed under the hand.
func (s *States) fetch(ctx context.Context, e *entry) (*kept, error) {
	before := e.kept.Load()
	k, err := s.read(ctx, e.key, before)
	s.settle(ctx, e, err)
	if err != nil {
		return nil, unavailable("read", e.key, err)
	}
	if k != before && e.kept.CompareAndSwap(before, k) {
		s.weigh(e, before, k)
	}
	return k, nil
}

func (s *States) read(ctx context.Context, key serving.StateKey, before *kept) (*kept, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	s.metrics.loads.Inc()
	text, revision, err := s.store.LoadState(ctx, key)
	switch {
	case err != nil:
		return nil, err
	case before != nil && before.revision == revision:
		return before, nil
	case revision == 0:
		return &kept{}, nil
	}
	state, err := decode(text, key.Kind)
	if err != nil {
		return s.setAside(ctx, key, revision, err)
	}
	return &kept{state: state, revision: revision, bytes: len(text)}, nil
}

func decode(text []byte, kind string) (*selection.State, error) {
	if err := serving.CheckState(text); err != nil {
		return nil, fmt.Errorf("%w: %w", selection.ErrCorrupt, err)
	}
	return selection.Decode(text, kind)
}

// setAside gets a corrupt state out of the way: no state is left.
func (s *States) setAside(ctx context.Context, key serving.StateKey, revision uint64, why error) (*kept, error) {
	as, err := s.store.SetStateAside(ctx, key, revision, why.Error())
	if err != nil {
		return nil, fmt.Errorf("set it aside, as %w: %w", why, err)
	}
	s.metrics.corrupt.Inc()
	s.log.Error("a stored selection state is corrupt and was set aside; learning starts over from the app's state, or from nothing",
		"state", key.String(), "as", as, "error", why)
	return &kept{}, nil
}

// settle decides when to read the entry again, and notes whether the store is there.
func (s *States) settle(ctx context.Context, e *entry, err error) {
	wait := refreshEvery
	switch {
	case err == nil || errors.Is(err, serving.ErrStateConflict):
		e.failures.Store(0)
		if s.unreachable.Load() && s.unreachable.CompareAndSwap(true, false) {
			s.log.Info("selection states can be read again")
		}
	case ctx.Err() != nil: // the caller has gone: that says nothing
	default:
		s.metrics.loadFailures.Inc()
		wait = min(refreshEvery<<min(e.failures.Add(1), 8), maxRetryWait)
		if s.unreachable.CompareAndSwap(false, true) {
			s.log.Warn("selection states cannot be read; apps continue with the states in memory", "error", err)
		}
	}
	// At random, so that states which were first asked for together do not stay so.
	e.due.Store(s.now() + int64(wait/2+rand.N(wait/2)))
}

// unavailable says that the store failed, unless it only said that the state changed.
func unavailable(what string, key serving.StateKey, err error) error {
	if errors.Is(err, serving.ErrStateConflict) {
		return err
	}
	return fmt.Errorf("%s selection state %v: %w: %w", what, key, serving.ErrUnavailable, err)
}

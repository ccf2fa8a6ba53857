package predict

import (
	"context"
	"time"

	"topsail/gateway/cache"
	"topsail/serving"
)

// round is the queries of one request: usually one, of a batch many. One
// goroutine waits for them all.
type round struct {
	works []*work // those in use
	spare []*work // all that were ever made
	wake  cache.Waiter
	timer *time.Timer
}

func newRound() *round { return &round{wake: make(cache.Waiter, 1)} }

// maxSpare bounds the works that a pooled round keeps.
const maxSpare = 16

// release gives the round back. A flight that lands later may still wake it; the
// next user then looks once in vain.
func (p *Predictor) release(r *round) {
	for _, w := range r.works {
		w.leave(w.respond)
		w.reset()
	}
	if len(r.spare) > maxSpare {
		clear(r.spare[maxSpare:])
		r.spare = r.spare[:maxSpare]
	}
	r.works = r.spare[:0]
	p.pool.Put(r)
}

// add takes a work into use.
func (r *round) add() *work {
	if n := len(r.works); n < len(r.spare) {
		r.works = r.spare[:n+1]
		return r.works[n]
	}
	r.spare = append(r.spare, &work{})
	r.works = r.spare
	return r.works[len(r.works)-1]
}

// begin finds out whom to ask for a query, or with patience for one to learn from.
func (r *round) begin(p *Predictor, q *serving.Query, patience time.Duration) (*work, error) {
	a, err := p.app(q.App)
	if err != nil {
		return nil, err
	}
	if q.Input.Type != a.InputType {
		return nil, &serving.QueryError{Cause: "Input of type " + q.Input.Type.String() + ", and application " + a.Name + " takes " + a.InputType.String()}
	}
	if q.Received.IsZero() { // a caller in process need not say
		q.Received = time.Now()
	}
	w := r.add()
	w.prepare(p, a, q, r.wake, patience)
	if a.stages != nil {
		return w, w.beginStages()
	}
	return w, w.selectModels()
}

// await returns when every query has its verdict, which is at its deadline at the
// latest.
func (r *round) await(ctx context.Context) error {
	if len(r.works) == 0 {
		return nil
	}
	// The first look needs no clock: nothing has come since the last was begun but what
	// the cache had.
	for now := r.works[len(r.works)-1].begun; ; now = time.Now() {
		next, pending := r.step(now)
		if !pending {
			return nil
		}
		r.alarm(time.Until(next))
		select {
		case <-r.wake:
		case <-r.timer.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (r *round) alarm(d time.Duration) {
	if r.timer == nil {
		r.timer = time.NewTimer(d)
	} else {
		r.timer.Reset(d)
	}
}

// step moves every query on, and says when to look again at the latest.
func (r *round) step(now time.Time) (next time.Time, pending bool) {
	for _, w := range r.works {
		if w.done || w.step(now) {
			continue
		}
		if at := w.next(); !pending || at.Before(next) {
			next, pending = at, true
		}
	}
	return next, pending
}

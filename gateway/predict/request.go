package predict

import (
	"context"
	"time"

	"github.com/topsail-serving/topsail/gateway/cache"
	"github.com/topsail-serving/topsail/serving"
)

// request is the queries of one request: usually one, of a batch many. One
// goroutine waits for them all.
type request struct {
	queries []*query // those in use
	spares  []*query // all that were ever made
	wake    cache.Waiter
	timer   *time.Timer
}

func newRequest() *request { return &request{wake: make(cache.Waiter, 1)} }

// maxSpare bounds the queries that a pooled request keeps.
const maxSpare = 16

// release gives the request back. A flight that lands later may still wake it; the next user then
// checks once for nothing.
func (p *Predictor) release(r *request) {
	for _, q := range r.queries {
		q.leave(q.respond)
		q.reset()
	}
	if len(r.spares) > maxSpare {
		clear(r.spares[maxSpare:])
		r.spares = r.spares[:maxSpare]
	}
	r.queries = r.spares[:0]
	p.pool.Put(r)
}

// add takes a query into use.
func (r *request) add() *query {
	if n := len(r.queries); n < len(r.spares) {
		r.queries = r.spares[:n+1]
		return r.queries[n]
	}
	r.spares = append(r.spares, &query{})
	r.queries = r.spares
	return r.queries[len(r.queries)-1]
}

// begin plans a query, or with patience for one to learn from.
func (r *request) begin(p *Predictor, q *serving.Query, patience time.Duration) (*query, error) {
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
	one := r.add()
	one.prepare(p, a, q, r.wake, patience)
	if a.stages != nil {
		return one, one.beginStages()
	}
	return one, one.selectModels()
}

// await returns when every query has its verdict, which is at its deadline at the
// latest.
func (r *request) await(ctx context.Context) error {
	if len(r.queries) == 0 {
		return nil
	}
	// The first look needs no clock: nothing has come since the last was begun but what
	// the cache had.
	for now := r.queries[len(r.queries)-1].begun; ; now = time.Now() {
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

func (r *request) alarm(d time.Duration) {
	if r.timer == nil {
		r.timer = time.NewTimer(d)
	} else {
		r.timer.Reset(d)
	}
}

// step moves every query on, and says when to look again at the latest.
func (r *request) step(now time.Time) (next time.Time, pending bool) {
	for _, q := range r.queries {
		if q.done || q.step(now) {
			continue
		}
		if at := q.next(); !pending || at.Before(next) {
			next, pending = at, true
		}
	}
	return next, pending
}

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

// watchAfter is from when a request looks whether its context has ended. To notice that a client leaves costs more than
// most queries take.
const watchAfter = 20 * time.Millisecond

// await returns when every query has its verdict, which is at its deadline at the latest. Where ctx ends before, what
// the queries have asked is taken back.
func (r *request) await(ctx context.Context) error {
	if len(r.queries) == 0 {
		return nil
	}
	// The first look needs no clock: nothing has come since the last was begun but what
	// the cache had.
	now := r.queries[len(r.queries)-1].begun
	for watch := now.Add(watchAfter); ; now = time.Now() {
		next, pending := r.step(now)
		if !pending {
			return nil
		}
		if !r.sleep(ctx, next, watch) {
			r.withdraw()
			return context.Cause(ctx)
		}
	}
}

// sleep waits until something has come, or for next. It says false where ctx has ended, which it looks at from watch on.
func (r *request) sleep(ctx context.Context, next, watch time.Time) bool {
	if early := time.Until(watch); early > 0 {
		r.alarm(min(early, time.Until(next)))
		select {
		case <-r.wake:
			return true
		case <-r.timer.C:
			if !watch.Before(next) {
				return true
			}
		}
	}
	r.alarm(time.Until(next))
	select {
	case <-r.wake:
	case <-r.timer.C:
	case <-ctx.Done():
		return false
	}
	return true
}

// withdraw takes back what the queries have asked and no other waits for.
func (r *request) withdraw() {
	for _, q := range r.queries {
		if !q.done {
			q.withdraw()
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

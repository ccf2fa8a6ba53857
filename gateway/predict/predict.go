package predict

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/topsail-serving/topsail/gateway/cache"
	"github.com/topsail-serving/topsail/serving"
)

// Predict answers the queries of one request, all to one app, in their order. Each is answered by its
// app's SLO, with the default output where no prediction could be had, and has its own fate. It fails
// only for an app that does not exist (serving.ErrUnknownApp, serving.ErrNoCatalog), a query that cannot
// be (*serving.QueryError), and then none was asked, or a context that has ended.
func (p *Predictor) Predict(ctx context.Context, qs ...serving.Query) ([]serving.Prediction, error) {
	if len(qs) > 1 && p.waits(qs[0].App) {
		return p.predictEach(ctx, qs)
	}
	r := p.request(len(qs))
	defer p.release(r)
	for i := range r.queries {
		if err := r.queries[i].begin(p, &qs[i], r.wake, 0); err != nil {
			return nil, cmp.Or(p.fit(qs), err) // which says of a batch what input it is
		}
	}
	if err := r.await(ctx); err != nil {
		return nil, err
	}
	answers := make([]serving.Prediction, len(qs))
	for i := range r.queries {
		r.queries[i].answer(p.ids.Next(), &answers[i])
	}
	return answers, nil
}

// request is the queries of one request: usually one, of a batch many. One
// goroutine waits for them all.
type request struct {
	queries []query
	wake    cache.Waiter
	timer   *time.Timer // wakes it, too
	alarm   time.Time   // when it does so
}

// maxKept bounds the queries whose memory a pooled request keeps.
const maxKept = 16

// request takes one of n queries from the pool.
func (p *Predictor) request(n int) *request {
	r := p.pool.Get().(*request)
	if n > cap(r.queries) {
		r.queries = append(r.queries[:cap(r.queries)], make([]query, n-cap(r.queries))...)
	}
	r.queries = r.queries[:n]
	return r
}

// release gives the request back. A flight that lands later may still wake it; the next user then
// checks once for nothing.
func (p *Predictor) release(r *request) {
	for i := range r.queries {
		q := &r.queries[i]
		q.leave(q.respond)
		q.reset()
	}
	if len(r.queries) > maxKept {
		r.queries = nil
	}
	p.pool.Put(r)
}

// watchAfter is from when a request looks whether its context has ended. To notice that a client leaves costs more than
// most queries take.
const watchAfter = 40 * time.Millisecond

// await returns when every query has its verdict, which is at its deadline at the latest. Where ctx ends before, what
// the queries have asked is taken back.
func (r *request) await(ctx context.Context) error {
	if len(r.queries) == 0 {
		return nil
	}
	// The first look needs no clock: nothing has been asked before it.
	now := r.queries[len(r.queries)-1].begun
	for watch := now.Add(watchAfter); ; now = time.Now() {
		next := time.Time{} // to look again at the latest
		for i := range r.queries {
			q := &r.queries[i]
			if q.done || q.planner.step(q, now) {
				continue
			}
			if at := q.next(); next.IsZero() || at.Before(next) {
				next = at
			}
		}
		if next.IsZero() {
			return nil
		}
		if !r.sleep(ctx, next, watch) {
			r.withdraw()
			return context.Cause(ctx)
		}
	}
}

// sleep waits until something has come, or for next at the latest. It says false where ctx has ended, which it looks
// at from watch on.
func (r *request) sleep(ctx context.Context, next, watch time.Time) bool {
	now := time.Now()
	if now.Before(watch) {
		r.wakeAt(earlier(watch, next), now)
		<-r.wake
		return true
	}
	r.wakeAt(next, now)
	select {
	case <-r.wake:
		return true
	case <-ctx.Done():
		return false
	}
}

// wakeAt has the request woken at a time, or before. A timer that is set to an earlier one stays, as most requests are
// answered before either, and the next one finds it.
func (r *request) wakeAt(at, now time.Time) {
	if now.Before(r.alarm) && !at.Before(r.alarm) {
		return
	}
	r.alarm = at
	if r.timer == nil {
		r.timer = time.AfterFunc(at.Sub(now), r.wake.Wake)
	} else {
		r.timer.Reset(at.Sub(now))
	}
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// withdraw takes back what the queries have asked and no other waits for.
func (r *request) withdraw() {
	for i := range r.queries {
		if q := &r.queries[i]; !q.done {
			q.withdraw()
		}
	}
}

// waits says whether a query of the app waits on its way for the model that decides for it.
func (p *Predictor) waits(app string) bool {
	a, err := p.app(app)
	return err == nil && a.Policy.Kind == serving.PolicyCustom
}

// maxSideBySide is how many queries of a batch that wait on their way do so at a time.
const maxSideBySide = 64

// predictEach predicts each query of a batch alone, so that none waits for the policy's decision
// on another.
func (p *Predictor) predictEach(ctx context.Context, qs []serving.Query) ([]serving.Prediction, error) {
	if err := p.fit(qs); err != nil {
		return nil, err
	}
	answers := make([]serving.Prediction, len(qs))
	var group errgroup.Group
	group.SetLimit(maxSideBySide)
	for i := range qs {
		group.Go(func() error {
			one, err := p.Predict(ctx, qs[i])
			copy(answers[i:], one)
			return err
		})
	}
	return answers, group.Wait()
}

// fit says why one of the queries of a request cannot be asked of any model of its app, or nil.
func (p *Predictor) fit(qs []serving.Query) error {
	a, err := p.app(qs[0].App)
	if err != nil {
		return err
	}
	for i := range qs {
		misfit := a.misfit(qs[i].Input.Len())
		switch {
		case misfit != nil && len(qs) > 1:
			return &serving.QueryError{Cause: fmt.Sprintf("input_batch[%d]: %s", i, misfit.Message)}
		case misfit != nil:
			return &serving.QueryError{Cause: misfit.Message}
		}
	}
	return nil
}

// misfit is why no model can be asked about an input of such a length, or nil.
func (a *app) misfit(length int) (why *serving.Failure) {
	if a.each {
		return nil
	}
	for i := range a.members {
		v, _ := a.members[i].version(a)
		if v == nil {
			continue
		}
		no := v.misfit(length)
		if no == nil {
			return nil
		}
		why = cmp.Or(why, no)
	}
	return why
}

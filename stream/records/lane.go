package records

import (
	"context"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/topsail-serving/topsail/internal/retry"
	"github.com/topsail-serving/topsail/serving"
)

// lane asks one app for the predictions of a job's records.
type lane struct {
	handler *handler
	app     string
	limiter *limiter

	mu       sync.Mutex
	queue    []entry   // that wait for their slots, in the order in which they came
	serving  bool      // the queue is looked after
	progress time.Time // when a record last got its answer
	waiting  time.Time // since when no record was answered while one waited; zero: none waits
}

// entry is a record in a lane.
type entry struct {
	ctx    context.Context // ends when the record need not be predicted
	answer *answer
	done   func(error)
}

const (
	// busyShare is the part of its objective that a query may wait before the replicas count as
	// busy: enough for them to have the next batch, and little for queries of other apps.
	busyShare = 4
	// retryFirst and retryMost bound how long a record waits before it is retried.
	retryFirst = time.Millisecond
	retryMost  = time.Second
	// stalledAfter is how long no record of an app is answered before the job says so.
	stalledAfter = 10 * time.Second
	// maxCrashes is how many containers may fail at a record: an input that kills its container
	// would else be asked forever, and take the replicas away from all others.
	maxCrashes = 10
	// crashFirst and crashMost bound how long such a record waits: a container starts in that time.
	crashFirst = 100 * time.Millisecond
	crashMost  = 5 * time.Second
)

// add has a record asked when those before it are, and there is a slot.
func (l *lane) add(e entry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.queue = append(l.queue, e)
	if !l.serving {
		l.serving = true
		go l.serve()
	}
}

// serve gives slots to the records that wait, until none does.
func (l *lane) serve() {
	for e, ok := l.next(); ok; e, ok = l.next() {
		if err := l.limiter.acquire(e.ctx); err != nil {
			e.done(err)
			continue
		}
		go func() {
			err := l.ask(e.ctx, e.answer)
			l.limiter.release()
			e.done(err)
		}()
	}
}

// next is the record that came first, if one waits.
func (l *lane) next() (first entry, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.queue) == 0 {
		l.serving, l.queue = false, nil
		return entry{}, false
	}
	first, l.queue = l.queue[0], l.queue[1:]
	return first, true
}

// ask predicts one record in its slot, with the patience that the job has. The record keeps
// the slot while it waits: another one would only be refused as well. It does not go on while
// the stream is suspended, and gives up when ctx ends.
func (l *lane) ask(ctx context.Context, a *answer) error {
	h, began, crashes := l.handler, time.Now(), 0
	for tries := 0; ; tries++ {
		query := a.query
		query.Received, query.Again = time.Now(), crashes < maxCrashes && l.patience(began, tries) > 0
		p, err := l.once(ctx, a, query)
		a.took = time.Since(began)
		if a.take(&query, p, err) {
			l.answered(a.took)
			return nil
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err == nil && p.Cause == serving.ContainerError {
			crashes++
		}
		l.stalled(a, began, &p, err)
		h.metrics.retries.Inc()
		retry.Sleep(ctx, min(l.pause(tries, crashes), l.patience(began, tries)))
		if err := h.job.Gate.Wait(ctx); err != nil {
			return err
		}
	}
}

// once asks a record once, and tells the limiter how busy the replicas were.
func (l *lane) once(ctx context.Context, a *answer, q serving.Query) (p serving.Prediction, err error) {
	replicas, _ := l.handler.cfg.Scorer.Capacity(l.app)
	number := l.limiter.ask(replicas)
	ps, err := l.handler.cfg.Scorer.Predict(ctx, q)
	if err == nil {
		p = ps[0]
	}
	_, wait := l.handler.cfg.Scorer.Capacity(l.app)
	switch {
	case err != nil:
	case p.Default && p.Cause.Passes():
		l.limiter.answered(number, true)
	case !p.Cached: // else no replica was asked
		l.limiter.answered(number, wait > a.objective/busyShare)
	}
	return p, err
}

// pause is how long a record waits before it is asked for another time: for as long as the
// replicas say that a query waits, and ever longer if that was too little.
func (l *lane) pause(tries, crashes int) time.Duration {
	if crashes > 0 {
		return min(crashFirst<<crashes, crashMost)
	}
	_, wait := l.handler.cfg.Scorer.Capacity(l.app)
	return min(max(wait, retryFirst<<min(tries, 10)), retryMost)
}

// patience is for how much longer a record waits that was asked first at a time. For a model of an app that has none
// it waits as long as for an app.
func (l *lane) patience(began time.Time, tries int) time.Duration {
	if tries > 0 && l.bare() && !l.handler.bare.wait(l.app, time.Now()) {
		return 0
	}
	if l.handler.cfg.Patience == 0 {
		return math.MaxInt64
	}
	return l.handler.cfg.Patience - time.Since(began)
}

// bare says whether the app has no model.
func (l *lane) bare() bool {
	app, err := l.handler.cfg.Scorer.App(l.app)
	return err == nil && len(app.Asked()) == 0 && len(app.Stages) == 0
}

// answered notes that a record got its answer.
func (l *lane) answered(took time.Duration) {
	l.handler.metrics.predict.Observe(took.Seconds())
	l.mu.Lock()
	l.progress, l.waiting = time.Now(), time.Time{}
	l.mu.Unlock()
	l.handler.job.Conditions.End(predicting(l.app))
}

// stalled notes that a record waits that was asked first at a time, and says so if none has
// been answered for long.
func (l *lane) stalled(a *answer, began time.Time, p *serving.Prediction, err error) {
	l.mu.Lock()
	if l.waiting.IsZero() {
		l.waiting = began
		if l.progress.After(began) {
			l.waiting = l.progress
		}
	}
	waited := time.Since(l.waiting)
	l.mu.Unlock()
	if err == nil && waited < stalledAfter {
		return
	}
	if err == nil {
		err = fmt.Errorf("no record has been answered for %v; %s waits: %s", waited.Round(time.Second), a.record.Position(), p.Explanation)
	}
	l.handler.job.Conditions.Begin(predicting(l.app), err)
}

// waited is for how long no record was answered while one waited.
func (l *lane) waited() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.waiting.IsZero() {
		return 0
	}
	return time.Since(l.waiting)
}

// predicting is what a job does with an app, as its conditions name it.
func predicting(app string) string { return "predict with app " + app }

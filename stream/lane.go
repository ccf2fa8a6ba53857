package stream

import (
	"context"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/stream/internal/deadletter"
)

// lane asks one app for the predictions of a job's records.
type lane struct {
	job     *Job
	app     string
	limiter *limiter

	mu       sync.Mutex
	progress time.Time // when a record last got its answer
	waiting  time.Time // since when no record was answered while one waited; zero: none waits
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

// lane is that of an app; there are as many as apps that records may name.
func (j *Job) lane(app string) *lane {
	j.mu.Lock()
	defer j.mu.Unlock()
	l := j.lanes[app]
	if l == nil {
		l = &lane{job: j, app: app, limiter: newLimiter(j.cfg.Concurrency)}
		j.lanes[app] = l
	}
	return l
}

// waited is for how long no record of some app was answered while one waited; 0: none waits.
func (j *Job) waited() (longest time.Duration) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, l := range j.lanes {
		longest = max(longest, l.waited())
	}
	return longest
}

// predict has records predicted, side by side, or gives up when ctx ends.
func (l *lane) predict(ctx context.Context, items []*item) {
	var asking sync.WaitGroup
	for _, it := range items {
		if err := l.limiter.acquire(ctx); err != nil {
			break
		}
		asking.Go(func() {
			defer l.limiter.release()
			l.ask(ctx, it)
		})
	}
	asking.Wait()
}

// ask predicts one record in its slot, with the patience that the job has. The record keeps
// the slot while it waits: another one would only be refused as well. It does not go on while
// the stream is suspended, and gives up when ctx ends.
func (l *lane) ask(ctx context.Context, it *item) {
	j, began, crashes := l.job, time.Now(), 0
	for tries := 0; ; tries++ {
		query := it.query // which the scorer marks with when it got it
		query.Again = crashes < maxCrashes && j.patience(began) > 0
		p, err := l.once(ctx, it, &query)
		if j.take(it, &query, p, err) {
			l.answered(time.Since(began))
			return
		}
		if ctx.Err() != nil {
			return
		}
		if err == nil && p.Cause == serving.ContainerError {
			crashes++
		}
		l.stalled(it, began, &p, err)
		j.metrics.again.Inc()
		select {
		case <-time.After(min(l.pause(tries, crashes), j.patience(began))):
		case <-ctx.Done():
		}
		if j.loop.Gate.Wait(ctx) != nil {
			return
		}
	}
}

// once asks a record once, and tells the limiter how busy the replicas were.
func (l *lane) once(ctx context.Context, it *item, q *serving.Query) (serving.Prediction, error) {
	replicas, _ := l.job.cfg.Scorer.Capacity(l.app)
	number := l.limiter.ask(replicas)
	p, err := l.job.cfg.Scorer.Predict(ctx, q)
	_, wait := l.job.cfg.Scorer.Capacity(l.app)
	switch {
	case err != nil:
	case p.Default && p.Cause.Passes():
		l.limiter.answered(number, true)
	case !p.Cached: // else no replica was asked
		l.limiter.answered(number, wait > it.objective/busyShare)
	}
	return p, err
}

// pause is how long a record waits before it is asked for another time: for as long as the
// replicas say that a query waits, and ever longer if that was too little.
func (l *lane) pause(tries, crashes int) time.Duration {
	if crashes > 0 {
		return min(crashFirst<<crashes, crashMost)
	}
	_, wait := l.job.cfg.Scorer.Capacity(l.app)
	return min(max(wait, retryFirst<<min(tries, 10)), retryMost)
}

// patience is for how much longer a record waits that was asked first at a time.
func (j *Job) patience(began time.Time) time.Duration {
	if j.cfg.Patience == 0 {
		return math.MaxInt64
	}
	return j.cfg.Patience - time.Since(began)
}

// answered notes that a record got its answer.
func (l *lane) answered(took time.Duration) {
	l.job.metrics.predict.Observe(took.Seconds())
	l.mu.Lock()
	l.progress, l.waiting = time.Now(), time.Time{}
	l.mu.Unlock()
	l.job.conditions.End(predicting(l.app))
}

// stalled notes that a record waits that was asked first at a time, and says so if none has
// been answered for long.
func (l *lane) stalled(it *item, began time.Time, p *serving.Prediction, err error) {
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
		err = fmt.Errorf("no record has been answered for %v; %s waits: %s", waited.Round(time.Second), deadletter.Place(it.record), p.Explanation)
	}
	l.job.conditions.Begin(predicting(l.app), err)
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

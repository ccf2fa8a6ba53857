package records

import (
	"context"
	"sync"
	"time"

	"github.com/topsail-serving/topsail/internal/retry"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/stream"
)

// handler has records predicted.
type handler struct {
	cfg      Config
	job      *stream.Job
	metrics  *jobMetrics
	spreader *spreader // of the goroutine of Run
	mix      *mix      // of what was answered
	topic    *topic    // nil: records are Topsail's own messages

	own     []string            // the apps for records that name none
	unnamed [1]string           // what those say
	apps    map[string][]string // by what records may name, as the configuration has it
	unknown *absences           // of what records name
	bare    *absences           // of the models of apps

	mu    sync.Mutex       // guards the following
	lanes map[string]*lane // by app
	waits map[string]int   // by condition: how many records wait because of it
}

// Parse implements stream.Handler.
func (h *handler) Parse(r *serving.StreamRecord, format stream.Format) (stream.Message, error) {
	request, err := ParseRequest(r.Value, format)
	if err != nil {
		return nil, err
	}
	return &record{StreamRecord: r, handler: h, request: request}, nil
}

// Handle implements stream.Handler: it has a record predicted by its apps, side by side with others, and
// independently of those of other apps. A record whose apps are not all there waits by itself.
func (h *handler) Handle(ctx context.Context, it *stream.Item, done func(error)) {
	var few [1]target
	targets, wait := of(it).targets(few[:0])
	if wait == nil {
		h.ask(ctx, it, targets, done)
		return
	}
	go func() {
		targets, err := h.await(ctx, of(it), wait)
		if err != nil {
			done(err)
			return
		}
		h.ask(ctx, it, targets, done)
	}()
}

// ask has a record predicted by its apps.
func (h *handler) ask(ctx context.Context, it *stream.Item, targets []target, done func(error)) {
	r := of(it)
	if n := len(targets); n > serving.MaxRecordApps {
		it.Rejection = stream.Rejected(UnknownApp, "the record is for %d apps, and at most %d are possible", n, serving.MaxRecordApps)
		done(nil)
		return
	}
	switch asked := r.begin(targets); asked {
	case 0:
		done(nil)
		return
	case 1:
	default:
		done = last(asked, done)
	}
	for i := range r.answers {
		if a := &r.answers[i]; a.result.Rejection == nil {
			h.lane(a.app).add(entry{ctx, a, done})
		}
	}
}

// last calls done when it has been called n times, with one of the errors.
func last(n int, done func(error)) func(error) {
	var mu sync.Mutex
	var failed error
	return func(err error) {
		mu.Lock()
		if n--; err != nil {
			failed = err
		}
		left, err := n, failed
		mu.Unlock()
		if left == 0 {
			done(err)
		}
	}
}

// await waits until a record need not wait for its apps any more, and returns them. It fails when ctx ends, or the job
// is to end.
func (h *handler) await(ctx context.Context, r *record, wait *noApp) (targets []target, _ error) {
	held := ""
	defer func() { h.waiting(held, -1) }()
	for pause := (retry.Backoff{First: lookFirst, Most: lookMost}); wait != nil; targets, wait = r.targets(nil) {
		h.job.Conditions.Begin(wait.condition, wait.err)
		if wait.condition != held {
			h.waiting(wait.condition, 1)
			if held != "" {
				h.waiting(held, -1)
			}
			held = wait.condition
		}
		if err := h.wait(ctx, &pause); err != nil {
			return nil, err
		}
	}
	return targets, nil
}

// lookFirst and lookMost bound how long it is until a record looks again for its apps.
const (
	lookFirst = 50 * time.Millisecond
	lookMost  = time.Second
)

// waiting counts the records that wait because of a condition, which ends with the last of them.
func (h *handler) waiting(condition string, n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.waits[condition] += n; h.waits[condition] == 0 {
		delete(h.waits, condition)
		h.job.Conditions.End(condition)
	}
}

// lane is that of an app; there are as many as apps that records may name.
func (h *handler) lane(app string) *lane {
	h.mu.Lock()
	defer h.mu.Unlock()
	l := h.lanes[app]
	if l == nil {
		l = &lane{handler: h, app: app, limiter: newLimiter(h.cfg.Concurrency)}
		h.lanes[app] = l
	}
	return l
}

// Waited implements stream.Handler: it is for how long no record of some app was answered while one waited.
func (h *handler) Waited() (longest time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, l := range h.lanes {
		longest = max(longest, l.waited())
	}
	return longest
}

// Committed implements stream.Handler: it counts.
func (h *handler) Committed(items []*stream.Item) {
	h.metrics.batch.Observe(float64(len(items)))
	for _, it := range items {
		if it.Redelivered {
			h.metrics.redelivered.Inc()
		}
		for _, r := range it.Results() {
			switch {
			case r.Rejection != nil:
				h.metrics.dead.Inc()
			case r.Outcome == gaveDefault:
				h.metrics.defaults.Inc()
			case r.Outcome == dropped:
				h.metrics.dropped.Inc()
			default:
				h.metrics.predicted.Inc()
			}
		}
	}
}

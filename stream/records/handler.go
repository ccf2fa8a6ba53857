package records

import (
	"context"
	"errors"
	"sync"
	"time"

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

	mu    sync.Mutex
	lanes map[string]*lane // by app; guarded by mu
}

// Parse implements stream.Handler.
func (h *handler) Parse(r *serving.StreamRecord, format stream.Format) (stream.Message, error) {
	request, err := ParseRequest(r.Value, format)
	if err != nil {
		return nil, err
	}
	return &record{StreamRecord: r, handler: h, request: request}, nil
}

// Handle implements stream.Handler: it has a record predicted, side by side with others of its app, and
// independently of those of other apps.
func (h *handler) Handle(ctx context.Context, it *stream.Item, done func(error)) {
	h.lane(of(it).query.App).add(entry{ctx, it, done})
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

// named is the app for records that name something: operators' word is over the configuration's.
func (h *handler) named(said string) (app string, known bool) {
	if app, known = h.job.Gate.App(said); !known {
		app, known = h.cfg.Apps[said]
	}
	return app, known
}

// app finds an app. It waits while none is known, and for the job's own: all records
// would be dead letters without it.
func (h *handler) app(ctx context.Context, name string) (*serving.App, error) {
	pause := stream.Backoff()
	for ctx.Err() == nil {
		app, err := h.cfg.Scorer.App(name)
		if err == nil {
			h.job.Conditions.End(predicting(name))
			return app, nil
		}
		if errors.Is(err, serving.ErrUnknownApp) && name != h.cfg.App {
			return nil, unknownApp(name)
		}
		h.job.Conditions.Begin(predicting(name), err)
		pause.Sleep(ctx)
	}
	return nil, context.Cause(ctx)
}

// Committed implements stream.Handler: it counts.
func (h *handler) Committed(items []*stream.Item) {
	h.metrics.batch.Observe(float64(len(items)))
	for _, it := range items {
		if it.Redelivered {
			h.metrics.redelivered.Inc()
		}
		switch {
		case it.Rejection != nil:
			h.metrics.dead.Inc()
		case it.Outcome == gaveDefault:
			h.metrics.defaults.Inc()
		case it.Outcome == dropped:
			h.metrics.dropped.Inc()
		default:
			h.metrics.predicted.Inc()
		}
	}
}

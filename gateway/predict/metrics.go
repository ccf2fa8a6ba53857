package predict

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/topsail-serving/topsail/gateway/selection"
	"github.com/topsail-serving/topsail/gateway/usage"
	"github.com/topsail-serving/topsail/internal/obs"
	"github.com/topsail-serving/topsail/serving"
)

// Metrics are the metrics of a gateway's predictions.
type Metrics struct {
	mu   sync.Mutex             // guards the following
	apps map[string]*appMetrics // outlives catalogs, but not the app

	asked *obs.CounterVec
	shed  *obs.CounterVec
	ended *obs.CounterVec
}

// NewMetrics registers them.
func NewMetrics(r *obs.Registry) *Metrics {
	m := &Metrics{
		apps:  map[string]*appMetrics{},
		asked: r.Counters("topsail_selection_models_total", "Model versions in the answers of policies: asked, answered in time (or, as a shadow, at all), agreed with the answer.", "app", "model", "version", "event"),
		shed:  r.Counters("topsail_selection_shed_total", "Model versions that a policy chose and that were not called because capacity or time was short.", "app", "model", "version"),
		ended: r.Counters("topsail_selection_endings_total", "Decisions of policies, by what triggered them.", "app", "ending"),
	}
	r.Add(m.writeSeries, answersDesc, byDesc, secondsDesc, cacheDesc, sloDesc, lateDesc)
	return m
}

// appMetrics are those of one app.
type appMetrics struct {
	since               time.Time
	answers             []atomic.Uint64 // by cause
	priorities          [serving.Priorities]outcomes
	cached              atomic.Uint64 // of answers, those for which no model was asked
	times               times
	fallback            usage.Last // the last default's reason
	hits, joins, misses atomic.Uint64
	slo                 atomic.Int64  // nanoseconds
	late                atomic.Uint64 // outputs
	asStage             atomic.Int64  // moving average of its answers to stages of other apps, in nanoseconds
	endings             func() map[selection.Ending]obs.Counter

	reported reported                  // guarded by Metrics.mu, as is the next
	stages   map[string]*usage.Counter // of the app's stages
}

// outcomes are those of one priority.
type outcomes struct{ answers, defaults atomic.Uint64 }

// memberMetrics are those of one model version in an app's answers. They begin when it is asked.
type memberMetrics struct{ asked, answered, agreed, shed obs.Counter }

func (m *Metrics) member(app string, id serving.ModelID) func() *memberMetrics {
	return sync.OnceValue(func() *memberMetrics {
		return &memberMetrics{
			asked:    m.asked.WithLabelValues(app, id.Model, id.Version, "asked"),
			answered: m.asked.WithLabelValues(app, id.Model, id.Version, "answered"),
			agreed:   m.asked.WithLabelValues(app, id.Model, id.Version, "agreed"),
			shed:     m.shed.WithLabelValues(app, id.Model, id.Version),
		}
	})
}

func (m *Metrics) app(name string, slo time.Duration) *appMetrics {
	m.mu.Lock()
	defer m.mu.Unlock()
	if a := m.apps[name]; a != nil {
		a.slo.Store(int64(slo))
		return a
	}
	a := &appMetrics{
		since:   time.Now(),
		answers: make([]atomic.Uint64, len(serving.Causes())),
		endings: sync.OnceValue(func() map[selection.Ending]obs.Counter { return m.endings(name) }),
		stages:  map[string]*usage.Counter{},
	}
	a.slo.Store(int64(slo))
	m.apps[name] = a
	return a
}

// endings begins the counters of an app's decisions.
func (m *Metrics) endings(app string) map[selection.Ending]obs.Counter {
	all := map[selection.Ending]obs.Counter{}
	for _, e := range selection.Endings() {
		all[e] = m.ended.WithLabelValues(app, string(e))
	}
	return all
}

// forget removes the series of an app that is gone.
func (m *Metrics) forget(name string) {
	m.mu.Lock()
	delete(m.apps, name)
	m.mu.Unlock()
	l := obs.Labels{"app": name}
	m.asked.DeletePartialMatch(l)
	m.shed.DeletePartialMatch(l)
	m.ended.DeletePartialMatch(l)
}

// answered counts an answer now; one that is a default was made because of a failure,
// which must not change any more.
func (a *appMetrics) answered(p *serving.Prediction, priority int, failure *serving.Failure, received time.Time) {
	took := time.Since(received)
	a.answers[p.Cause].Add(1)
	a.priorities[priority].answers.Add(1)
	a.times.add(took)
	if p.Cached {
		a.cached.Add(1)
	}
	if p.Default {
		a.priorities[priority].defaults.Add(1)
		a.fallback.Note(failure, received.Add(took))
	}
}

// usual is how long its answers to stages usually take; 0: not known.
func (a *appMetrics) usual() time.Duration { return time.Duration(a.asStage.Load()) }

// answeredStage takes in how long one took. Of two at a time one may be lost.
func (a *appMetrics) answeredStage(took time.Duration) {
	const share = 8 // of the newest
	usual := a.usual()
	if usual == 0 {
		usual = took
	}
	a.asStage.Store(int64(usual + (took-usual)/share))
}

// ended counts a policy's decision; one that does not say why it was made ended as its
// only model did.
func (a *appMetrics) ended(e selection.Ending) {
	if c := a.endings()[e]; c != nil {
		c.Inc()
	}
}

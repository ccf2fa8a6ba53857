package predict

import (
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/topsail-serving/topsail/internal/obs"
	"github.com/topsail-serving/topsail/serving"
)

var (
	answersDesc = obs.NewDesc("topsail_gateway_answers_total", "Answers to queries, by cause: ok is a prediction, all others a default output.", "app", "cause")
	secondsDesc = obs.NewDesc("topsail_gateway_query_seconds", "Time from receiving a query to its answer.", "app")
	sloDesc     = obs.NewDesc("topsail_gateway_objective_seconds", "Latency objective of the app.", "app")
	lateDesc    = obs.NewDesc("topsail_gateway_late_outputs_total", "Outputs that arrived after the deadline, and only filled the cache.", "app")
	byDesc      = obs.NewDesc("topsail_gateway_priority_answers_total", "Answers to queries by priority, of which 0 is the highest: predictions, and default outputs.", "app", "priority", "result")
	cacheDesc   = obs.NewDesc("topsail_gateway_cache_total", "Requests to models: hit in the cache, joined to an equal one in flight, or missed.", "app", "result")
)

// Traffic is what queries to an app came to since this gateway has known it.
type Traffic struct {
	App                  string
	Objective            time.Duration
	Since                time.Time
	Answers              []uint64 // by serving.Cause
	Times                Times
	Hits, Joined, Missed uint64 // questions to models, by what the cache had for them
	Late                 uint64 // outputs that came after the deadline
}

// Total is the number of all answers.
func (t *Traffic) Total() (n uint64) {
	for _, some := range t.Answers {
		n += some
	}
	return n
}

// Traffic is that of each app, sorted by name.
func (m *Metrics) Traffic() []Traffic {
	m.mu.Lock()
	defer m.mu.Unlock()
	list := make([]Traffic, 0, len(m.apps))
	for _, name := range slices.Sorted(maps.Keys(m.apps)) {
		a := m.apps[name]
		t := Traffic{App: name, Objective: time.Duration(a.slo.Load()), Since: a.since, Times: a.times.now(), Hits: a.hits.Load(), Joined: a.joins.Load(), Missed: a.misses.Load(), Late: a.late.Load()}
		for i := range a.answers {
			t.Answers = append(t.Answers, a.answers[i].Load())
		}
		list = append(list, t)
	}
	return list
}

// writeSeries writes those of apps that had queries.
func (m *Metrics) writeSeries(to *obs.SeriesWriter) {
	m.mu.Lock()
	defer m.mu.Unlock()
	scales := scales{}
	for name, a := range m.apps {
		hits, joins, misses := a.hits.Load(), a.joins.Load(), a.misses.Load()
		if hits+joins+misses == 0 && a.unanswered() {
			continue // there may be thousands that are registered alone
		}
		slo := time.Duration(a.slo.Load())
		to.Gauge(sloDesc, slo.Seconds(), name)
		to.Counter(lateDesc, float64(a.late.Load()), name)
		for cause := range a.answers {
			to.Counter(answersDesc, float64(a.answers[cause].Load()), name, serving.Cause(cause).String())
		}
		for priority := range a.priorities {
			of := &a.priorities[priority]
			if defaults, answers := of.defaults.Load(), of.answers.Load(); answers > 0 {
				to.Counter(byDesc, float64(answers-defaults), name, strconv.Itoa(priority), "prediction")
				to.Counter(byDesc, float64(defaults), name, strconv.Itoa(priority), "default")
			}
		}
		to.Counter(cacheDesc, float64(hits), name, "hit")
		to.Counter(cacheDesc, float64(joins), name, "joined")
		to.Counter(cacheDesc, float64(misses), name, "missed")
		scale := scales.of(slo)
		to.Histogram(secondsDesc, scale.bounds, scale.of(&a.times), a.times.total().Seconds(), name)
	}
}

// unanswered says whether there was no answer yet.
func (a *appMetrics) unanswered() bool {
	for i := range a.answers {
		if a.answers[i].Load() > 0 {
			return false
		}
	}
	return true
}

// Inferences are what the queries of an app came to since this gateway has known it. An unknown app has none.
func (p *Predictor) Inferences(name string) serving.Inferences { return p.metrics.inferences(name) }

func (m *Metrics) inferences(name string) (t serving.Inferences) {
	m.mu.Lock()
	a := m.apps[name]
	m.mu.Unlock()
	if a == nil {
		return t
	}
	for cause := range a.answers {
		if n := a.answers[cause].Load(); serving.Cause(cause) == serving.OK {
			t.Succeeded = n
		} else {
			t.Defaults += n
		}
	}
	t.Cached, t.Asked, t.Took = a.hits.Load()+a.joins.Load(), a.misses.Load(), a.times.total()
	return t
}

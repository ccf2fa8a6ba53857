package predict

import (
	"maps"
	"slices"
	"time"

	"github.com/topsail-serving/topsail/internal/obs"
	"github.com/topsail-serving/topsail/serving"
)

var (
	answersDesc = obs.NewDesc("topsail_gateway_answers_total", "Answers to queries, by cause: ok is a prediction, all others a default output.", "app", "cause")
	secondsDesc = obs.NewDesc("topsail_gateway_query_seconds", "Time from receiving a query to its answer.", "app")
	sloDesc     = obs.NewDesc("topsail_gateway_objective_seconds", "Latency objective of the app.", "app")
	lateDesc    = obs.NewDesc("topsail_gateway_late_outputs_total", "Outputs that came after the deadline, and only filled the cache.", "app")
	cacheDesc   = obs.NewDesc("topsail_gateway_cache_total", "Questions to models: hit in the cache, joined to an equal one in flight, or missed.", "app", "result")
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

// Describe and Collect implement obs.Collector.
func (m *Metrics) Describe(ch chan<- *obs.Desc) {
	for _, d := range []*obs.Desc{answersDesc, secondsDesc, cacheDesc, sloDesc, lateDesc} {
		ch <- d
	}
}

func (m *Metrics) Collect(ch chan<- obs.Metric) {
	// An app's name that cannot be a label is left out.
	sample := func(one obs.Metric, err error) {
		if err == nil {
			ch <- one
		}
	}
	for _, t := range m.Traffic() {
		if t.Total() == 0 && t.Hits+t.Joined+t.Missed == 0 {
			continue // there may be thousands that are registered alone
		}
		sample(obs.GaugeOf(sloDesc, t.Objective.Seconds(), t.App))
		sample(obs.CounterOf(lateDesc, float64(t.Late), t.App))
		for cause, n := range t.Answers {
			sample(obs.CounterOf(answersDesc, float64(n), t.App, serving.Cause(cause).String()))
		}
		for result, n := range map[string]uint64{"hit": t.Hits, "joined": t.Joined, "missed": t.Missed} {
			sample(obs.CounterOf(cacheDesc, float64(n), t.App, result))
		}
		below, upTo := uint64(0), map[float64]uint64{}
		for _, b := range t.Times.Buckets[:timeBounds] {
			below += b.Count
			upTo[b.UpTo.Seconds()] = below
		}
		sample(obs.HistogramOf(secondsDesc, t.Times.Count, t.Times.Sum.Seconds(), upTo, t.App))
	}
}

package predict

import (
	"time"

	"topsail/internal/obs"
	"topsail/serving"
)

// Metrics are the metrics of a gateway's predictions.
type Metrics struct {
	answers *obs.CounterVec
	seconds *obs.HistogramVec
	cache   *obs.CounterVec
	late    *obs.CounterVec
	extra   obs.Counter
	slo     *obs.GaugeVec
	wakes   obs.Counter
	budget  *budget
}

// NewMetrics registers them.
func NewMetrics(r *obs.Registry) *Metrics {
	return &Metrics{
		answers: r.Counters("topsail_gateway_answers_total", "Answers to queries, by cause: ok is a prediction, all others a default output.", "app", "cause"),
		seconds: r.Histograms("topsail_gateway_query_seconds", "Time from receiving a query to its answer.", obs.Seconds(), "app"),
		cache:   r.Counters("topsail_gateway_cache_total", "Questions to models: hit in the cache, joined to an equal one in flight, or missed.", "app", "result"),
		late:    r.Counters("topsail_gateway_late_outputs_total", "Outputs that came after the deadline, and only filled the cache.", "app"),
		slo:     r.Gauges("topsail_gateway_objective_seconds", "Latency objective of the app.", "app"),
		extra:   r.Counters("topsail_gateway_extra_calls_total", "Questions that went to a second replica.").WithLabelValues(),
		wakes:   r.Counters("topsail_gateway_wakes_total", "Times that a model version without a ready replica was woken.").WithLabelValues(),
		budget:  newBudget(),
	}
}

// appMetrics are those of one app, looked up in advance.
type appMetrics struct {
	answers             []obs.Counter // by cause
	seconds             obs.Histogram
	hits, joins, misses obs.Counter
	late                obs.Counter
}

func (m *Metrics) app(name string, slo time.Duration) *appMetrics {
	m.slo.WithLabelValues(name).Set(slo.Seconds())
	a := &appMetrics{
		seconds: m.seconds.WithLabelValues(name),
		hits:    m.cache.WithLabelValues(name, "hit"),
		joins:   m.cache.WithLabelValues(name, "joined"),
		misses:  m.cache.WithLabelValues(name, "missed"),
		late:    m.late.WithLabelValues(name),
	}
	for _, c := range serving.Causes() {
		a.answers = append(a.answers, m.answers.WithLabelValues(name, c.String()))
	}
	return a
}

// forget removes the series of an app that is gone.
func (m *Metrics) forget(name string) {
	l := obs.Labels{"app": name}
	m.answers.DeletePartialMatch(l)
	m.slo.DeletePartialMatch(l)
	m.seconds.DeletePartialMatch(l)
	m.cache.DeletePartialMatch(l)
	m.late.DeletePartialMatch(l)
}

func (a *appMetrics) answered(c serving.Cause, took time.Duration) {
	a.answers[c].Inc()
	a.seconds.Observe(took.Seconds())
}

package stream

import (
	"math"
	"sync"

	"github.com/topsail-serving/topsail/internal/obs"
)

// Metrics are those that every job has, of all jobs of a kind in a process.
type Metrics struct {
	kind      Kind
	dead      *obs.CounterVec
	lost      *obs.CounterVec
	failures  *obs.CounterVec
	age       *obs.HistogramVec
	held      *obs.Desc
	lag       *obs.Desc
	condition *obs.Desc
	own       *obs.Desc // the gauge of the kind

	mu   sync.Mutex
	jobs []*Job
}

// NewMetrics registers the metrics of jobs of a kind.
func NewMetrics(r *obs.Registry, k Kind) *Metrics {
	m := &Metrics{
		kind:      k,
		dead:      r.Counters(k.Metrics+"dead_letters_total", "Records that became dead letters, by why.", "stream", "reason"),
		lost:      r.Counters(k.Metrics+"lost_batches_total", "Times that records belonged to another member of the group when they were to be committed.", "stream"),
		failures:  r.Counters(k.Metrics+"failures_total", "Times that the broker could not be polled or committed to.", "stream", "operation"),
		age:       r.Histograms(k.Metrics+"age_seconds", "From producing a record to committing its result.", obs.Seconds(), "stream"),
		held:      obs.NewDesc(k.Metrics+"in_flight_seconds", "For how long the oldest record in flight has been there; 0 without any.", "stream"),
		lag:       obs.NewDesc(k.Metrics+"lag_records", "Records that the consumer group has not committed, in all its streams; NaN while that is not known.", "stream"),
		condition: obs.NewDesc(k.Metrics+"condition", "1 while there is something that the stream cannot do: condition says what.", "stream", "condition"),
		own:       obs.NewDesc(k.Metrics+k.Gauge.Name, k.Gauge.Help, "stream"),
	}
	r.Add(m.writeSeries, m.held, m.lag, m.condition, m.own)
	return m
}

// jobMetrics are those of one job.
type jobMetrics struct {
	lost     obs.Counter
	failures map[string]obs.Counter // by operation
	dead     func(why Reason) obs.Counter
	age      obs.Histogram
}

// of is the metrics of one job, all of which are there from the start.
func (m *Metrics) of(j *Job) *jobMetrics {
	name := j.cfg.Name
	one := &jobMetrics{
		lost: m.lost.WithLabelValues(name), failures: map[string]obs.Counter{}, age: m.age.WithLabelValues(name),
		dead: func(why Reason) obs.Counter { return m.dead.WithLabelValues(name, string(why)) },
	}
	for _, operation := range []string{polling, committing} {
		one.failures[operation] = m.failures.WithLabelValues(name, operation)
	}
	for _, r := range append([]Reason{Unreadable, NoID, DuplicateID, RecordTooLarge}, j.kind.Reasons...) {
		one.dead(r)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.jobs = append(m.jobs, j)
	return one
}

// writeSeries writes the gauges of all jobs.
func (m *Metrics) writeSeries(to *obs.SeriesWriter) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, j := range m.jobs {
		m.writeJob(to, j)
	}
}

func (m *Metrics) writeJob(to *obs.SeriesWriter, j *Job) {
	_, held := j.window.now()
	to.Gauge(m.held, held.Seconds(), j.cfg.Name)
	to.Gauge(m.own, m.kind.Gauge.Value(j, j.handler), j.cfg.Name)
	lag := math.NaN()
	if known := j.lag.get(); known != nil {
		lag = float64(*known)
	}
	to.Gauge(m.lag, lag, j.cfg.Name)
	conditions := map[string]bool{cannotConsume: false} // which shows that it can
	for _, condition := range j.conditions() {
		conditions[condition] = true
	}
	for condition, present := range conditions {
		to.Flag(m.condition, present, j.cfg.Name, condition)
	}
}

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
	r.Collect(m)
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

// Describe and Collect implement obs.Collector.
func (m *Metrics) Describe(to chan<- *obs.Desc) {
	for _, desc := range []*obs.Desc{m.held, m.lag, m.condition, m.own} {
		to <- desc
	}
}

func (m *Metrics) Collect(to chan<- obs.Metric) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, j := range m.jobs {
		m.collect(j, func(desc *obs.Desc, value float64, labels ...string) {
			if sample, err := obs.GaugeOf(desc, value, append([]string{j.cfg.Name}, labels...)...); err == nil {
				to <- sample
			}
		})
	}
}

// collect says the gauges of one job.
func (m *Metrics) collect(j *Job, say func(desc *obs.Desc, value float64, labels ...string)) {
	_, held := j.window.now()
	say(m.held, held.Seconds())
	say(m.own, m.kind.Gauge.Value(j, j.handler))
	lag := math.NaN()
	if known := j.lag.get(); known != nil {
		lag = float64(*known)
	}
	say(m.lag, lag)
	conditions := map[string]float64{cannotConsume: 0} // which shows that it can
	for _, condition := range j.conditions() {
		conditions[condition] = 1
	}
	for condition, present := range conditions {
		say(m.condition, present, condition)
	}
}

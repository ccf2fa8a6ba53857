package models

import (
	"math"
	"sync"

	"github.com/topsail-serving/topsail/internal/obs"
	"github.com/topsail-serving/topsail/stream/internal/loop"
)

// Metrics are those of all jobs of a process.
type Metrics struct {
	updates   *obs.CounterVec
	dead      *obs.CounterVec
	again     *obs.CounterVec
	lost      *obs.CounterVec
	failures  *obs.CounterVec
	age       *obs.HistogramVec
	apply     *obs.HistogramVec
	held      *obs.Desc
	suspended *obs.Desc
	lag       *obs.Desc
	condition *obs.Desc

	mu   sync.Mutex
	jobs []*Job
}

// NewMetrics registers the metrics of jobs.
func NewMetrics(r *obs.Registry) *Metrics {
	m := &Metrics{
		updates:   r.Counters("topsail_model_stream_updates_total", "Updates of model streams that are applied, by their outcome.", "stream", "outcome"),
		dead:      r.Counters("topsail_model_stream_dead_letters_total", "Updates that became dead letters, by why.", "stream", "reason"),
		again:     r.Counters("topsail_model_stream_retries_total", "Retries of updates.", "stream"),
		lost:      r.Counters("topsail_model_stream_lost_batches_total", "Batches that belonged to another member of the group when they were to be committed.", "stream"),
		failures:  r.Counters("topsail_model_stream_failures_total", "Times that the broker could not be polled or committed to.", "stream", "operation"),
		age:       r.Histograms("topsail_model_stream_age_seconds", "From producing an update to committing its acknowledgement.", obs.Seconds(), "stream"),
		apply:     r.Histograms("topsail_model_stream_apply_seconds", "From the first try to apply an update to its end.", obs.Seconds(), "stream"),
		held:      obs.NewDesc("topsail_model_stream_in_flight_seconds", "For how long the updates in flight have been there; 0 without any.", "stream"),
		suspended: obs.NewDesc("topsail_model_stream_suspended", "1 while the stream is suspended.", "stream"),
		lag:       obs.NewDesc("topsail_model_stream_lag_records", "Updates that the consumer group has not committed, in all its streams; NaN while that is not known.", "stream"),
		condition: obs.NewDesc("topsail_model_stream_condition", "1 while there is something that the stream cannot do: condition says what.", "stream", "condition"),
	}
	r.Collect(m)
	return m
}

// jobMetrics are those of one job.
type jobMetrics struct {
	outcomes    map[string]obs.Counter
	dead        []obs.Counter // by Reason
	again, lost obs.Counter
	failures    map[string]obs.Counter // by operation of the loop
	age, apply  obs.Histogram
}

// of is the metrics of one job, all of which are there from the start.
func (m *Metrics) of(j *Job) *jobMetrics {
	if m == nil {
		m = NewMetrics(obs.NewRegistry())
	}
	name := j.cfg.Name
	one := &jobMetrics{
		outcomes: map[string]obs.Counter{}, failures: map[string]obs.Counter{},
		again: m.again.WithLabelValues(name), lost: m.lost.WithLabelValues(name),
		age: m.age.WithLabelValues(name), apply: m.apply.WithLabelValues(name),
	}
	for _, outcome := range outcomes() {
		one.outcomes[outcome] = m.updates.WithLabelValues(name, outcome)
	}
	for _, r := range reasons() {
		one.dead = append(one.dead, m.dead.WithLabelValues(name, r.String()))
	}
	for _, operation := range []string{loop.Poll, loop.Commit} {
		one.failures[operation] = m.failures.WithLabelValues(name, operation)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.jobs = append(m.jobs, j)
	return one
}

// Describe and Collect implement obs.Collector.
func (m *Metrics) Describe(to chan<- *obs.Desc) {
	to <- m.held
	to <- m.suspended
	to <- m.lag
	to <- m.condition
}

func (m *Metrics) Collect(to chan<- obs.Metric) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, j := range m.jobs {
		_, held := j.loop.InHand()
		suspended := 0.0
		if j.loop.Gate.Suspension() != nil {
			suspended = 1
		}
		values := map[*obs.Desc]float64{m.held: held.Seconds(), m.suspended: suspended}
		values[m.lag] = math.NaN()
		if lag := j.loop.Lag(); lag != nil {
			values[m.lag] = float64(*lag)
		}
		conditions := map[string]float64{loop.Consuming: 0} // which shows that it can
		for _, condition := range j.loop.Conditions() {
			conditions[condition] = 1
		}
		for condition, present := range conditions {
			if sample, err := obs.GaugeOf(m.condition, present, j.cfg.Name, condition); err == nil {
				to <- sample
			}
		}
		for desc, value := range values {
			if sample, err := obs.GaugeOf(desc, value, j.cfg.Name); err == nil {
				to <- sample
			}
		}
	}
}

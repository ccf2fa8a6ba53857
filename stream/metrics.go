package stream

import (
	"math"
	"sync"

	"github.com/topsail-serving/topsail/internal/obs"
	"github.com/topsail-serving/topsail/stream/internal/loop"
)

// Metrics are those of all jobs of a process.
type Metrics struct {
	records     *obs.CounterVec
	dead        *obs.CounterVec
	again       *obs.CounterVec
	redelivered *obs.CounterVec
	lost        *obs.CounterVec
	failures    *obs.CounterVec
	age         *obs.HistogramVec
	predict     *obs.HistogramVec
	batch       *obs.HistogramVec
	held        *obs.Desc
	waiting     *obs.Desc
	lag         *obs.Desc
	condition   *obs.Desc

	mu   sync.Mutex
	jobs []*Job
}

// NewMetrics registers the metrics of jobs.
func NewMetrics(r *obs.Registry) *Metrics {
	m := &Metrics{
		records:     r.Counters("topsail_stream_records_total", "Records of data streams that are done, by what they came to.", "stream", "result"),
		dead:        r.Counters("topsail_stream_dead_letters_total", "Records that became dead letters, by why.", "stream", "reason"),
		again:       r.Counters("topsail_stream_retries_total", "Retries of records because capacity was short.", "stream"),
		redelivered: r.Counters("topsail_stream_redelivered_total", "Records that were redelivered after they were committed, because the broker forgot the commit.", "stream"),
		lost:        r.Counters("topsail_stream_lost_batches_total", "Batches that belonged to another member of the group when they were to be committed.", "stream"),
		failures:    r.Counters("topsail_stream_failures_total", "Times that the broker could not be polled or committed to.", "stream", "operation"),
		age:         r.Histograms("topsail_stream_age_seconds", "From producing a record to committing its result.", obs.Seconds(), "stream"),
		predict:     r.Histograms("topsail_stream_predict_seconds", "From asking a record the first time to its answer.", obs.Seconds(), "stream"),
		batch:       r.Histograms("topsail_stream_batch_size", "Records that were committed together.", obs.Sizes(), "stream"),
		held:        obs.NewDesc("topsail_stream_in_flight_seconds", "For how long the records in flight have been there; 0 without any.", "stream"),
		waiting:     obs.NewDesc("topsail_stream_waiting_seconds", "For how long no record of some app was answered while one waited; 0 without any.", "stream"),
		lag:         obs.NewDesc("topsail_stream_lag_records", "Records that the consumer group has not committed, in all its streams; NaN while that is not known.", "stream"),
		condition:   obs.NewDesc("topsail_stream_condition", "1 while there is something that the stream cannot do: condition says what.", "stream", "condition"),
	}
	r.Collect(m)
	return m
}

// jobMetrics are those of one job.
type jobMetrics struct {
	predicted, defaults, redelivered, dead obs.Counter
	reasons                                []obs.Counter // by Reason
	again, lost                            obs.Counter
	failures                               map[string]obs.Counter // by operation of the loop
	age, predict, batch                    obs.Histogram
}

// of is the metrics of one job, all of which are there from the start.
func (m *Metrics) of(j *Job) *jobMetrics {
	if m == nil {
		m = NewMetrics(obs.NewRegistry())
	}
	name := j.cfg.Name
	one := &jobMetrics{
		failures:    map[string]obs.Counter{},
		predicted:   m.records.WithLabelValues(name, "predicted"),
		defaults:    m.records.WithLabelValues(name, "default"),
		dead:        m.records.WithLabelValues(name, "dead_letter"),
		redelivered: m.redelivered.WithLabelValues(name),
		again:       m.again.WithLabelValues(name),
		lost:        m.lost.WithLabelValues(name),
		age:         m.age.WithLabelValues(name),
		predict:     m.predict.WithLabelValues(name),
		batch:       m.batch.WithLabelValues(name),
	}
	for _, operation := range []string{loop.Poll, loop.Commit} {
		one.failures[operation] = m.failures.WithLabelValues(name, operation)
	}
	for _, r := range reasons() {
		one.reasons = append(one.reasons, m.dead.WithLabelValues(name, r.String()))
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.jobs = append(m.jobs, j)
	return one
}

// Describe and Collect implement obs.Collector.
func (m *Metrics) Describe(to chan<- *obs.Desc) {
	to <- m.held
	to <- m.waiting
	to <- m.lag
	to <- m.condition
}

func (m *Metrics) Collect(to chan<- obs.Metric) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, j := range m.jobs {
		_, held := j.loop.InHand()
		values := map[*obs.Desc]float64{m.held: held.Seconds(), m.waiting: j.waited().Seconds()}
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

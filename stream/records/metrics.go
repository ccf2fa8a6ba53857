package records

import (
	"github.com/topsail-serving/topsail/internal/obs"
	"github.com/topsail-serving/topsail/stream"
)

const prefix = "topsail_stream_"

// Metrics are those of all jobs of a process.
type Metrics struct {
	common      *stream.Metrics
	records     *obs.CounterVec
	retries     *obs.CounterVec
	redelivered *obs.CounterVec
	predict     *obs.HistogramVec
	batch       *obs.HistogramVec
}

// NewMetrics registers the metrics of jobs.
func NewMetrics(r *obs.Registry) *Metrics {
	return &Metrics{
		common:      stream.NewMetrics(r, kind()),
		records:     r.Counters(prefix+"records_total", "Records of data streams that are done, by what they came to.", "stream", "result"),
		retries:     r.Counters(prefix+"retries_total", "Retries of records because capacity was short.", "stream"),
		redelivered: r.Counters(prefix+"redelivered_total", "Records that were redelivered after they were committed, because the broker forgot the commit.", "stream"),
		predict:     r.Histograms(prefix+"predict_seconds", "From asking a record the first time to its answer.", obs.Seconds(), "stream"),
		batch:       r.Histograms(prefix+"batch_size", "Records that were committed together.", obs.Sizes(), "stream"),
	}
}

// jobMetrics are those of one job.
type jobMetrics struct {
	predicted, defaults, dropped, dead, retries, redelivered obs.Counter
	predict, batch                                           obs.Histogram
}

// of is the metrics of one job, all of which are there from the start.
func (m *Metrics) of(name string) *jobMetrics {
	return &jobMetrics{
		predicted:   m.records.WithLabelValues(name, predicted),
		defaults:    m.records.WithLabelValues(name, gaveDefault),
		dropped:     m.records.WithLabelValues(name, dropped),
		dead:        m.records.WithLabelValues(name, "dead_letter"),
		retries:     m.retries.WithLabelValues(name),
		redelivered: m.redelivered.WithLabelValues(name),
		predict:     m.predict.WithLabelValues(name),
		batch:       m.batch.WithLabelValues(name),
	}
}

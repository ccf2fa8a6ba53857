package models

import (
	"github.com/topsail-serving/topsail/internal/obs"
	"github.com/topsail-serving/topsail/stream"
)

const prefix = "topsail_model_stream_"

// Metrics are those of all jobs of a process.
type Metrics struct {
	common  *stream.Metrics
	updates *obs.CounterVec
	retries *obs.CounterVec
	removed *obs.CounterVec
	apply   *obs.HistogramVec
}

// NewMetrics registers the metrics of jobs.
func NewMetrics(r *obs.Registry) *Metrics {
	return &Metrics{
		common:  stream.NewMetrics(r, kind()),
		updates: r.Counters(prefix+"updates_total", "Updates of model streams that are applied, by their outcome.", "stream", "outcome"),
		retries: r.Counters(prefix+"retries_total", "Retries of updates.", "stream"),
		removed: r.Counters(prefix+"versions_removed_total", "Old versions that model streams removed: newer ones are there, or the store of bundles was full.", "stream"),
		apply:   r.Histograms(prefix+"apply_seconds", "From the first try to apply an update to its end.", obs.Seconds(), "stream"),
	}
}

// jobMetrics are those of one job.
type jobMetrics struct {
	outcomes map[string]obs.Counter
	retries  obs.Counter
	removed  obs.Counter
	apply    obs.Histogram
}

// of is the metrics of one job, all of which are there from the start.
func (m *Metrics) of(name string) *jobMetrics {
	one := &jobMetrics{
		outcomes: map[string]obs.Counter{},
		retries:  m.retries.WithLabelValues(name), removed: m.removed.WithLabelValues(name), apply: m.apply.WithLabelValues(name),
	}
	for _, outcome := range outcomes() {
		one.outcomes[outcome] = m.updates.WithLabelValues(name, outcome)
	}
	return one
}

package sidecar

import (
	"time"

	"github.com/topsail-serving/topsail/internal/obs"
	"github.com/topsail-serving/topsail/serving"
)

// hostFamilies are the metrics of hosts.
type hostFamilies struct {
	loads   *obs.CounterVec
	unloads *obs.CounterVec
	seconds *obs.HistogramVec
}

func newHostFamilies(r *obs.Registry) *hostFamilies {
	labels := []string{"model", "version", "replica"}
	return &hostFamilies{
		loads:   r.Counters("topsail_host_loads_total", "Loads of hosted model versions, by result: loaded or failed.", append(labels, "result")...),
		unloads: r.Counters("topsail_host_unloads_total", "Hosted model versions that were unloaded to free memory.", labels...),
		seconds: r.Histograms("topsail_host_load_seconds", "Time to load a hosted model version: to fetch it, to free memory and to load it.", obs.Seconds(), labels...),
	}
}

func (f *hostFamilies) forget(own obs.Labels) {
	f.loads.DeletePartialMatch(own)
	f.unloads.DeletePartialMatch(own)
	f.seconds.DeletePartialMatch(own)
}

// hostMetrics are those of one host.
type hostMetrics struct {
	ok, failed, unloads obs.Counter
	seconds             obs.Histogram
}

func (m *Metrics) host(id serving.ModelID, replica string) *hostMetrics {
	l := []string{id.Model, id.Version, replica}[:3:3]
	return &hostMetrics{
		ok: m.hosts.loads.WithLabelValues(append(l, "loaded")...), failed: m.hosts.loads.WithLabelValues(append(l, "failed")...),
		unloads: m.hosts.unloads.WithLabelValues(l...), seconds: m.hosts.seconds.WithLabelValues(l...),
	}
}

func (m *hostMetrics) loaded(took time.Duration, err error) {
	if err != nil {
		m.failed.Inc()
		return
	}
	m.ok.Inc()
	m.seconds.Observe(took.Seconds())
}

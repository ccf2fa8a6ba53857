package sidecar

import (
	"regexp"
	"slices"
	"strings"
	"sync"

	"topsail/internal/obs"
	"topsail/rpc"
	"topsail/serving"
)

// maxModelMetrics bounds the series that one container may expose.
const maxModelMetrics = 1000

var (
	metricName = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_]*$`)
	ownNames   = []string{"topsail_", "go_", "process_", "promhttp_"}
)

// modelMetrics exposes what models count themselves. It describes nothing in
// advance, since nobody knows what models will count.
type modelMetrics struct {
	mu     sync.Mutex
	latest map[metricSource][]rpc.Metric
	kinds  map[string]rpc.MetricKind // a name keeps its kind, or a scrape would fail
}

// metricSource is the container that a metric comes from.
type metricSource struct {
	model   serving.ModelID
	replica string
}

func newModelMetrics() *modelMetrics {
	return &modelMetrics{latest: map[metricSource][]rpc.Metric{}, kinds: map[string]rpc.MetricKind{}}
}

// put replaces what is known of the metrics named in list. Metrics that cannot be
// exposed are left out.
func (m *modelMetrics) put(from metricSource, list []rpc.Metric) {
	m.mu.Lock()
	defer m.mu.Unlock()
	known := m.latest[from]
	for _, metric := range list {
		if !m.sound(&metric) {
			continue
		}
		at := slices.IndexFunc(known, func(k rpc.Metric) bool { return k.Name == metric.Name && slices.Equal(k.Labels, metric.Labels) })
		switch {
		case at >= 0:
			known[at] = metric
		case len(known) < maxModelMetrics:
			known = append(known, metric)
		}
	}
	m.latest[from] = known
}

func (m *modelMetrics) sound(metric *rpc.Metric) bool {
	if !metricName.MatchString(metric.Name) || slices.ContainsFunc(ownNames, func(own string) bool { return strings.HasPrefix(metric.Name, own) }) {
		return false
	}
	seen := map[string]bool{"model": true, "version": true, "replica": true}
	for _, l := range metric.Labels {
		if !metricName.MatchString(l.Key) || strings.HasPrefix(l.Key, "__") || seen[l.Key] {
			return false
		}
		seen[l.Key] = true
	}
	if kind, ok := m.kinds[metric.Name]; ok {
		return kind == metric.Kind
	}
	m.kinds[metric.Name] = metric.Kind
	return true
}

func (m *modelMetrics) forget(from metricSource) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.latest, from)
}

// Describe and Collect implement obs.Collector.
func (m *modelMetrics) Describe(chan<- *obs.Desc) {}

func (m *modelMetrics) Collect(ch chan<- obs.Metric) {
	m.mu.Lock()
	defer m.mu.Unlock()
	help := map[string]string{} // one per name, as the exposition format wants
	for from, list := range m.latest {
		for i := range list {
			if h, ok := help[list[i].Name]; ok {
				list[i].Help = h
			}
			help[list[i].Name] = list[i].Help
			if sample, err := expose(from, &list[i]); err == nil {
				ch <- sample
			}
		}
	}
}

func expose(from metricSource, metric *rpc.Metric) (obs.Metric, error) {
	keys, values := []string{"model", "version", "replica"}, []string{from.model.Model, from.model.Version, from.replica}
	for _, l := range metric.Labels {
		keys, values = append(keys, l.Key), append(values, strings.ToValidUTF8(l.Value, "?"))
	}
	desc := obs.NewDesc(metric.Name, metric.Help, keys...)
	switch metric.Kind {
	case rpc.MetricCounter:
		return obs.CounterOf(desc, metric.Value, values...)
	case rpc.MetricGauge:
		return obs.GaugeOf(desc, metric.Value, values...)
	}
	buckets := make(map[float64]uint64, len(metric.Buckets))
	for _, b := range metric.Buckets {
		buckets[b.Upper] = b.Count
	}
	return obs.HistogramOf(desc, metric.Count, metric.Sum, buckets, values...)
}

package sidecar

import (
	"cmp"
	"math"
	"regexp"
	"slices"
	"strings"
	"sync"

	"topsail/internal/obs"
	"topsail/rpc"
	"topsail/serving"
)

// What one container may expose: series, labels of each, and bytes of each one's
// name, labels and help.
const (
	maxModelMetrics = 1000
	maxModelLabels  = 16
	maxModelText    = 4096
)

var (
	metricName = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_]*$`)
	ownNames   = []string{"topsail_", "go_", "process_", "promhttp_"}
	ownLabels  = []string{"model", "version", "replica", "le", "quantile"} // the last two belong to the format
)

// modelMetrics exposes what models count themselves. It describes nothing in
// advance, since nobody knows what models will count. Nothing that a model sends
// may break a scrape, which would take all other metrics with it.
type modelMetrics struct {
	mu     sync.Mutex
	latest map[metricSource]map[string]rpc.Metric // by seriesKey
}

// metricSource is the container that a metric comes from.
type metricSource struct {
	model   serving.ModelID
	replica string
}

func newModelMetrics() *modelMetrics {
	return &modelMetrics{latest: map[metricSource]map[string]rpc.Metric{}}
}

// put replaces what is known of the metrics in list. Metrics that cannot be
// exposed are left out.
func (m *modelMetrics) put(from metricSource, list []rpc.Metric) {
	m.mu.Lock()
	defer m.mu.Unlock()
	known := m.latest[from]
	if known == nil {
		known = map[string]rpc.Metric{}
		m.latest[from] = known
	}
	for _, metric := range list {
		if !clean(&metric) {
			continue
		}
		key := seriesKey(&metric)
		if _, ok := known[key]; ok || len(known) < maxModelMetrics {
			known[key] = metric
		}
	}
}

// clean brings a metric into the one form in which its series is exposed, and
// says whether it can be.
func clean(metric *rpc.Metric) bool {
	if !metricName.MatchString(metric.Name) || slices.ContainsFunc(ownNames, func(own string) bool { return strings.HasPrefix(metric.Name, own) }) {
		return false
	}
	metric.Help = strings.ToValidUTF8(metric.Help, "?")
	size := len(metric.Name) + len(metric.Help)
	// An empty value is the same as no label.
	labels := slices.DeleteFunc(slices.Clone(metric.Labels), func(l rpc.Label) bool { return l.Value == "" })
	slices.SortFunc(labels, func(a, b rpc.Label) int { return cmp.Compare(a.Key, b.Key) })
	for i := range labels {
		l := &labels[i]
		l.Value = strings.ToValidUTF8(l.Value, "?")
		size += len(l.Key) + len(l.Value)
		if !metricName.MatchString(l.Key) || strings.HasPrefix(l.Key, "__") || slices.Contains(ownLabels, l.Key) || (i > 0 && labels[i-1].Key == l.Key) {
			return false
		}
	}
	metric.Labels = labels
	return len(labels) <= maxModelLabels && size <= maxModelText
}

// seriesKey tells the series of one container apart. 0xFF is in no valid text.
func seriesKey(metric *rpc.Metric) string {
	var b strings.Builder
	b.WriteString(metric.Name)
	for _, l := range metric.Labels {
		b.WriteString("\xff" + l.Key + "\xff" + l.Value)
	}
	return b.String()
}

func (m *modelMetrics) forget(from metricSource) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.latest, from)
}

// Describe and Collect implement obs.Collector.
func (m *modelMetrics) Describe(chan<- *obs.Desc) {}

func (m *modelMetrics) Collect(ch chan<- obs.Metric) {
	families := map[string]rpc.Metric{} // the first of each name, whose kind and help stand for all
	for _, s := range m.series() {
		first, ok := families[s.metric.Name]
		if !ok {
			if nameTaken(s.metric.Name, families) {
				continue
			}
			first = s.metric
			families[first.Name] = first
		}
		if s.metric.Kind != first.Kind {
			continue
		}
		s.metric.Help = first.Help
		if sample, err := expose(s.from, &s.metric); err == nil {
			ch <- sample
		}
	}
}

// nameTaken says whether a histogram exposes the name as one of its parts.
func nameTaken(name string, families map[string]rpc.Metric) bool {
	for _, part := range []string{"_bucket", "_count", "_sum"} {
		if whole, ok := strings.CutSuffix(name, part); ok && families[whole].Kind == rpc.MetricHistogram {
			return true
		}
	}
	return false
}

type modelSeries struct {
	from   metricSource
	key    string
	metric rpc.Metric
}

// series lists all, in an order that is the same for every scrape and has a
// histogram before the names that it could be confused with.
func (m *modelMetrics) series() []modelSeries {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []modelSeries
	for from, known := range m.latest {
		for key, metric := range known {
			all = append(all, modelSeries{from, key, metric})
		}
	}
	slices.SortFunc(all, func(a, b modelSeries) int {
		return cmp.Or(
			cmp.Compare(a.metric.Name, b.metric.Name),
			cmp.Compare(a.from.model.String(), b.from.model.String()),
			cmp.Compare(a.from.replica, b.from.replica),
			cmp.Compare(a.key, b.key),
		)
	})
	return all
}

func expose(from metricSource, metric *rpc.Metric) (obs.Metric, error) {
	keys, values := []string{"model", "version", "replica"}, []string{from.model.Model, from.model.Version, from.replica}
	for _, l := range metric.Labels {
		keys, values = append(keys, l.Key), append(values, l.Value)
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
		if !math.IsNaN(b.Upper) {
			buckets[b.Upper] = b.Count
		}
	}
	return obs.HistogramOf(desc, metric.Count, metric.Sum, buckets, values...)
}

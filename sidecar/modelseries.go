package sidecar

import (
	"cmp"
	"math"
	"regexp"
	"slices"
	"strings"

	"github.com/topsail-serving/topsail/internal/obs"
	"github.com/topsail-serving/topsail/rpc"
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
	ownLabels  = []string{"model", "version", "replica", "container", "le", "quantile"} // the last two belong to the format
)

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

// seriesKey distinguishes the series of one container. 0xFF is in no valid text.
func seriesKey(metric *rpc.Metric) string {
	var b strings.Builder
	b.WriteString(metric.Name)
	for _, l := range metric.Labels {
		b.WriteString("\xff" + l.Key + "\xff" + l.Value)
	}
	return b.String()
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

func expose(to *obs.SeriesWriter, from metricSource, metric *rpc.Metric) {
	keys, values := []string{"model", "version", "replica"}, []string{from.model.Model, from.model.Version, from.replica}
	if from.container != "" {
		keys, values = append(keys, "container"), append(values, from.container)
	}
	for _, l := range metric.Labels {
		keys, values = append(keys, l.Key), append(values, l.Value)
	}
	desc := obs.NewDesc(metric.Name, metric.Help, keys...)
	switch metric.Kind {
	case rpc.MetricCounter:
		to.Counter(desc, metric.Value, values...)
	case rpc.MetricGauge:
		to.Gauge(desc, metric.Value, values...)
	default:
		upTo := make(map[float64]uint64, len(metric.Buckets))
		for _, b := range metric.Buckets {
			if !math.IsNaN(b.Upper) {
				upTo[b.Upper] = b.Count
			}
		}
		to.Cumulative(desc, upTo, metric.Count, metric.Sum, values...)
	}
}

package obs

import (
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// Source is what writes the series of its metrics when someone reads them, as many as there are then:
// as a Collector does, and without making a Metric of each where they are only read.
type Source interface {
	Descs() []*Desc
	WriteSeries(to *SeriesWriter)
}

// Add registers a source.
func (r *Registry) Add(s Source) { r.register(sourceCollector{s}, s.Descs()...) }

// sourceCollector makes metrics of what a source writes.
type sourceCollector struct{ source Source }

func (c sourceCollector) Describe(to chan<- *prometheus.Desc) { describe(c.source.Descs(), to) }

func (c sourceCollector) Collect(to chan<- Metric) { c.source.WriteSeries(&SeriesWriter{metrics: to}) }

// SeriesWriter takes the series of a source: it makes metrics of them, or has them read, which takes
// no memory. A series whose labels cannot be exposed is left out of the metrics.
type SeriesWriter struct {
	metrics chan<- Metric // nil: they are read
	readers Readers
	series  Series
}

// Counter writes a counter, with values for the labels of its description. One at 0, as most causes of
// failures are, is on pages and is not read.
func (w *SeriesWriter) Counter(d *Desc, v float64, labels ...string) {
	if w.metrics != nil {
		w.send(CounterOf(d, v, slices.Clone(labels)...))
	} else if v != 0 {
		w.value(dto.MetricType_COUNTER, d, v, labels)
	}
}

// Gauge writes a gauge.
func (w *SeriesWriter) Gauge(d *Desc, v float64, labels ...string) {
	if w.metrics != nil {
		w.send(GaugeOf(d, v, slices.Clone(labels)...))
	} else {
		w.value(dto.MetricType_GAUGE, d, v, labels)
	}
}

func (w *SeriesWriter) value(kind dto.MetricType, d *Desc, v float64, labels []string) {
	if read := w.readers[d.name]; read != nil {
		w.series = Series{kind: kind, names: d.labels, values: append(w.series.values[:0], labels...), Value: v}
		read(&w.series)
	}
}

// Histogram writes a histogram, whose parts are those of a Series.
func (w *SeriesWriter) Histogram(d *Desc, bounds []float64, counts []uint64, sum float64, labels ...string) {
	if w.metrics == nil {
		if read := w.readers[d.name]; read != nil {
			values := append(w.series.values[:0], labels...)
			w.series = Series{kind: dto.MetricType_HISTOGRAM, names: d.labels, values: values, Bounds: bounds, Counts: counts, Sum: sum}
			read(&w.series)
		}
		return
	}
	all, upTo := uint64(0), make(map[float64]uint64, len(bounds))
	for i, n := range counts {
		if all += n; i < len(bounds) {
			upTo[bounds[i]] = all
		}
	}
	w.send(HistogramOf(d, all, sum, upTo, slices.Clone(labels)...))
}

func (w *SeriesWriter) send(m Metric, err error) {
	if err == nil {
		w.metrics <- m
	}
}

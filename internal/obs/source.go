package obs

import (
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// Add registers metrics whose series write writes when someone asks for them, as many as there are then.
// What it writes of metrics that are not in descs is on pages, and Read does not read it.
func (r *Registry) Add(write func(to *SeriesWriter), descs ...*Desc) {
	r.register(source{write, descs}, descs...)
}

// source is what Add registers, as the library has it.
type source struct {
	write func(to *SeriesWriter)
	descs []*Desc
}

// Describe implements prometheus.Collector.
func (s source) Describe(to chan<- *prometheus.Desc) {
	for _, d := range s.descs {
		to <- d.prom
	}
}

// Collect implements prometheus.Collector.
func (s source) Collect(to chan<- prometheus.Metric) { s.write(&SeriesWriter{metrics: to}) }

// SeriesWriter takes series: it makes metrics of them, or has them read, which takes no memory. A series
// whose names or labels cannot be exposed is left out of the metrics.
type SeriesWriter struct {
	metrics chan<- prometheus.Metric // nil: they are read
	readers Readers
	series  Series
}

// Counter writes a counter, with values for the labels of its description. One at 0, as most causes of
// failures are, is on pages and is not read.
func (w *SeriesWriter) Counter(d *Desc, v float64, labels ...string) {
	if w.metrics != nil {
		w.send(prometheus.NewConstMetric(d.prom, prometheus.CounterValue, v, slices.Clone(labels)...))
	} else if v != 0 {
		w.value(dto.MetricType_COUNTER, d, v, labels)
	}
}

// Gauge writes a gauge.
func (w *SeriesWriter) Gauge(d *Desc, v float64, labels ...string) {
	if w.metrics != nil {
		w.send(prometheus.NewConstMetric(d.prom, prometheus.GaugeValue, v, slices.Clone(labels)...))
	} else {
		w.value(dto.MetricType_GAUGE, d, v, labels)
	}
}

// Flag writes a gauge that is 1 or 0.
func (w *SeriesWriter) Flag(d *Desc, on bool, labels ...string) {
	v := 0.
	if on {
		v = 1
	}
	w.Gauge(d, v, labels...)
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
	w.Cumulative(d, upTo, all, sum, labels...)
}

// Cumulative writes a histogram of n values, by how many are up to each bound. It is on pages, and is not
// read.
func (w *SeriesWriter) Cumulative(d *Desc, upTo map[float64]uint64, n uint64, sum float64, labels ...string) {
	if w.metrics != nil {
		w.send(prometheus.NewConstHistogram(d.prom, n, sum, upTo, slices.Clone(labels)...))
	}
}

func (w *SeriesWriter) send(m prometheus.Metric, err error) {
	if err == nil {
		w.metrics <- m
	}
}

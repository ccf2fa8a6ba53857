package obs

import (
	"math"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// Series is one series of a metric, as it is read. It is valid until its reader returns.
type Series struct {
	kind          dto.MetricType
	names, values []string // of labels

	Value float64 // of a counter or a gauge

	// Of a histogram: the upper bounds of its buckets, ascending, how many values are in each bucket
	// and in one more beyond all bounds, and the sum of the values.
	Bounds []float64
	Counts []uint64
	Sum    float64
}

// Label is the value of a label, or empty.
func (s *Series) Label(name string) string {
	for i, n := range s.names {
		if n == name {
			return s.values[i]
		}
	}
	return ""
}

// AppendLabels appends the values of all labels, which tell the series of a metric apart.
func (s *Series) AppendLabels(to []byte) []byte {
	for _, v := range s.values {
		to = append(append(to, 0), v...)
	}
	return to
}

// Count is how many values a histogram has.
func (s *Series) Count() (n uint64) {
	for _, some := range s.Counts {
		n += some
	}
	return n
}

// Readers are what reads the series of metrics, by the metrics' names.
type Readers map[string]func(*Series)

// Read has readers read the series of their metrics, as they are now. Nothing else is collected,
// and no text is made. A series that fails is left out.
func (r *Registry) Read(readers Readers) {
	r.mu.Lock()
	parts := slices.Clone(r.parts)
	r.mu.Unlock()
	for _, p := range parts {
		if slices.ContainsFunc(p.descs, func(d *Desc) bool { return readers[d.name] != nil }) {
			p.read(readers)
		}
	}
}

// part is a collector, with the metrics that it has.
type part struct {
	collector prometheus.Collector
	descs     []*Desc
}

func (p part) read(readers Readers) {
	if s, ok := p.collector.(source); ok {
		s.write(&SeriesWriter{readers: readers})
		return
	}
	of := make(map[*prometheus.Desc]func(*Series), len(p.descs))
	for _, d := range p.descs {
		of[d.prom] = readers[d.name]
	}
	metrics := make(chan prometheus.Metric, 64)
	go func() {
		defer close(metrics)
		p.collector.Collect(metrics)
	}()
	var series Series
	for m := range metrics {
		read, sample := of[m.Desc()], Sample{}
		if read != nil && m.Write(&sample) == nil {
			series.set(&sample)
			read(&series)
		}
	}
}

// ReadFamilies has readers read the series of families.
func (readers Readers) ReadFamilies(families []*Family) {
	var series Series
	for _, f := range families {
		if read := readers[f.GetName()]; read != nil {
			for _, sample := range f.GetMetric() {
				series.set(sample)
				read(&series)
			}
		}
	}
}

func kindOf(s *Sample) dto.MetricType {
	switch {
	case s.GetHistogram() != nil:
		return dto.MetricType_HISTOGRAM
	case s.GetCounter() != nil:
		return dto.MetricType_COUNTER
	}
	return dto.MetricType_GAUGE
}

// set makes it that of a sample. Of a histogram whose buckets make no sense there are none.
func (s *Series) set(from *Sample) {
	*s = Series{kind: kindOf(from), names: s.names[:0], values: s.values[:0], Bounds: s.Bounds[:0], Counts: s.Counts[:0]}
	for _, l := range from.GetLabel() {
		s.names, s.values = append(s.names, l.GetName()), append(s.values, l.GetValue())
	}
	s.Value = from.GetCounter().GetValue() + from.GetGauge().GetValue() // one of them is there
	h := from.GetHistogram()
	if h == nil {
		return
	}
	s.Sum = h.GetSampleSum()
	upTo := uint64(0)
	for _, b := range h.GetBucket() {
		bound, n := b.GetUpperBound(), b.GetCumulativeCount()
		switch {
		case math.IsInf(bound, 1):
			continue
		case n < upTo:
			s.Bounds, s.Counts = s.Bounds[:0], s.Counts[:0]
			return
		}
		s.Bounds, s.Counts = append(s.Bounds, bound), append(s.Counts, n-upTo)
		upTo = n
	}
	s.Counts = append(s.Counts, max(h.GetSampleCount(), upTo)-upTo)
}

package rpc

// MetricKind is the kind of a model's own metric.
type MetricKind uint8

const (
	MetricCounter   MetricKind = 1
	MetricGauge     MetricKind = 2
	MetricHistogram MetricKind = 3
)

const metricHelp = 1

const (
	maxMetricLabels  = 64
	maxMetricBuckets = 1024
)

// Metric is one metric of a model, as a total since its container started.
type Metric struct {
	Kind    MetricKind
	Name    string
	Help    string
	Labels  []Label
	Value   float64 // of a counter or gauge
	Count   uint64  // of a histogram
	Sum     float64
	Buckets []Bucket
}

// Label is one label of a metric.
type Label struct{ Key, Value string }

// Bucket counts the observations up to its upper bound, cumulatively.
type Bucket struct {
	Upper float64
	Count uint64
}

// AppendMetrics appends the body of a METRICS frame.
func AppendMetrics(b []byte, list ...Metric) []byte {
	b = appendU32(b, uint32(len(list)))
	for i := range list {
		b = appendMetric(b, &list[i])
	}
	return b
}

func appendMetric(b []byte, m *Metric) []byte {
	b, at := openSize(b)
	b = appendStr8(append(b, uint8(m.Kind)), clip(m.Name, 255))
	b = appendU16(b, uint16(len(m.Labels)))
	for _, l := range m.Labels {
		b = appendStr16(appendStr8(b, clip(l.Key, 255)), clip(l.Value, 1<<16-1))
	}
	if m.Kind == MetricHistogram {
		b = appendF64(appendU64(b, m.Count), m.Sum)
		b = appendU16(b, uint16(len(m.Buckets)))
		for _, bucket := range m.Buckets {
			b = appendU64(appendF64(b, bucket.Upper), bucket.Count)
		}
	} else {
		b = appendF64(b, m.Value)
	}
	if m.Help != "" {
		b = appendFieldString(b, metricHelp, m.Help)
	}
	return closeSize(b, at)
}

// ParseMetrics reads the body of a METRICS frame; nothing points into body.
func ParseMetrics(body []byte) ([]Metric, error) {
	c := cursor{frame: "METRICS", b: body}
	var list []Metric
	for left := c.count(); left > 0 && c.err == nil; left-- {
		e := c.sub("entry")
		m := parseMetric(&e)
		if c.err = e.err; c.err == nil {
			list = append(list, m)
		}
	}
	return list, c.err
}

func parseMetric(e *cursor) Metric {
	m := Metric{Kind: MetricKind(e.u8("metric kind")), Name: string(e.str8("metric name"))}
	labels := e.u16("label count")
	if labels > maxMetricLabels {
		e.fail("label count", "is above 64")
	}
	for i := uint16(0); i < labels && e.err == nil; i++ {
		m.Labels = append(m.Labels, Label{Key: string(e.str8("label key")), Value: string(e.str16("label value"))})
	}
	switch {
	case e.err != nil:
	case m.Kind == MetricHistogram:
		m.Count, m.Sum = e.u64("histogram count"), e.f64("histogram sum")
		buckets := e.u16("bucket count")
		if buckets > maxMetricBuckets {
			e.fail("bucket count", "is above 1024")
		}
		for i := uint16(0); i < buckets && e.err == nil; i++ {
			m.Buckets = append(m.Buckets, Bucket{Upper: e.f64("bucket bound"), Count: e.u64("bucket count")})
		}
	case m.Kind == MetricCounter || m.Kind == MetricGauge:
		m.Value = e.f64("metric value")
	default:
		e.fail("metric kind", "is unknown")
	}
	for e.more() {
		if tag, value := e.field(); tag == metricHelp {
			m.Help = string(value.rest())
		}
	}
	return m
}

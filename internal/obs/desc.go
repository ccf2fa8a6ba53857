package obs

import "github.com/prometheus/client_golang/prometheus"

// Desc describes a metric. The metrics library's own does not say the name.
type Desc struct {
	prom   *prometheus.Desc
	name   string
	labels []string
}

// NewDesc describes a metric that a Collector or a Source makes on demand.
func NewDesc(name, help string, labels ...string) *Desc {
	return &Desc{prometheus.NewDesc(name, help, labels, nil), name, labels}
}

// only describes the one metric of a collector of the library.
func only(c prometheus.Collector, name string) *Desc {
	one := make(chan *prometheus.Desc, 1)
	c.Describe(one)
	return &Desc{prom: <-one, name: name}
}

func describe(descs []*Desc, to chan<- *prometheus.Desc) {
	for _, d := range descs {
		to <- d.prom
	}
}

// collector is a Collector as the library has it.
type collector struct {
	Collector
	descs []*Desc
}

// Describe implements prometheus.Collector.
func (c collector) Describe(to chan<- *prometheus.Desc) { describe(c.descs, to) }

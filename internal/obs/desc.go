package obs

import "github.com/prometheus/client_golang/prometheus"

// Desc describes a metric. The metrics library's own does not say the name.
type Desc struct {
	prom   *prometheus.Desc
	name   string
	labels []string
}

// NewDesc describes a metric whose series are written when they are read.
func NewDesc(name, help string, labels ...string) *Desc {
	return &Desc{prometheus.NewDesc(name, help, labels, nil), name, labels}
}

// only describes the one metric of a collector of the library.
func only(c prometheus.Collector, name string) *Desc {
	one := make(chan *prometheus.Desc, 1)
	c.Describe(one)
	return &Desc{prom: <-one, name: name}
}

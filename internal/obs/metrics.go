// Package obs holds what makes Topsail observable: metrics and logs. It is the
// one package that knows the metrics library.
package obs

import (
	"errors"
	"net/http"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Counter, Histogram and the vectors are the metrics library's own; the aliases
// keep it out of the packages that count.
type (
	Counter      = prometheus.Counter
	Histogram    = prometheus.Observer
	CounterVec   = prometheus.CounterVec
	HistogramVec = prometheus.HistogramVec
	GaugeVec     = prometheus.GaugeVec
	Labels       = prometheus.Labels
)

// Registry collects the metrics of one process.
type Registry struct {
	prom *prometheus.Registry

	mu    sync.Mutex // guards parts
	parts []part     // what Read reads
}

// NewRegistry holds the metrics of the Go runtime and the process from the start.
func NewRegistry() *Registry {
	r := &Registry{prom: prometheus.NewRegistry()}
	r.prom.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return r
}

// Handler serves the metrics as Prometheus text, and what it is asked for as FamiliesType.
func (r *Registry) Handler() http.Handler {
	all := promhttp.HandlerFor(r.prom, promhttp.HandlerOpts{Registry: r.prom})
	return http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		if !r.some(w, request) {
			all.ServeHTTP(w, request)
		}
	})
}

// Counters registers a counter with labels.
func (r *Registry) Counters(name, help string, labels ...string) *CounterVec {
	v := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	r.register(v, only(v, name))
	return v
}

// SharedCounters is Counters for what several parts of a process count: the first registers it.
func (r *Registry) SharedCounters(name, help string, labels ...string) *CounterVec {
	v := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	err := r.prom.Register(v)
	if there, ok := errors.AsType[prometheus.AlreadyRegisteredError](err); ok {
		return there.ExistingCollector.(*CounterVec)
	}
	if err != nil {
		panic(err) // as MustRegister does
	}
	r.keep(v, only(v, name))
	return v
}

// Gauges registers a gauge with labels.
func (r *Registry) Gauges(name, help string, labels ...string) *GaugeVec {
	v := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, labels)
	r.register(v, only(v, name))
	return v
}

// Histograms registers a histogram with labels.
func (r *Registry) Histograms(name, help string, buckets []float64, labels ...string) *HistogramVec {
	v := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, labels)
	r.register(v, only(v, name))
	return v
}

// CounterFunc registers a counter that is read when metrics are asked for.
func (r *Registry) CounterFunc(name, help string, read func() float64) {
	c := prometheus.NewCounterFunc(prometheus.CounterOpts{Name: name, Help: help}, read)
	r.register(c, only(c, name))
}

// GaugeFunc registers a gauge that is read when metrics are asked for.
func (r *Registry) GaugeFunc(name, help string, read func() float64) {
	g := prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, read)
	r.register(g, only(g, name))
}

func (r *Registry) register(c prometheus.Collector, descs ...*Desc) {
	r.prom.MustRegister(c)
	r.keep(c, descs...)
}

// keep lets Read read a collector.
func (r *Registry) keep(c prometheus.Collector, descs ...*Desc) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.parts = append(r.parts, part{c, descs})
}

// Seconds are histogram bounds for latencies, 100 µs to 10 s, four a decade.
func Seconds() []float64 {
	return []float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10}
}

// FineSeconds are Seconds with ten a decade from 1 ms to 1 s, where most models are.
func FineSeconds() []float64 {
	bounds := []float64{.0001, .00025, .0005}
	for _, decade := range []float64{.001, .01, .1} {
		for _, step := range []float64{1, 1.25, 1.6, 2, 2.5, 3.2, 4, 5, 6.3, 8} {
			bounds = append(bounds, decade*step)
		}
	}
	return append(bounds, 1, 2.5, 5, 10)
}

// Sizes are histogram bounds for batch sizes.
func Sizes() []float64 { return prometheus.ExponentialBuckets(1, 2, 13) }

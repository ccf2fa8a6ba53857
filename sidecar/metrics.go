package sidecar

import (
	"time"

	"github.com/topsail-serving/topsail/internal/demand"
	"github.com/topsail-serving/topsail/internal/obs"
	"github.com/topsail-serving/topsail/rpc"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/sidecar/queue"
)

// Metrics are the metrics of all sidecars of one process.
type Metrics struct {
	answers *obs.CounterVec
	dropped *obs.CounterVec
	learned *obs.CounterVec
	sizes   *obs.HistogramVec
	service *obs.HistogramVec
	waited  *obs.HistogramVec
	stages  *stageFamilies
	hosts   *hostFamilies
	custom  *modelMetrics
	gauges  *poolGauges

	firstPart, nextPart *obs.HistogramVec
}

// NewMetrics registers them.
func NewMetrics(r *obs.Registry) *Metrics {
	labels := []string{"model", "version", "replica"}
	m := &Metrics{
		answers:   r.Counters("topsail_sidecar_answers_total", "Answers to gateways, by status.", append(labels, "status")...),
		dropped:   r.Counters("topsail_sidecar_dropped_total", "Queries refused or dropped before their batch, by status.", append(labels, "status")...),
		learned:   r.Counters("topsail_sidecar_feedback_total", "Feedback to containers, by result: forwarded or dropped.", append(labels, "result")...),
		sizes:     r.Histograms("topsail_sidecar_batch_size", "Inputs per batch.", obs.Sizes(), labels...),
		service:   r.Histograms("topsail_sidecar_batch_seconds", "Time from sending a batch to its last answer; of queries side by side, divided by how many may run.", obs.FineSeconds(), labels...),
		waited:    r.Histograms("topsail_sidecar_queue_seconds", "Time that queries waited for their batch.", obs.Seconds(), labels...),
		firstPart: r.Histograms("topsail_sidecar_first_part_seconds", "Time from a query's arrival to the first part of its answer.", obs.Seconds(), labels...),
		nextPart:  r.Histograms("topsail_sidecar_next_part_seconds", "Time between two parts of an answer.", obs.Seconds(), labels...),
		stages:    newStageFamilies(r),
		hosts:     newHostFamilies(r),
		custom:    newModelMetrics(),
		gauges:    newPoolGauges(),
	}
	r.Add(m.custom.writeSeries) // whose names are not known before
	r.Add(m.gauges.writeSeries, queueDesc, waitingDesc, waitDesc, readyDesc, sizeDesc, runningDesc, usualDesc, profileDesc, startDesc,
		stageQueueDesc, stageReadyDesc, stageWorkersDesc, hostModelsDesc, hostMemoryDesc)
	return m
}

// pool prepares the metrics of one pool, so that the path of a query looks up none.
func (m *Metrics) pool(id serving.ModelID, replica string) *poolMetrics {
	l := []string{id.Model, id.Version, replica}[:3:3]
	p := &poolMetrics{
		sizes:     m.sizes.WithLabelValues(l...),
		service:   m.service.WithLabelValues(l...),
		waited:    m.waited.WithLabelValues(l...),
		firstPart: m.firstPart.WithLabelValues(l...),
		nextPart:  m.nextPart.WithLabelValues(l...),
		stages:    m.stages,
		labels:    l,
		own:       ownSeries(id, replica),

		feedbackForwarded: m.learned.WithLabelValues(append(l, "forwarded")...),
		feedbackDropped:   m.learned.WithLabelValues(append(l, "dropped")...),
	}
	for s := range p.answers {
		p.answers[s] = m.answers.WithLabelValues(append(l, rpc.Status(s).String())...)
		p.dropped[s] = m.dropped.WithLabelValues(append(l, rpc.Status(s).String())...)
	}
	return p
}

// forget removes the series of one pool.
func (m *Metrics) forget(id serving.ModelID, replica string) {
	l := ownSeries(id, replica)
	m.answers.DeletePartialMatch(l)
	m.dropped.DeletePartialMatch(l)
	m.learned.DeletePartialMatch(l)
	m.sizes.DeletePartialMatch(l)
	m.service.DeletePartialMatch(l)
	m.waited.DeletePartialMatch(l)
	m.firstPart.DeletePartialMatch(l)
	m.nextPart.DeletePartialMatch(l)
	m.stages.forget(l)
	m.hosts.forget(l)
}

// ownSeries are the labels that all series of a pool have.
func ownSeries(id serving.ModelID, replica string) obs.Labels {
	return obs.Labels{"model": id.Model, "version": id.Version, "replica": replica}
}

type poolMetrics struct {
	answers, dropped       [rpc.Statuses]obs.Counter
	sizes, service, waited obs.Histogram
	firstPart, nextPart    obs.Histogram
	demand                 *demand.Tally // while the sidecar runs

	stages *stageFamilies
	labels []string   // model, version, replica
	own    obs.Labels // the same by name

	feedbackForwarded, feedbackDropped obs.Counter // an entry counts at each container
}

// Batch, Waited and Dropped implement batch.Observer.
func (p *poolMetrics) Batch(n int, took time.Duration) {
	p.sizes.Observe(float64(n))
	p.service.Observe(took.Seconds())
	p.demand.Batch(n, took)
}

func (p *poolMetrics) Waited(d time.Duration) {
	p.waited.Observe(d.Seconds())
	p.demand.Waited(d)
}

func (p *poolMetrics) Dropped(status rpc.Status) {
	p.dropped[status].Inc()
	if status != rpc.StatusCancelled { // the client no longer waits, which says nothing of capacity
		p.demand.Refused()
	}
}

// ran observes a query that ran beside others, of which there could be so many: it took its share of the
// container's time.
func (p *poolMetrics) ran(took time.Duration, of int) { p.Batch(1, took/time.Duration(max(of, 1))) }

// part observes a part of an answer, which is sent now.
func (p *poolMetrics) part(it *queue.Item) {
	now := time.Now()
	if it.Part.IsZero() {
		p.firstPart.Observe(now.Sub(it.Arrived).Seconds())
	} else {
		p.nextPart.Observe(now.Sub(it.Part).Seconds())
	}
	it.Part = now
}

func (p *poolMetrics) answered(status rpc.Status) { p.answers[status].Inc() }

package sidecar

import (
	"time"

	"github.com/topsail-serving/topsail/internal/obs"
	"github.com/topsail-serving/topsail/rpc"
)

// stageFamilies are the metrics of the stages of pipelines.
type stageFamilies struct {
	inputs                 *obs.CounterVec
	sizes, service, waited *obs.HistogramVec
}

func newStageFamilies(r *obs.Registry) *stageFamilies {
	labels := []string{"model", "version", "replica", "stage"}
	return &stageFamilies{
		inputs:  r.Counters("topsail_stage_inputs_total", "Inputs of a stage, by how they ended there.", append(labels, "status")...),
		sizes:   r.Histograms("topsail_stage_batch_size", "Inputs per batch of a stage.", obs.Sizes(), labels...),
		service: r.Histograms("topsail_stage_batch_seconds", "Time from sending a batch to a worker to its last answer.", obs.Seconds(), labels...),
		waited:  r.Histograms("topsail_stage_queue_seconds", "Time that inputs waited for their batch at a stage.", obs.Seconds(), labels...),
	}
}

// forget removes the series of all stages of a pool.
func (f *stageFamilies) forget(pool obs.Labels) {
	f.inputs.DeletePartialMatch(pool)
	f.sizes.DeletePartialMatch(pool)
	f.service.DeletePartialMatch(pool)
	f.waited.DeletePartialMatch(pool)
}

// stageMetrics are those of one stage.
type stageMetrics struct {
	pool                   *pool
	stage                  *stage
	inputs                 [rpc.Statuses]obs.Counter
	sizes, service, waited obs.Histogram
}

// observe makes the metrics of a stage of p.
func (f *stageFamilies) observe(p *pool, s *stage) *stageMetrics {
	l := append(p.metrics.labels, s.Name)
	m := &stageMetrics{
		pool: p, stage: s,
		sizes:   f.sizes.WithLabelValues(l...),
		service: f.service.WithLabelValues(l...),
		waited:  f.waited.WithLabelValues(l...),
	}
	for status := range m.inputs {
		m.inputs[status] = f.inputs.WithLabelValues(append(l, rpc.Status(status).String())...)
	}
	return m
}

// ended counts how an input of the stage ended.
func (m *stageMetrics) ended(status rpc.Status) { m.inputs[status].Inc() }

// bounds says whether the stage is the one that bounds what its pool can do: as far
// as demand is concerned, that one stands for the model.
func (m *stageMetrics) bounds() bool {
	slowest, _ := m.pool.pipe.Load().slowest()
	return slowest == m.stage
}

// Batch, Waited and Dropped implement batch.Observer.
func (m *stageMetrics) Batch(n int, took time.Duration) {
	m.sizes.Observe(float64(n))
	m.service.Observe(took.Seconds())
	if m.bounds() {
		m.pool.metrics.demand.Batch(n, took)
	}
}

func (m *stageMetrics) Waited(d time.Duration) {
	m.waited.Observe(d.Seconds())
	if m.bounds() {
		m.pool.metrics.demand.Waited(d)
	}
}

func (m *stageMetrics) Dropped(status rpc.Status) { m.pool.metrics.Dropped(status) }

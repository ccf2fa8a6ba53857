package sidecar

import (
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/topsail-serving/topsail/internal/obs"
	"github.com/topsail-serving/topsail/serving"
)

var (
	queueDesc   = obs.NewDesc("topsail_sidecar_queue_length", "Queries that wait for a batch.", "model", "version", "replica")
	waitingDesc = obs.NewDesc("topsail_sidecar_queue_priority_length", "Queries that wait for a batch, by priority; 0 is the highest.", "model", "version", "replica", "priority")
	waitDesc    = obs.NewDesc("topsail_sidecar_wait_seconds", "How long a new query of the lowest priority would wait for its batch to start.", "model", "version", "replica")
	readyDesc   = obs.NewDesc("topsail_sidecar_containers_ready", "Containers that take batches.", "model", "version", "replica")
	sizeDesc    = obs.NewDesc("topsail_sidecar_batch_limit", "The maximum size of the next batch, or of the queries side by side.", "model", "version", "replica", "container")
	runningDesc = obs.NewDesc("topsail_sidecar_queries_running", "Queries that a container runs side by side; 0 for one that takes batches.", "model", "version", "replica", "container")

	startDesc = obs.NewDesc("topsail_sidecar_start_time_seconds", "When the replica began to serve the version, in Unix seconds, and as which generation of it.", "model", "version", "replica", "generation")

	stageQueueDesc   = obs.NewDesc("topsail_stage_queue_length", "Inputs that wait for a batch of a stage.", "model", "version", "replica", "stage")
	stageReadyDesc   = obs.NewDesc("topsail_stage_workers_ready", "Workers of a stage that take batches.", "model", "version", "replica", "stage")
	stageWorkersDesc = obs.NewDesc("topsail_stage_workers", "Configured workers of a stage, and its position in the pipeline.", "model", "version", "replica", "stage", "position", "after")

	hostModelsDesc = obs.NewDesc("topsail_host_models", "Model versions that a host has loaded.", "model", "version", "replica")
	hostMemoryDesc = obs.NewDesc("topsail_host_memory_bytes", "Memory of a host's container: in total (used), of its models (models), and its limit (budget).", "model", "version", "replica", "of")

	usualDesc   = obs.NewDesc("topsail_sidecar_usual_input_bytes", "Bytes of the inputs that sizes of batches are counted in; 0: each input is one, whatever its size.", "model", "version", "replica", "container")
	profileDesc = obs.NewDesc("topsail_sidecar_profile_seconds", "Estimated time of a batch, by its size.", "model", "version", "replica", "container", "size")
)

// poolGauges reads the state of pools when metrics are asked for.
type poolGauges struct {
	mu    sync.Mutex
	pools map[*pool]string // to the replica's name
}

func newPoolGauges() *poolGauges { return &poolGauges{pools: map[*pool]string{}} }

func (g *poolGauges) add(p *pool, replica string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.pools[p] = replica
}

func (g *poolGauges) remove(p *pool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.pools, p)
}

func (g *poolGauges) writeSeries(to *obs.SeriesWriter) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for p, replica := range g.pools {
		writePool(to, p, replica)
	}
}

func writePool(to *obs.SeriesWriter, p *pool, replica string) {
	labels := []string{p.model.Model, p.model.Version, replica}
	gauge := func(d *obs.Desc, v float64, more ...string) { to.Gauge(d, v, append(labels, more...)...) }
	pipe := p.pipe.Load()
	queued, wait := p.load(serving.LowestPriority)
	ready := 0
	for i, s := range pipe.stages {
		workers := len(*s.batchers.Load())
		if i == 0 || workers < ready {
			ready = workers
		}
		if pipe.text != "" {
			gauge(stageQueueDesc, float64(s.queue.Len()), s.Name)
			gauge(stageReadyDesc, float64(workers), s.Name)
			gauge(stageWorkersDesc, float64(max(1, s.Workers)), s.Name, strconv.Itoa(i), strings.Join(pipe.sources[i], ","))
		}
	}
	gauge(startDesc, float64(p.began.UnixMilli())/1000, p.model.Generation)
	gauge(queueDesc, float64(queued))
	for priority, span := range pipe.stages[0].queue.Spans(time.Now()) {
		if span.N > 0 || priority == 0 {
			gauge(waitingDesc, float64(span.N), strconv.Itoa(priority))
		}
	}
	gauge(waitDesc, wait.Seconds())
	gauge(readyDesc, float64(ready))
	if p.host != nil {
		models, used, taken, budget := p.host.memory()
		gauge(hostModelsDesc, float64(models))
		gauge(hostMemoryDesc, float64(used), "used")
		gauge(hostMemoryDesc, float64(taken), "models")
		gauge(hostMemoryDesc, float64(budget), "budget")
	}
	for _, s := range pipe.stages {
		for i, b := range *s.batchers.Load() {
			container := strconv.Itoa(i)
			if s.Name != "" {
				container = s.Name + "/" + container
			}
			gauge(sizeDesc, float64(b.Size()), container)
			gauge(runningDesc, float64(b.Running()), container)
			gauge(usualDesc, b.Profile().Line().Mean, container)
			for _, size := range b.Profile().Sizes() {
				gauge(profileDesc, b.Profile().Line().Took(float64(size.UpTo)).Seconds(), container, strconv.Itoa(size.UpTo))
			}
		}
	}
}

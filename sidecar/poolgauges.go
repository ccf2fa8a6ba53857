package sidecar

import (
	"strconv"
	"sync"
	"time"

	"topsail/internal/obs"
)

var (
	queueDesc   = obs.NewDesc("topsail_sidecar_queue_length", "Queries that wait for a batch.", "model", "version", "replica")
	waitDesc    = obs.NewDesc("topsail_sidecar_wait_seconds", "What a new query would wait for its batch to start.", "model", "version", "replica")
	readyDesc   = obs.NewDesc("topsail_sidecar_containers_ready", "Containers that take batches.", "model", "version", "replica")
	sizeDesc    = obs.NewDesc("topsail_sidecar_batch_limit", "The most that the next batch will hold.", "model", "version", "replica", "container")
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

// Describe and Collect implement obs.Collector.
func (g *poolGauges) Describe(ch chan<- *obs.Desc) {
	for _, d := range []*obs.Desc{queueDesc, waitDesc, readyDesc, sizeDesc, profileDesc} {
		ch <- d
	}
}

func (g *poolGauges) Collect(ch chan<- obs.Metric) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for p, replica := range g.pools {
		collectPool(ch, p, replica)
	}
}

func collectPool(ch chan<- obs.Metric, p *pool, replica string) {
	labels := []string{p.model.Model, p.model.Version, replica}
	gauge := func(d *obs.Desc, v float64, more ...string) {
		// The labels are names that were checked; this cannot fail.
		if m, err := obs.GaugeOf(d, v, append(labels, more...)...); err == nil {
			ch <- m
		}
	}
	queued := p.queue.Len()
	wait, _ := p.estimate(time.Now(), queued)
	batchers := *p.batchers.Load()
	gauge(queueDesc, float64(queued))
	gauge(waitDesc, wait.Seconds())
	gauge(readyDesc, float64(len(batchers)))
	for i, b := range batchers {
		container := strconv.Itoa(i)
		gauge(sizeDesc, float64(b.Size()), container)
		for _, s := range b.Profile().Sizes() {
			gauge(profileDesc, b.Profile().Line().Took(s.UpTo).Seconds(), container, strconv.Itoa(s.UpTo))
		}
	}
}

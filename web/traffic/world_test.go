package traffic_test

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/topsail-serving/topsail/internal/obs"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/web/traffic"
)

// process is one whose metrics a test makes up, in a registry as processes have it.
type process struct {
	mu    sync.Mutex    // guards what follows
	reg   *obs.Registry // nil: it has no metrics
	fails error
	takes time.Duration
	looks int

	answers, cache *obs.CounterVec
	models         *obs.CounterVec
	took           *obs.HistogramVec
	objective      *obs.GaugeVec
}

func newProcess() *process {
	p := &process{}
	p.restart()
	return p
}

func (p *process) restart() {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := obs.NewRegistry()
	p.reg = r
	p.answers = r.Counters("topsail_gateway_answers_total", "Answers.", "app", "cause")
	p.took = r.Histograms("topsail_gateway_query_seconds", "Times.", obs.Seconds(), "app")
	p.cache = r.Counters("topsail_gateway_cache_total", "Questions.", "app", "result")
	p.models = r.Counters("topsail_selection_models_total", "Models.", "app", "model", "version", "event")
	p.objective = r.Gauges("topsail_gateway_objective_seconds", "Objectives.", "app")
}

func (p *process) Read(ctx context.Context, readers obs.Readers) error {
	p.mu.Lock()
	p.looks++
	reg, fails, takes := p.reg, p.fails, p.takes
	p.mu.Unlock()
	select {
	case <-time.After(takes):
	case <-ctx.Done():
		return ctx.Err()
	}
	if fails != nil {
		return fails
	}
	if reg != nil {
		reg.Read(readers)
	}
	return nil
}

func (p *process) set(change func(*process)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change(p)
}

// answer counts n answers that took so long.
func (p *process) answer(app string, cause serving.Cause, n int, took time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.objective.WithLabelValues(app).Set(0.1)
	p.answers.WithLabelValues(app, cause.String()).Add(float64(n))
	for range n {
		p.took.WithLabelValues(app).Observe(took.Seconds())
	}
}

// choose counts n answers, and that a model was asked for so many of them, answered and agreed.
func (p *process) choose(app string, n int, model string, asked, answered, agreed float64) {
	p.answer(app, serving.OK, n, time.Millisecond)
	for event, x := range map[string]float64{"asked": asked, "answered": answered, "agreed": agreed} {
		p.models.WithLabelValues(app, model, "1", event).Add(x)
	}
}

// every has do done once a second, half a second after it began, for n seconds.
func every(n int, do func(i int)) {
	for i := range n {
		time.Sleep(500 * time.Millisecond)
		do(i)
		time.Sleep(500 * time.Millisecond)
	}
	time.Sleep(10 * time.Millisecond)
	synctest.Wait()
}

// run runs a test with a collector in a bubble.
func run(t *testing.T, targets func() []traffic.Target, test func(c *traffic.Collector)) {
	synctest.Test(t, func(t *testing.T) {
		c := traffic.New(traffic.Config{Targets: targets, Log: slog.New(slog.NewTextHandler(t.Output(), nil))})
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() {
			if err := c.Run(ctx); err != nil {
				t.Error(err)
			}
		})
		time.Sleep(1010 * time.Millisecond) // the first look, from which on everything counts
		synctest.Wait()
		test(c)
		cancel()
		running.Wait()
	})
}

func gateways(all map[string]*process) func() []traffic.Target {
	return func() []traffic.Target {
		var list []traffic.Target
		for name, p := range all {
			list = append(list, traffic.Target{Role: traffic.Gateway, Name: name, Source: p})
		}
		return list
	}
}

// values are those of a series; -1 is unknown.
func values(series []*float64) []float64 {
	var all []float64
	for _, v := range series {
		if v == nil {
			all = append(all, -1)
		} else {
			all = append(all, *v)
		}
	}
	return all
}

// lastOf are the last n values.
func lastOf(n int, series []*float64) []float64 {
	all := values(series)
	return all[len(all)-n:]
}

var errAway = errors.New("away")

package traffic_test

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/internal/obs"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/web/api"
	"github.com/topsail-serving/topsail/web/traffic"
)

// stages are the metrics of the stages of replicas of version m:1, at one sidecar.
type stages struct {
	p                     *process
	inputs                *obs.CounterVec
	sizes, run, wait      *obs.HistogramVec
	queue, ready, workers *obs.GaugeVec
}

func newStages(p *process) *stages {
	l := []string{"model", "version", "replica", "stage"}
	r := p.reg
	return &stages{
		p:       p,
		inputs:  r.Counters("topsail_stage_inputs_total", "Inputs.", append(l, "status")...),
		sizes:   r.Histograms("topsail_stage_batch_size", "Sizes.", obs.Sizes(), l...),
		run:     r.Histograms("topsail_stage_batch_seconds", "Runs.", obs.Seconds(), l...),
		wait:    r.Histograms("topsail_stage_queue_seconds", "Waits.", obs.Seconds(), l...),
		queue:   r.Gauges("topsail_stage_queue_length", "Queue.", l...),
		ready:   r.Gauges("topsail_stage_workers_ready", "Ready.", l...),
		workers: r.Gauges("topsail_stage_workers", "Workers.", append(l, "position", "after")...),
	}
}

// has makes a stage of a replica.
func (s *stages) has(replica, stage string, position int, after string, workers, ready int) {
	l := []string{"m", "1", replica, stage}
	s.workers.WithLabelValues(append(l, strconv.Itoa(position), after)...).Set(float64(workers))
	s.ready.WithLabelValues(l...).Set(float64(ready))
	s.queue.WithLabelValues(l...).Set(0)
}

// batch is one that a stage ran.
func (s *stages) batch(replica, stage, status string, n int, wait, run time.Duration) {
	l := []string{"m", "1", replica, stage}
	s.sizes.WithLabelValues(l...).Observe(float64(n))
	s.run.WithLabelValues(l...).Observe(run.Seconds())
	for range n {
		s.wait.WithLabelValues(l...).Observe(wait.Seconds())
	}
	s.inputs.WithLabelValues(append(l, status)...).Add(float64(n))
}

var version1 = serving.ModelID{Model: "m", Version: "1"}

// figures are a stage in one line; - is unknown.
func figures(s api.StageTraffic) string {
	show := func(x *float64) string {
		if x == nil {
			return "-"
		}
		return strconv.FormatFloat(math.Round(*x*100)/100, 'f', -1, 64)
	}
	return fmt.Sprintf("%s after %s: %d/%d waiting %d, %s/s busy %s, batch %v, wait %s run %s, %v",
		s.Stage, strings.Join(s.After, ","), s.Ready, s.Workers, s.Waiting, show(s.Rate), show(s.Busy), s.BatchMean, show(s.Wait), show(s.Run), s.Ended)
}

func expectStages(t *testing.T, s api.VersionStages, want ...string) {
	t.Helper()
	for i, one := range s.Stages {
		if i >= len(want) || figures(one) != want[i] {
			t.Errorf("stage %d is %s", i, figures(one))
		}
	}
	if len(s.Stages) != len(want) {
		t.Errorf("%d stages, want %d", len(s.Stages), len(want))
	}
}

func TestStagesOfTwoReplicas(t *testing.T) {
	one, two := newProcess(), newProcess()
	a, b := newStages(one), newStages(two)
	for replica, s := range map[string]*stages{"r1": a, "r2": b} {
		s.has(replica, "scale", 0, "input", 2, 2)
		s.has(replica, "rank", 1, "scale,input", 1, 1)
		s.batch(replica, "scale", "ok", 1000, time.Hour, time.Hour) // before anybody looked
	}
	a.queue.WithLabelValues("m", "1", "r1", "rank").Set(5)
	b.ready.WithLabelValues("m", "1", "r2", "rank").Set(1)
	targets := func() []traffic.Target {
		return []traffic.Target{{Role: traffic.Sidecar, Name: "r1", Source: one}, {Role: traffic.Sidecar, Name: "r2", Source: two}}
	}
	run(t, targets, func(c *traffic.Collector) {
		expectStages(t, c.Stages(version1, "", time.Minute),
			"scale after input: 4/4 waiting 0, -/s busy -, batch 0, wait - run -, map[]",
			"rank after scale,input: 2/2 waiting 5, -/s busy -, batch 0, wait - run -, map[]")
		every(120, func(int) {
			a.batch("r1", "scale", "ok", 10, 2*time.Millisecond, 100*time.Millisecond)
			a.batch("r1", "rank", "ok", 10, 40*time.Millisecond, 900*time.Millisecond)
			b.batch("r2", "scale", "ok", 30, 2*time.Millisecond, 300*time.Millisecond)
			b.batch("r2", "rank", "model_error", 20, 20*time.Millisecond, 300*time.Millisecond)
			b.batch("r2", "rank", "dropped", 10, 20*time.Millisecond, 300*time.Millisecond)
		})
		s := c.Stages(version1, "", time.Minute)
		if s.Window != 60 || s.Bottleneck != "rank" || s.Model != "m" || s.Version != "1" || !s.At.Equal(time.Now()) {
			t.Errorf("%+v", s)
		}
		expectStages(t, s,
			"scale after input: 4/4 waiting 0, 40/s busy 0.1, batch 20, wait 2000 run 200000, map[ok:2400]",
			"rank after scale,input: 2/2 waiting 5, 40/s busy 0.75, batch 13.33, wait 25000 run 500000, map[dropped:600 model_error:1200 ok:600]")
		// As far as buckets tell: of the times to wait for rank most are 10 to 25 ms, and the rest 25 to 50.
		if rank := s.Stages[1]; *rank.WaitP99 < 25_000 || *rank.WaitP99 > 50_000 || *rank.RunP99 < 500_000 || *rank.RunP99 > 1_000_000 {
			t.Errorf("p99 %v and %v", *rank.WaitP99, *rank.RunP99)
		}
		expectStages(t, c.Stages(version1, "r1", time.Minute),
			"scale after input: 2/2 waiting 0, 10/s busy 0.05, batch 10, wait 2000 run 100000, map[ok:600]",
			"rank after scale,input: 1/1 waiting 5, 10/s busy 0.9, batch 10, wait 40000 run 900000, map[ok:600]")
		if s := c.Stages(version1, "", 15*time.Minute); s.Window < 110 || s.Window > 120 || s.Stages[0].Ended["ok"] < 4400 || s.Stages[0].Ended["ok"] > 4800 {
			t.Errorf("of all that is known: %d s, %v", s.Window, s.Stages[0].Ended)
		}
		if s := c.Stages(serving.ModelID{Model: "m", Version: "2"}, "", time.Minute); s.Stages == nil || len(s.Stages) != 0 || s.Bottleneck != "" {
			t.Errorf("a version that nobody runs has %+v", s)
		}

		// A stage without a worker bounds all others, however busy.
		a.ready.WithLabelValues("m", "1", "r1", "scale").Set(0)
		b.ready.WithLabelValues("m", "1", "r2", "scale").Set(0)
		every(10, func(int) {})
		s = c.Stages(version1, "", time.Minute)
		if scale := s.Stages[0]; s.Bottleneck != "scale" || scale.Ready != 0 || scale.Workers != 4 || scale.Busy != nil {
			t.Errorf("without a worker: %q, %s", s.Bottleneck, figures(scale))
		}

		// What cannot be read is unknown.
		two.set(func(p *process) { p.fails = errAway })
		every(40, func(int) {})
		if s := c.Stages(version1, "", time.Minute); s.Stages[0].Workers != 2 || len(c.Stages(version1, "r2", time.Minute).Stages) != 0 {
			t.Errorf("of a sidecar that is away: %s", figures(s.Stages[0]))
		}
	})
}

// TestStagesThatStartAnew has a sidecar count from nothing, and its pipeline change.
func TestStagesThatStartAnew(t *testing.T) {
	p := newProcess()
	s := newStages(p)
	s.has("r1", "scale", 0, "input", 1, 1)
	targets := func() []traffic.Target { return []traffic.Target{{Role: traffic.Local, Name: "here", Source: p}} }
	run(t, targets, func(c *traffic.Collector) {
		asked := func(int) { s.batch("r1", "scale", "ok", 1, time.Millisecond, 10*time.Millisecond) }
		every(60, asked)
		p.restart()
		s = newStages(p)
		s.has("r1", "scale", 1, "shift", 1, 1)
		s.has("r1", "shift", 0, "input", 1, 1)
		every(60, asked)
		// Sums are kept every 9 s, so that a minute has up to 69 s.
		expectStages(t, c.Stages(version1, "", time.Minute),
			"shift after input: 1/1 waiting 0, 0/s busy 0, batch 0, wait - run -, map[]",
			"scale after shift: 1/1 waiting 0, 1/s busy 0.01, batch 1, wait 1000 run 10000, map[ok:66]")
		if got := c.Stages(version1, "", 2*time.Minute).Stages[1].Ended["ok"]; got != 120 {
			t.Errorf("%d inputs in both lives, of 120", got)
		}
	})
}

// TestThePastOfStagesIsBounded lets an hour pass, and holds every window against what was
// counted in it.
func TestThePastOfStagesIsBounded(t *testing.T) {
	p := newProcess()
	s := newStages(p)
	s.has("r1", "scale", 0, "input", 1, 1)
	targets := func() []traffic.Target { return []traffic.Target{{Role: traffic.Local, Name: "here", Source: p}} }
	run(t, targets, func(c *traffic.Collector) {
		every(3600, func(i int) { s.batch("r1", "scale", "ok", 1+i%3, time.Millisecond, 10*time.Millisecond) })
		for window := time.Minute; window <= 15*time.Minute; window += 37 * time.Second {
			got := c.Stages(version1, "", window)
			longest := window + time.Minute + 10*time.Second
			if w := time.Duration(got.Window) * time.Second; w < window || w > longest {
				t.Errorf("a window of %v is one of %v", window, w)
			}
			if n, want := float64(got.Stages[0].Ended["ok"]), 2*float64(got.Window); math.Abs(n-want) > 3 {
				t.Errorf("%v inputs in %v s", n, got.Window)
			}
		}
	})
}

// A gateway has the sidecars that call the services that others run.
func TestServicesThatAGatewayCalls(t *testing.T) {
	p := newProcess()
	ready := p.reg.Gauges("topsail_sidecar_containers_ready", "Ready.", "model", "version", "replica")
	ready.WithLabelValues("m", "1", "m:1@a").Set(1)
	ready.WithLabelValues("m", "1", "m:1@b").Set(0)
	ready.WithLabelValues("m", "2", "m:2@a").Set(1)
	run(t, gateways(map[string]*process{"g": p}), func(c *traffic.Collector) {
		time.Sleep(3 * time.Second)
		states := map[string]string{}
		for _, r := range c.Replicas(serving.ModelID{Model: "m", Version: "1"}) {
			states[r.Name] = r.State
		}
		if len(states) != 2 || states["m:1@a"] != "ready" || states["m:1@b"] != "failed" {
			t.Errorf("the replicas are %v", states)
		}
		p.set(func(p *process) { p.fails = errors.New("it is gone") })
		time.Sleep(time.Minute)
		if list := c.Replicas(serving.ModelID{Model: "m", Version: "1"}); len(list) != 0 {
			t.Errorf("of a gateway that is gone there is %+v", list)
		}
	})
}

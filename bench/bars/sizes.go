package main

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/topsail-serving/topsail/bench/load"
)

// sizesModel takes a time for a batch, and one for each kilobyte of its inputs.
const sizesModel = `
import os
import time

BASE, KILOBYTE = float(os.environ["BASE"]), float(os.environ["KILOBYTE"])

def predict(inputs):
    time.sleep(BASE + KILOBYTE * sum(map(len, inputs)) / 1000)
    return [1.0] * len(inputs)
`

// sizesCase is what inputs of a log-normal distribution with a mean of a kilobyte ask of that.
type sizesCase struct {
	base, kilobyte time.Duration
	objective      time.Duration
	replicas       int
	sigma          float64 // of the distribution; 0: all are alike
	load           float64 // times what can be done of inputs that are alike, in batches that take half of the objective
	least          float64 // percent of the answers that should be in time
}

func (c sizesCase) String() string {
	return fmt.Sprintf("%v a batch and %v a kilobyte, %d replicas, sigma %v; objective %v, %v times the load", c.base, c.kilobyte, c.replicas, c.sigma, c.objective, c.load)
}

func sizesCases() []sizesCase {
	const ms = time.Millisecond
	return []sizesCase{
		{2 * ms, 2 * ms, 50 * ms, 1, 0, 0.7, 0}, {2 * ms, 2 * ms, 50 * ms, 1, 0, 1.5, 0},
		{2 * ms, 2 * ms, 50 * ms, 1, 1.2, 0.5, 95}, {2 * ms, 2 * ms, 50 * ms, 1, 1.2, 0.9, 90}, {2 * ms, 2 * ms, 50 * ms, 1, 1.2, 1.5, 65},
		{2 * ms, 2 * ms, 50 * ms, 2, 1.2, 0.9, 90}, {0, ms, 50 * ms, 1, 1.2, 0.9, 90}, {0, 10 * ms, 200 * ms, 1, 1.2, 0.9, 85}, {0, 100 * ms, 2000 * ms, 1, 1.2, 0.9, 85},
	}
}

// sizes measures what of queries whose inputs are of very different sizes is answered in time. Everything is as a user
// runs it: local mode, replicas in Python.
func sizes(ctx context.Context, b *bench) (figures []figure, err error) {
	for _, c := range sizesCases() {
		var runs []load.Report
		for range b.Runs {
			run, err := b.sizes(ctx, c)
			if err != nil {
				return nil, fmt.Errorf("%v: %w", c, err)
			}
			b.say("  %-100v %6.2f %% in time, %5.2f %% late, p99 %v", c, 100-defaultsOf(run), missed(run), run.Latency.P99)
			runs = append(runs, run)
		}
		figures = append(figures,
			sampled(c.String()+": in time", percent, atLeast(c.least), runs, func(r load.Report) float64 { return 100 - defaultsOf(r) }),
			sampled("… begun, and not answered in time", percent, atMost(0.5), runs, missed))
	}
	return figures, nil
}

// missed is the part of the queries, in percent, that were not refused and had no answer in time.
func missed(r load.Report) float64 {
	refused := 0
	for why, n := range r.Defaults {
		if strings.Contains(why, "the deadline can") {
			refused += n
		}
	}
	return 100 * float64(r.Sent-r.Good-refused) / float64(r.Sent)
}

func (b *bench) sizes(ctx context.Context, c sizesCase) (run load.Report, err error) {
	defer b.family.stop()
	l, err := b.localModel(ctx, sizesModel, c.replicas, func(model string) string {
		return fmt.Sprintf(`[[model]]
name = "sizes"
version = "1"
input_type = "strings"
replicas = %d
command = ["python3", "-m", "topsail", %q]
env = { BASE = "%v", KILOBYTE = "%v" }
[[app]]
name = "app0"
input_type = "strings"
latency_slo_micros = %d
models = ["sizes"]
default_output = "none"
cache = { off = true }
`, c.replicas, model+":predict", c.base.Seconds(), c.kilobyte.Seconds(), c.objective.Microseconds())
	})
	if err != nil {
		return run, err
	}
	r := rand.New(rand.NewPCG(1, 2))
	bodies := make([][]byte, 4096)
	for i := range bodies {
		bytes := 1000 * math.Exp(c.sigma*r.NormFloat64()-c.sigma*c.sigma/2)
		bodies[i] = fmt.Appendf(nil, `{"input": %q}`, strings.Repeat("x", max(1, int(bytes))))
	}
	half := c.objective / 2
	rate := c.load * float64(c.replicas) * float64((half-c.base)/c.kilobyte) / half.Seconds()
	connections := 8 + int(1.5*rate*c.objective.Seconds()) // all are used: the gateway closes those that send nothing
	cfg := load.Config{URL: l.query + "/app0/predict", Body: load.Cycle(bodies...), Seed: 1, Connections: connections, Rate: rate}
	for _, cfg.Duration = range []time.Duration{3 * time.Second, max(10*time.Second, 15*c.objective)} { // the first one warms up
		if run, err = load.Run(ctx, cfg); err != nil {
			return run, err
		}
	}
	return run, nil
}

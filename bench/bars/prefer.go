package main

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/topsail-serving/topsail/bench/load"
)

const preferPeriod = 10 * time.Second

// preferModel takes a time for a batch and one for each of its inputs, and says which model it is.
const preferModel = `
import os
import time

NAME, BASE, EACH = os.environ["NAME"], float(os.environ["BASE"]), float(os.environ["EACH"])

def predict(inputs):
    time.sleep(BASE + EACH * len(inputs))
    return [NAME] * len(inputs)
`

// preferCase is a good, slow model and a fast one.
type preferCase struct {
	base, each, small time.Duration // of the good one for a batch, and for an input; of the fast one for an input
	objective         time.Duration
	replicas          int     // of the good one
	load              float64 // times what the good one can do in time
}

func (c preferCase) String() string {
	return fmt.Sprintf("%v a batch and %v an input, %d replicas, beside %v; objective %v, %v times the load", c.base, c.each, c.replicas, c.small, c.objective, c.load)
}

func preferCases() []preferCase {
	const ms = time.Millisecond
	return []preferCase{
		{0, 10 * ms, ms / 2, 100 * ms, 1, 0.5}, {0, 10 * ms, ms / 2, 100 * ms, 1, 1}, {0, 10 * ms, ms / 2, 100 * ms, 1, 3}, {0, 20 * ms, ms, 200 * ms, 4, 3},
		{0, 100 * ms, 5 * ms, 1000 * ms, 1, 3}, {20 * ms, ms, ms / 5, 100 * ms, 1, 3}, {0, ms, ms / 10, 50 * ms, 1, 3},
	}
}

// preferApps are the policies that are compared.
var preferApps = []string{`{ kind = "single", model = "big" }`, `{ kind = "epsilon_greedy", epsilon = 1e-9 }`, `{ kind = "prefer", order = ["big", "small"] }`}

// preferRun is what each of the policies made of the same load.
type preferRun [3]struct {
	load.Report
	big float64 // answers of the good model a second
}

// prefer compares what a policy that prefers the good model makes of a load with what others do. Everything is as a
// user runs it: local mode, replicas in Python.
func prefer(ctx context.Context, b *bench) (figures []figure, err error) {
	for _, c := range preferCases() {
		var runs []preferRun
		for range b.Runs {
			run, err := b.prefer(ctx, c)
			if err != nil {
				return nil, fmt.Errorf("%v: %w", c, err)
			}
			for i, r := range run {
				b.say("  %-60s %-45s %7.1f/s of the good one, %5.2f %% defaults, p99 %v", c, preferApps[i], r.big, defaultsOf(r.Report), r.Latency.P99)
			}
			runs = append(runs, run)
		}
		figures = append(figures,
			sampled(c.String()+": defaults of single", percent, bar{}, runs, func(r preferRun) float64 { return defaultsOf(r[0].Report) }),
			sampled("… of epsilon_greedy, ε = 0", percent, bar{}, runs, func(r preferRun) float64 { return defaultsOf(r[1].Report) }),
			sampled("… of prefer", percent, atMost(0.1), runs, func(r preferRun) float64 { return defaultsOf(r[2].Report) }),
			sampled("… answers of the good model: prefer, times single", times, atLeast(0.95), runs, func(r preferRun) float64 { return r[2].big / r[0].big }),
			sampled("… p99 of prefer", ms, atMost(millis(c.objective)), runs, func(r preferRun) float64 { return millis(r[2].Latency.P99) }))
	}
	return figures, nil
}

func (b *bench) prefer(ctx context.Context, c preferCase) (run preferRun, err error) {
	defer b.family.stop()
	l, err := b.localModel(ctx, preferModel, c.replicas+1, func(model string) string {
		var text strings.Builder
		one := func(name string, replicas int, base, each time.Duration) {
			fmt.Fprintf(&text, "[[model]]\nname = %q\nversion = \"1\"\ninput_type = \"doubles\"\nreplicas = %d\ncommand = [\"python3\", \"-m\", \"topsail\", %q]\nenv = { NAME = %q, BASE = \"%v\", EACH = \"%v\" }\n",
				name, replicas, model+":predict", name, base.Seconds(), each.Seconds())
		}
		one("big", c.replicas, c.base, c.each)
		one("small", 1, 0, c.small)
		for i, policy := range preferApps {
			fmt.Fprintf(&text, "[[app]]\nname = \"app%d\"\ninput_type = \"doubles\"\nlatency_slo_micros = %d\nmodels = [\"big\", \"small\"]\npolicy = %s\ndefault_output = \"none\"\ncache = { off = true }\n", i, c.objective.Microseconds(), policy)
		}
		return text.String()
	})
	if err != nil {
		return run, err
	}
	took := c.base + c.each
	if half := c.objective / 2; c.base > 0 { // a batch takes half of the objective at the most
		took = half / ((half - c.base) / c.each)
	}
	rate := c.load * float64(c.replicas) / took.Seconds()
	for i := range run {
		var big atomic.Int64
		seen := func(body []byte) {
			if bytes.Contains(body, []byte(`"output":"big"`)) {
				big.Add(1)
			}
		}
		if _, err := l.app(ctx, i, rate, preferPeriod/3, seen); err != nil { // warms up
			return run, err
		}
		big.Store(0)
		if run[i].Report, err = l.app(ctx, i, rate, preferPeriod, seen); err != nil {
			return run, err
		}
		run[i].big = float64(big.Load()) / preferPeriod.Seconds()
	}
	return run, nil
}

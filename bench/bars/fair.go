package main

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"strings"
	"sync"
	"time"

	"github.com/topsail-serving/topsail/bench/load"
)

const (
	fairCapacity  = 100 // queries a second that the model can do
	fairObjective = 100 * time.Millisecond
	fairSettles   = 2 * time.Second // after the first queries
	fairPeriod    = 10 * time.Second
)

// fairModel takes 10 ms for an input.
const fairModel = `
import time

def predict(inputs):
    time.sleep(0.01 * len(inputs))
    return [sum(v) for v in inputs]
`

// fair measures what two apps get of one model that cannot do all that they ask for. Everything is as a user runs it:
// local mode, one replica in Python.
func fair(ctx context.Context, b *bench) (figures []figure, err error) {
	for _, weights := range [][2]float64{{10, 1}, {4, 1}, {1, 1}} {
		var runs [][2]float64
		for range b.Runs {
			run, err := b.shares(ctx, weights)
			if err != nil {
				return nil, err
			}
			runs = append(runs, run)
		}
		what := fmt.Sprintf("weights %v:%v, 150/s each: furthest from a share, over 10 s", weights[0], weights[1])
		figures = append(figures,
			sampled(what, percent, atMost(10), runs, func(r [2]float64) float64 { return 100 * r[0] }),
			sampled("… over any second", percent, atMost(25), runs, func(r [2]float64) float64 { return 100 * r[1] }))
	}
	var runs []quietRun
	for range b.Runs {
		run, err := b.quiet(ctx)
		if err != nil {
			return nil, err
		}
		runs = append(runs, run)
	}
	return append(figures,
		sampled("half of its share, 25/s, alone: p99", ms, bar{}, runs, func(r quietRun) float64 { return millis(r.alone.Latency.P99) }),
		sampled("… beside another app at 150/s: p99", ms, bar{}, runs, func(r quietRun) float64 { return millis(r.quiet.Latency.P99) }),
		sampled("… times that of alone", times, atMost(1.5), runs, func(r quietRun) float64 {
			return r.quiet.Latency.P99.Seconds() / r.alone.Latency.P99.Seconds()
		}),
		sampled("… its defaults", count, none(), runs, func(r quietRun) float64 { return float64(r.quiet.Sent - r.quiet.Good) }),
		sampled("… answers to the other, in time", perSecond, bar{}, runs, func(r quietRun) float64 { return r.noisy.Goodput })), nil
}

// fairApps runs a model for two apps of different weights.
func (b *bench) fairApps(ctx context.Context, weights [2]float64) (*localMode, error) {
	return b.localModel(ctx, fairModel, 1, func(model string) string {
		var text strings.Builder
		fmt.Fprintf(&text, "[[model]]\nname = \"fair\"\nversion = \"1\"\ninput_type = \"doubles\"\ncommand = [\"python3\", \"-m\", \"topsail\", %q]\n", model+":predict")
		for i, weight := range weights {
			fmt.Fprintf(&text, "[[app]]\nname = \"app%d\"\ninput_type = \"doubles\"\nlatency_slo_micros = %d\nmodels = [\"fair\"]\nweight = %v\ndefault_output = \"none\"\ncache = { off = true }\n", i, fairObjective.Microseconds(), weight)
		}
		return text.String()
	})
}

// shares is how far from its share what an app gets is at most, as a part of the share: over the whole period, and over
// a second of it. The shares are those of what both get.
func (b *bench) shares(ctx context.Context, weights [2]float64) (furthest [2]float64, err error) {
	defer b.family.stop()
	l, err := b.fairApps(ctx, weights)
	if err != nil {
		return furthest, err
	}
	var answers [2]answerTimes
	start := time.Now().Add(fairSettles)
	if _, err := l.both(ctx, [2]float64{1.5 * fairCapacity, 1.5 * fairCapacity}, fairSettles+fairPeriod, answers[0].seen, answers[1].seen); err != nil {
		return furthest, err
	}
	count := func(from time.Time, lasts time.Duration) (n [2]float64) {
		for i := range answers {
			n[i] = float64(answers[i].between(from, from.Add(lasts)))
		}
		return n
	}
	apart := func(n [2]float64) (most float64) {
		for i, weight := range weights {
			share := (n[0] + n[1]) * weight / (weights[0] + weights[1])
			most = max(most, math.Abs(n[i]-share)/share)
		}
		return most
	}
	all := count(start, fairPeriod)
	furthest[0] = apart(all)
	for at := time.Duration(0); at <= fairPeriod-time.Second; at += time.Second / 20 {
		furthest[1] = max(furthest[1], apart(count(start.Add(at), time.Second)))
	}
	b.say("  weights %v: %.1f and %.1f answers a second in time; furthest from a share %.1f %%, in a second %.1f %%", weights, all[0]/fairPeriod.Seconds(), all[1]/fairPeriod.Seconds(), 100*furthest[0], 100*furthest[1])
	return furthest, nil
}

// quietRun is an app that asks for half of its share, alone and beside one that asks for more than there is.
type quietRun struct{ alone, quiet, noisy load.Report }

func (b *bench) quiet(ctx context.Context) (run quietRun, err error) {
	defer b.family.stop()
	l, err := b.fairApps(ctx, [2]float64{1, 1})
	if err != nil {
		return run, err
	}
	ignore := func([]byte) {}
	for range 2 { // the first one warms up
		if run.alone, err = l.app(ctx, 0, fairCapacity/4, 2*fairPeriod, ignore); err != nil {
			return run, err
		}
	}
	reports, err := l.both(ctx, [2]float64{fairCapacity / 4, 1.5 * fairCapacity}, 2*fairPeriod, ignore, ignore)
	run.quiet, run.noisy = reports[0], reports[1]
	b.say("  p99 alone %v, beside another app %v, %d of %d without an answer; the other %.1f/s", run.alone.Latency.P99, run.quiet.Latency.P99, run.quiet.Sent-run.quiet.Good, run.quiet.Sent, run.noisy.Goodput)
	return run, err
}

// both has queries sent to both apps at these rates.
func (l *localMode) both(ctx context.Context, rates [2]float64, period time.Duration, seen ...func([]byte)) (reports [2]load.Report, err error) {
	var errs [2]error
	var both sync.WaitGroup
	for i := range reports {
		both.Go(func() { reports[i], errs[i] = l.app(ctx, i, rates[i], period, seen[i]) })
	}
	both.Wait()
	for _, e := range errs {
		if e != nil {
			err = e
		}
	}
	return reports, err
}

func (l *localMode) app(ctx context.Context, i int, rate float64, period time.Duration, seen func([]byte)) (load.Report, error) {
	return load.Run(ctx, load.Config{
		URL: fmt.Sprintf("%s/app%d/predict", l.query, i), Body: load.Cycle([]byte(queryBody)), Rate: rate, Duration: period,
		Seed: uint64(i + 1), Connections: 128, Seen: seen,
	})
}

// answerTimes are when answers came that are no defaults.
type answerTimes struct {
	mu    sync.Mutex
	times []time.Time
}

func (a *answerTimes) seen(reply []byte) {
	if bytes.Contains(reply, []byte(`"default":false`)) {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.times = append(a.times, time.Now())
	}
}

func (a *answerTimes) between(start, end time.Time) (n int) {
	for _, at := range a.times {
		if !at.Before(start) && at.Before(end) {
			n++
		}
	}
	return n
}

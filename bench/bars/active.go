package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/topsail-serving/topsail/bench/load"
)

// active are many models of one container that are all asked at once.
type active struct {
	models    int
	rate      float64 // queries a second, to all of them
	first     float64 // the share of the first one; 0: even
	objective time.Duration
	least     float64 // that must be answered in time; 0: it is only reported
}

// actives are what the container can do and, where nothing is promised, more than that: a batch takes about 2.7 ms however
// small it is, so one of each of 16 models takes most of the objective.
var actives = []active{
	{16, 1000, 0, promise, 0.95},
	{16, 2000, 0, promise, 0},
	{16, 4000, 0.8, promise, 0},
	{16, 4000, 0, promise, 0},
	{128, 1000, 0, 10 * promise, 0.98},
}

func (a active) String() string {
	share := "even"
	if a.first > 0 {
		share = fmt.Sprintf("%.0f %% to one", 100*a.first)
	}
	return fmt.Sprintf("%d active models in one container, %.0f/s, %s, within %v", a.models, a.rate, share, a.objective)
}

// activeCode takes 2 ms for a batch, and 0.1 ms for each input.
const activeCode = `
import time

def predict(inputs):
    time.sleep(0.002 + 0.0001 * len(inputs))
    return [sum(v) for v in inputs]
`

// activeFigures are those of all of these.
func (b *bench) activeFigures(ctx context.Context) (figures []figure, err error) {
	for _, a := range actives {
		var shares []float64
		for range b.Runs {
			share, err := b.activeRun(ctx, a)
			if err != nil {
				return nil, err
			}
			b.say("  %v: %.1f %%", a, 100*share)
			shares = append(shares, 100*share)
		}
		f := figure{What: a.String(), Unit: percent, Samples: shares}
		if a.least > 0 {
			f.Bar = atLeast(100 * a.least)
		}
		figures = append(figures, f)
	}
	return figures, nil
}

// activeRun is the share of the queries that is answered in time.
func (b *bench) activeRun(ctx context.Context, a active) (share float64, err error) {
	dir, err := os.MkdirTemp(b.dir, "active")
	if err != nil {
		return 0, err
	}
	host := hostOf{replicas: 1, memoryMB: 1024, models: a.models, objective: a.objective, code: activeCode, weights: 8}
	t, err := b.startHost(ctx, dir, host)
	if err != nil {
		return 0, err
	}
	defer b.family.stop()
	t.ask(ctx, firstRate, 2+a.models/firstRate, func(i int) int { return i % a.models }) // which loads them
	if _, err := t.load(ctx, a, time.Duration(b.Seconds)*time.Second); err != nil {      // until the sizes are found
		return 0, err
	}
	return t.load(ctx, a, time.Duration(b.Seconds)*time.Second)
}

// load asks all models at once, each at its share of the rate.
func (t *hostTarget) load(ctx context.Context, a active, period time.Duration) (share float64, err error) {
	var all sync.WaitGroup
	var mu sync.Mutex
	var sent, good int
	for i := range a.models {
		rate := a.rate * (1 - a.first) / float64(a.models)
		if i == 0 {
			rate += a.rate * a.first
		}
		all.Go(func() {
			report, failed := load.Run(ctx, load.Config{
				URL: fmt.Sprintf("%s/g%d/predict", t.query, i), Body: load.Cycle([]byte(queryBody)), Rate: rate, Duration: period,
				Seed: uint64(i), Connections: max(4, 512/a.models),
			})
			mu.Lock()
			defer mu.Unlock()
			if sent, good = sent+report.Sent+report.Unsent, good+report.Good; failed != nil {
				err = failed
			}
			if n := report.Sent - report.Statuses[http.StatusOK]; n > 0 {
				err = fmt.Errorf("%d of %d queries to g%d were not answered", n, report.Sent, i)
			}
		})
	}
	all.Wait()
	return float64(good) / float64(max(sent, 1)), err
}

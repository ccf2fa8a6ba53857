package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"runtime"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/topsail-serving/topsail/containers/gocontainer"
	"github.com/topsail-serving/topsail/gateway"
	"github.com/topsail-serving/topsail/internal/obs"
	"github.com/topsail-serving/topsail/serving"
)

// cost is what one operation costs.
type cost struct{ nanos, allocs float64 }

func embedded(ctx context.Context, b *bench) ([]figure, error) {
	ctx, stop := context.WithCancel(ctx)
	var group errgroup.Group
	defer func() {
		stop()
		_ = group.Wait() // had one of them failed, queries would have too
	}()
	g, err := embed(ctx, &group)
	if err != nil {
		return nil, err
	}
	variant := func(name string, workers int, noCache bool) func() (cost, error) {
		return func() (cost, error) {
			c, err := parallel(workers, b.period(), predictor(ctx, g, noCache))
			b.say("  %-32s %4d callers: %8.0f ns, %.1f allocations", name, workers, c.nanos, c.allocs)
			return c, err
		}
	}
	runs, err := alternate(b.Runs,
		variant("Predict, from the cache", runtime.GOMAXPROCS(0), false),
		variant("Predict, whole path", many, true))
	if err != nil {
		return nil, err
	}
	return []figure{
		sampled("Predict from the cache", nanos, bar{}, runs[0], func(c cost) float64 { return c.nanos }),
		sampled("Predict from the cache, allocations", count, bar{}, runs[0], func(c cost) float64 { return c.allocs }),
		sampled("Predict, whole path, 128 callers", nanos, bar{}, runs[1], func(c cost) float64 { return c.nanos }),
		sampled("Predict, whole path, allocations in gateway, sidecar and container", count, bar{}, runs[1], func(c cost) float64 { return c.allocs }),
	}, nil
}

// embed runs a gateway without a port, a sidecar and a no-op container in this
// process until ctx ends, and returns when they answer.
func embed(ctx context.Context, group *errgroup.Group) (*gateway.Gateway, error) {
	ln, err := listen(2)
	if err != nil {
		return nil, err
	}
	s := setup{SLO: relaxed, Endpoints: []string{ln[0].Addr().String()}, Sidecar: ln[1].Addr().String(), Containers: []string{"noop"}}
	group.Go(func() error { return newSidecar(s, obs.NewRegistry()).Run(ctx, ln[0], ln[1]) })
	group.Go(func() error {
		return gocontainer.Serve(ctx, gocontainer.Config{Sidecar: s.Sidecar, Model: modelVersion(0), Replica: replicaName(0)}, noop)
	})
	g := newGateway(ctx, s, obs.NewRegistry(), nil)
	group.Go(func() error { return g.Run(ctx, nil) })
	return g, eventually(ctx, func(context.Context) error { return connected(g, s) })
}

// predictor makes a worker's operation: one query, always the same.
func predictor(ctx context.Context, g *gateway.Gateway, noCache bool) func() func() error {
	var input []byte
	for _, x := range []float64{0.1, 0.2, 0.3, 0.4} {
		input = binary.LittleEndian.AppendUint64(input, math.Float64bits(x))
	}
	return func() func() error {
		q := serving.Query{App: appName, Input: serving.Input{Type: serving.Doubles, Data: input}, NoCache: noCache}
		return func() error {
			q.Received = time.Now()
			ps, err := g.Predict(ctx, q)
			if err == nil && ps[0].Default {
				err = fmt.Errorf("the answer is the default: %s", ps[0].Explanation)
			}
			return err
		}
	}
}

// parallel measures an operation with so many workers at once. Time is that
// between two ends of operations, of any worker; allocations are the process's.
func parallel(workers int, period time.Duration, newWorker func() func() error) (cost, error) {
	var ops atomic.Int64
	var before, after runtime.MemStats
	var group errgroup.Group
	runtime.GC()
	runtime.ReadMemStats(&before)
	start := time.Now()
	for range workers {
		do := newWorker()
		group.Go(func() error {
			for time.Since(start) < period {
				for range 16 { // between two looks at the clock
					if err := do(); err != nil {
						return err
					}
				}
				ops.Add(16)
			}
			return nil
		})
	}
	err := group.Wait()
	elapsed := time.Since(start)
	runtime.ReadMemStats(&after)
	n := float64(max(ops.Load(), 1))
	return cost{nanos: float64(elapsed.Nanoseconds()) / n, allocs: float64(after.Mallocs-before.Mallocs) / n}, err
}

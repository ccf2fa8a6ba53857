package main

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/topsail-serving/topsail/bench/load"
	"github.com/topsail-serving/topsail/internal/retry"
)

const (
	overloading = 3               // times the capacity
	settled     = 5 * time.Second // when memory is first looked at

	// capacityConnections keep the model always busy, and their queries well
	// within the promise.
	capacityConnections = 64
	// openConnections is more than the queries that can be in flight: those of one
	// promise, at the rates that two cores can serve.
	openConnections = 1024
)

// flood is one open-loop run.
type flood struct {
	capacity  float64 // predictions per second of the closed loop before it
	report    load.Report
	settled   int64 // resident bytes of gateway and sidecar
	end       int64
	container float64 // cores that it kept busy
}

// flooder is a flood of a fresh stack, as a variant of alternate.
func (b *bench) flooder(ctx context.Context, name string, s setup, ceiling float64) func() (flood, error) {
	return func() (flood, error) {
		defer b.family.stop()
		t, err := b.stack(ctx, name, s)
		if err != nil {
			return flood{}, err
		}
		closed, err := b.drive(ctx, t, capacityConnections)
		if err != nil {
			return flood{}, err
		}
		if want := overloading * closed.Rate; want > ceiling {
			return flood{}, fmt.Errorf("%s: three times the capacity is %.0f/s, and the generator can send %.0f/s", name, want, ceiling)
		}
		return b.flood(ctx, t, closed.Rate)
	}
}

// flood sends at three times the capacity, whatever comes back.
func (b *bench) flood(ctx context.Context, t *target, capacity float64) (flood, error) {
	f := flood{capacity: capacity}
	before, err := t.snapshot(ctx)
	if err != nil {
		return f, err
	}
	duration := time.Duration(b.OverloadSeconds) * time.Second
	group, loading := errgroup.WithContext(ctx)
	group.Go(func() (err error) {
		f.report, err = load.Run(loading, load.Config{
			URL: t.url, Body: load.Cycle([]byte(queryBody)), Rate: overloading * capacity,
			Duration: duration, Seed: 1, Connections: openConnections,
		})
		return err
	})
	group.Go(func() (err error) {
		if !retry.Sleep(loading, min(settled, duration/2)) {
			return context.Cause(loading)
		}
		f.settled, err = t.memory()
		return err
	})
	if err := group.Wait(); err != nil {
		return f, err
	}
	if f.end, err = t.memory(); err != nil {
		return f, err
	}
	after, err := t.snapshot(ctx)
	f.container = (after.cpu["container"] - before.cpu["container"]).Seconds() / f.report.Elapsed.Seconds()
	b.say("  %-32s %4d connections: %8.0f/s sent, %.0f/s predictions, p99.9 %.2f ms; defaults: %v", t.name, openConnections, f.report.Rate, f.report.Goodput, millis(f.report.Latency.P999), f.report.Defaults)
	return f, err
}

// memory is the resident memory of Topsail's own processes, in bytes.
func (t *target) memory() (int64, error) { return t.resident(false) }

// held is the same without garbage: what queries hold, however long ago memory was last collected.
func (t *target) held() (int64, error) { return t.resident(true) }

func (t *target) resident(collected bool) (int64, error) {
	sum := int64(0)
	for _, c := range t.children {
		if c.name == "container" {
			continue
		}
		if collected {
			if err := c.cmd.Process.Signal(collect); err != nil {
				return 0, err
			}
			time.Sleep(collectWithin)
		}
		n, err := resident(c.cmd.Process.Pid)
		if err != nil {
			return 0, err
		}
		sum += n
	}
	return sum, nil
}

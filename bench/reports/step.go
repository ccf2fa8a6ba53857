package main

import (
	"context"
	"fmt"
	"time"

	"github.com/topsail-serving/topsail/jobs"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/test/harness"
)

const (
	target  = 50 // queries a second for each replica of the elastic model, of which 70 % are aimed at
	steady  = 30
	stepped = 10 * steady
	enough  = (stepped*10 + target*7 - 1) / (target * 7) // replicas
)

const elastic = `
[[app]]
name = "elastic"
input_type = "doubles"
default_output = "-1"
latency_slo_micros = 250000
cache = { off = true }
models = ["elastic"]

[[model]]
name = "elastic"
version = "1"
input_type = "doubles"
command = [%q]
resources = { cpu = 100, memory_mb = 64 }
scale = { min = 1, max = 12, metric = "rate", target = %d.0, cooldown_down_micros = 1000000, step_down = 12.0 }
`

// step measures how the count follows ten times the load.
func (b *bench) step(ctx context.Context) error {
	id := serving.ModelID{Model: "elastic", Version: "1"}
	if err := b.Apply(ctx, b.Catalog(harness.Replicas)+fmt.Sprintf(elastic, b.Gosum, target)); err != nil {
		return err
	}
	var first, full []time.Duration
	for range b.rounds {
		if err := until(ctx, 5*time.Minute, "one replica", func() bool { return b.count(jobs.ID(id)) == 1 && b.running(jobs.ID(id)) == 1 }); err != nil {
			return err
		}
		before := harness.StartLoad("elastic", steady, b.Gateways)
		time.Sleep(65 * time.Second) // a stable window
		begun := time.Now()
		after := harness.StartLoad("elastic", stepped-steady, b.Gateways)
		if err := until(ctx, time.Minute, fmt.Sprintf("%d replicas", enough), func() bool { return b.count(jobs.ID(id)) >= enough }); err != nil {
			return err
		}
		time.Sleep(2 * time.Second)
		one, two := before.End("steady"), after.End("step")
		fmt.Printf("  %v\n  %v\n", one, two)
		list, err := b.decisions(ctx, id, begun)
		if err != nil {
			return err
		}
		firstAt, fullAt := time.Duration(0), time.Duration(0)
		for _, d := range list {
			if firstAt == 0 && d.To > d.From {
				firstAt = d.At.Sub(begun)
			}
			if fullAt == 0 && d.To >= enough {
				fullAt = d.At.Sub(begun)
			}
		}
		first, full = append(first, firstAt), append(full, fullAt)
	}
	show("step to the first increase asked for", first, "< 2.5 s")
	show(fmt.Sprintf("step to the full count asked for, %d replicas", enough), full, "< 8 s")
	return nil
}

package main

import (
	"context"
	"fmt"
	"time"

	"github.com/topsail-serving/topsail/jobs"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/test/harness"
)

// rollout measures what clients see of a rollout, a rollback and a scale-in.
func (b *bench) rollout(ctx context.Context) error {
	if err := b.Apply(ctx, b.Catalog(harness.Replicas)); err != nil {
		return err
	}
	two := jobs.ID(serving.ModelID{Model: "gosum", Version: "2"})
	both := func(current string, replicas int) string { return b.CatalogOf(replicas, current, "1", "2") }
	var defaults, failed []int
	for range b.rounds {
		for _, one := range []struct {
			what string
			do   func() error
		}{
			{"rollout to version 2", func() error {
				if err := b.Apply(ctx, both("2", harness.Replicas)); err != nil {
					return err
				}
				return until(ctx, time.Minute, "version 2", func() bool { return b.running(two) == harness.Replicas })
			}},
			{"rollback to version 1", func() error { return b.Apply(ctx, both("1", harness.Replicas)) }},
			{"scale-in to one replica", func() error { return b.Apply(ctx, both("1", 1)) }},
			{"scale-out to two again", func() error { return b.Apply(ctx, both("1", harness.Replicas)) }},
			{"version 2 is deleted", func() error { return b.Apply(ctx, b.Catalog(harness.Replicas)) }},
		} {
			load := harness.StartLoad("sum", harness.Rate, b.Gateways)
			time.Sleep(2 * time.Second)
			if err := one.do(); err != nil {
				return err
			}
			time.Sleep(8 * time.Second)
			r := load.End(one.what)
			fmt.Println(" ", r)
			defaults, failed = append(defaults, r.AllDefaults()), append(failed, r.Errors)
		}
	}
	show("defaults", defaults, "0")
	show("errors", failed, "0")
	return nil
}

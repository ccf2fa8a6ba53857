package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/serving/catalog"
	"github.com/topsail-serving/topsail/test/harness"
)

const changes = 100 // in each round

// spread measures the time from asking for a change to every gateway's going by it.
func (b *bench) spread(ctx context.Context) error {
	store, err := b.store(ctx)
	if err != nil {
		return err
	}
	defer store.Close()
	var p50, p99 []time.Duration
	for round := range b.rounds {
		var took []time.Duration
		for i := range changes {
			name := fmt.Sprintf("spread-%d-%d", round, i)
			app := serving.App{Name: name, InputType: serving.Doubles, DefaultOutput: "-1", SLO: serving.Duration(b.SLO)}
			begun := time.Now()
			if _, err := store.Apply(ctx, catalog.PutApp{App: app, Create: true}, 0); err != nil {
				return err
			}
			var all sync.WaitGroup
			for _, addr := range b.Gateways() {
				all.Go(func() {
					for ctx.Err() == nil {
						if _, err := harness.Ask(addr, name, 1); err == nil {
							return
						}
					}
				})
			}
			all.Wait()
			took = append(took, time.Since(begun))
			if _, err := store.Apply(ctx, catalog.DeleteApp{Name: name}, 0); err != nil {
				return err
			}
		}
		p50, p99 = append(p50, quantile(took, 0.5)), append(p99, quantile(took, 0.99))
	}
	show("a change to both gateways, the question included, median", p50, "")
	show("the same, 99th percentile", p99, "< 100 ms")
	return nil
}

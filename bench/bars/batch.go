package main

import (
	"context"
	"time"

	"github.com/topsail-serving/topsail/serving"
)

// patient is an SLO that size 1 can keep too, with room for noise: 128 queries one
// after the other take a third of a second.
const patient = time.Second

func batch(ctx context.Context, b *bench) ([]figure, error) {
	single, err := b.stack(ctx, "batches of 1", setup{
		SLO: patient, CacheOff: true, Containers: []string{"sleep"}, Batch: serving.BatchSpec{Strategy: "fixed", MaxSize: 1},
	})
	if err != nil {
		return nil, err
	}
	aimd, err := b.stack(ctx, "AIMD", setup{SLO: patient, CacheOff: true, Containers: []string{"sleep"}})
	if err != nil {
		return nil, err
	}
	runs, err := alternate(b.Runs, b.driver(ctx, single, many), b.driver(ctx, aimd, many))
	if err != nil {
		return nil, err
	}
	return []figure{
		sampled("batches of 1", perSecond, bar{}, runs[0], rate),
		sampled("AIMD", perSecond, bar{}, runs[1], rate),
		compared("AIMD / batches of 1", times, atLeast(40), runs[1], runs[0], rateOver),
		sampled("AIMD, p99", ms, below(15), runs[1], p99),
		sampled("default outputs", count, none(), append(runs[0], runs[1]...), defaults),
	}, nil
}

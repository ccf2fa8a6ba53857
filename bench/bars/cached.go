package main

import (
	"context"
	"time"
)

// relaxed is an SLO that is never in the way of a figure for throughput.
const relaxed = 500 * time.Millisecond

func cached(ctx context.Context, b *bench) ([]figure, error) {
	bare, err := b.bare(ctx, "bare route", "bare")
	if err != nil {
		return nil, err
	}
	bareJSON, err := b.bare(ctx, "bare route, encoding/json", "barejson")
	if err != nil {
		return nil, err
	}
	gateway, err := b.stack(ctx, "gateway, from the cache", setup{SLO: relaxed, Containers: []string{"noop"}})
	if err != nil {
		return nil, err
	}
	runs, err := alternate(b.Runs, b.driver(ctx, bare, many), b.driver(ctx, bareJSON, many), b.driver(ctx, gateway, many))
	if err != nil {
		return nil, err
	}
	ours := runs[2]
	return []figure{
		sampled("bare Fiber route, our decoder and encoder", perSecond, bar{}, runs[0], rate),
		sampled("bare Fiber route, encoding/json", perSecond, bar{}, runs[1], rate),
		sampled("gateway, from the cache", perSecond, bar{}, ours, rate),
		compared("gateway / bare route", times, atLeast(0.75), ours, runs[0], rateOver),
		compared("gateway / bare route with encoding/json", times, atLeast(1), ours, runs[1], rateOver),
		sampled("gateway, p99", ms, bar{}, ours, p99),
		sampled("default outputs", count, none(), ours, defaults),
	}, nil
}

// driver is a drive as a variant of alternate.
func (b *bench) driver(ctx context.Context, t *target, connections int) func() (drive, error) {
	return func() (drive, error) { return b.drive(ctx, t, connections) }
}

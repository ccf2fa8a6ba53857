package main

import "context"

func path(ctx context.Context, b *bench) ([]figure, error) {
	bare, err := b.bare(ctx, "bare route", "bare")
	if err != nil {
		return nil, err
	}
	whole, err := b.stack(ctx, "whole path", setup{SLO: relaxed, CacheOff: true, Containers: []string{"noop"}})
	if err != nil {
		return nil, err
	}
	runs, err := alternate(b.Runs,
		b.driver(ctx, bare, many), b.driver(ctx, whole, many),
		b.driver(ctx, bare, 1), b.driver(ctx, whole, 1))
	if err != nil {
		return nil, err
	}
	if b.profiles != "" {
		if err := b.profile(ctx, whole); err != nil {
			return nil, err
		}
	}
	busyBare, busy, loneBare, lone := runs[0], runs[1], runs[2], runs[3]
	figures := []figure{
		sampled("bare route", perSecond, bar{}, busyBare, rate),
		sampled("whole path", perSecond, bar{}, busy, rate),
		compared("whole path / bare route", times, atLeast(0.40), busy, busyBare, rateOver),
		sampled("whole path, p99", ms, bar{}, busy, p99),
		sampled("a lone query, bare route, median", ms, bar{}, loneBare, p50),
		sampled("a lone query, whole path, median", ms, bar{}, lone, p50),
		compared("a lone query, time added, median", ms, below(0.3), lone, loneBare, func(ours, bare drive) float64 { return millis(ours.P50 - bare.P50) }),
		sampled("default outputs", count, none(), append(busy, lone...), defaults),
	}
	for _, process := range []string{"gateway", "sidecar", "container", "wrk"} {
		figures = append(figures, sampled("processor time of an answer, "+process, micros, bar{}, busy, func(d drive) float64 { return d.cpuPerAnswer(process) }))
	}
	return figures, nil
}

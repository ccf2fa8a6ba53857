package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/topsail-serving/topsail/bench/load"
)

const (
	onlineShare  = 0.7  // of what a stream alone gets, that an app asks for
	priorityAsks = 1500 // queries, if they take no longer than a minute: with fewer, p99 says how these came
	warmUp       = 5 * time.Second
)

// priorityRun is an app alone, and beside a stream over the same model that would take everything.
type priorityRun struct {
	alone, beside load.Report
	stream, left  float64 // records a second, and what the app leaves of those that the stream gets alone
}

// priority measures what an app loses to a data stream over the same model, which is one priority below it by default,
// and what the stream gets. Everything is as a user runs it: local mode, Python, Redis, the defaults of a stream.
func priority(ctx context.Context, b *bench) (figures []figure, err error) {
	redis, err := b.redis(ctx)
	if err != nil {
		return nil, err
	}
	defer redis.Kill()
	cases := []paceCase{
		{takes: time.Millisecond, objective: 100 * time.Millisecond, replicas: 1}, {takes: 10 * time.Millisecond, objective: 200 * time.Millisecond, replicas: 1},
		{takes: 100 * time.Millisecond, objective: 2 * time.Second, replicas: 1}, {takes: 10 * time.Millisecond, objective: 200 * time.Millisecond, replicas: 4},
		{takes: 100 * time.Millisecond, objective: 2 * time.Second, replicas: 4},
	}
	for at, c := range cases {
		var runs []priorityRun
		for run := range b.Runs {
			r, err := b.priority(ctx, c, redis.Addr, fmt.Sprintf("priority%d.%d.", at, run), uint64(run))
			if err != nil {
				return nil, fmt.Errorf("%v: %w", c, err)
			}
			b.say("  %v: p99 alone %v, beside a stream %v, %d of %d without an answer; the stream %.1f/s of %.1f", c, r.alone.Latency.P99, r.beside.Latency.P99, r.beside.Sent-r.beside.Good, r.beside.Sent, r.stream, r.left)
			runs = append(runs, r)
		}
		figures = append(figures,
			sampled(c.String()+": p99 of an app at 0.7 of capacity, alone", ms, bar{}, runs, func(r priorityRun) float64 { return millis(r.alone.Latency.P99) }),
			sampled("… beside a stream: times that of alone", times, atMost(1.2), runs, func(r priorityRun) float64 {
				return r.beside.Latency.P99.Seconds() / r.alone.Latency.P99.Seconds()
			}),
			sampled("… its defaults, alone", percent, bar{}, runs, func(r priorityRun) float64 { return defaultsOf(r.alone) }),
			sampled("… its defaults, beside a stream", percent, none(), runs, func(r priorityRun) float64 { return defaultsOf(r.beside) }),
			sampled("… the stream, of what the app leaves", times, atLeast(0.85), runs, func(r priorityRun) float64 { return r.stream / r.left }))
	}
	return figures, nil
}

// defaultsOf is the part of the queries that had no answer in time, in percent.
func defaultsOf(r load.Report) float64 { return 100 * float64(r.Sent-r.Good) / float64(r.Sent) }

func (b *bench) priority(ctx context.Context, c paceCase, redis, prefix string, seed uint64) (run priorityRun, err error) {
	defer b.family.stop()
	dir, err := os.MkdirTemp(b.dir, "priority")
	if err != nil {
		return run, err
	}
	config, err := c.write(dir, redis, prefix)
	if err != nil {
		return run, err
	}
	l, err := b.local(ctx, dir, config)
	if err != nil {
		return run, err
	}
	if err := eventually(ctx, l.replicas(c.replicas)); err != nil {
		return run, err
	}
	records := func(takes time.Duration) (n int, err error) {
		n = int(c.nominal() * takes.Seconds())
		return n, fillPace(ctx, redis, prefix+"in", n)
	}
	n, err := records(warmUp)
	if err != nil {
		return run, err
	}
	capacity, _, err := l.follow(ctx, n)
	if err != nil {
		return run, err
	}
	rate := onlineShare * capacity
	takes := min(max(10*time.Second, time.Duration(priorityAsks/rate*float64(time.Second))), time.Minute)
	connections := max(16, int(rate/5)) // all are used: the gateway closes those that send nothing
	online := func(period time.Duration) (load.Report, error) {
		return load.Run(ctx, load.Config{
			URL: l.query + "/other/predict", Body: load.Cycle([]byte(`{"input": [1, 2]}`)), Rate: rate, Duration: period, Seed: seed, Connections: connections,
		})
	}
	if _, err := online(warmUp); err != nil {
		return run, err
	}
	if run.alone, err = online(takes); err != nil {
		return run, err
	}
	if _, err := records(warmUp + 2*takes); err != nil {
		return run, err
	}
	if _, err := online(warmUp); err != nil { // the stream finds its pace
		return run, err
	}
	before, began, err := l.predicted(ctx)
	if err != nil {
		return run, err
	}
	if run.beside, err = online(takes); err != nil {
		return run, err
	}
	after, ended, err := l.predicted(ctx)
	took := ended.Sub(began).Seconds()
	run.stream, run.left = (after-before)/took, capacity-float64(run.beside.Good)/took
	return run, err
}

// predicted is how many records of streams have their answers now.
func (l *localMode) predicted(ctx context.Context) (n float64, now time.Time, err error) {
	page, err := get(ctx, l.metrics)
	return sum(page, "topsail_stream_predict_seconds_count{"), time.Now(), err
}

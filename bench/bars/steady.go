package main

import (
	"bytes"
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/topsail-serving/topsail/bench/load"
)

// steady is one open-loop run at a rate that every variant can keep.
type steady struct {
	report  load.Report
	unnamed int64         // replies that do not name the missing model
	gateway time.Duration // processor time
}

// keeper is a steady run of one period as a variant of alternate. Replies are expected
// to name a model that is missing, unless that is empty.
func (b *bench) keeper(ctx context.Context, t *target, rate float64, missing string) func() (steady, error) {
	return func() (steady, error) { return b.keep(ctx, t, rate, missing, b.period()) }
}

func (b *bench) keep(ctx context.Context, t *target, rate float64, missing string, period time.Duration) (steady, error) {
	var unnamed atomic.Int64
	name := fmt.Appendf(nil, `"missing":[%q]`, missing)
	before, err := t.snapshot(ctx)
	if err != nil {
		return steady{}, err
	}
	report, err := load.Run(ctx, load.Config{
		URL: t.url, Body: load.Cycle([]byte(queryBody)), Rate: rate, Duration: period, Seed: 1,
		Seen: func(reply []byte) {
			if missing != "" && !bytes.Contains(reply, name) {
				unnamed.Add(1)
			}
		},
	})
	if err != nil {
		return steady{}, err
	}
	after, err := t.snapshot(ctx)
	s := steady{report: report, unnamed: unnamed.Load(), gateway: after.cpu["gateway"] - before.cpu["gateway"]}
	b.say("  %-32s %8.0f/s, p50 %7.2f ms, p99 %7.2f ms, max %7.2f ms, %.1f µs of the gateway; defaults: %v", t.name, report.Rate,
		millis(report.Latency.P50), millis(report.Latency.P99), millis(report.Latency.Max), s.cpuPerAnswer(), report.Defaults)
	return s, err
}

func (s steady) cpuPerAnswer() float64 { return s.gateway.Seconds() * 1e6 / float64(s.report.Answered) }

func (s steady) p99() float64 { return millis(s.report.Latency.P99) }

func (s steady) max() float64 { return millis(s.report.Latency.Max) }

// unanswered are the queries without a prediction.
func (s steady) unanswered() float64 {
	return float64(s.report.Sent + s.report.Unsent - s.report.Good)
}

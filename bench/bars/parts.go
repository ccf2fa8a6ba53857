package main

import (
	"bufio"
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	openStreams = 1000
	openRate    = 250              // streams a second while they are opened
	freeWithin  = 10 * time.Second // after the clients have gone
)

// partsRun is what a thousand open streams came to.
type partsRun struct {
	first   []float64 // milliseconds until the first part of each, while others go on
	perSec  float64   // parts that clients got, of all streams together
	memory  float64   // of gateway and sidecar, KiB for each
	freed   float64   // seconds from when the clients vanished until no query ran
	refused int
}

func (r *partsRun) quantile(q float64) float64 {
	if len(r.first) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(r.first))
	return sorted[min(int(q*float64(len(sorted))), len(sorted)-1)]
}

// parts opens many streams, each of 20 parts a second, and then has all clients vanish. The same is done
// to a server of net/http with the same model in it.
func parts(ctx context.Context, b *bench) ([]figure, error) {
	var runs, bare []partsRun
	for i := range b.Runs {
		run, err := b.partsRun(ctx, func() (*target, error) {
			return b.launch(ctx, "streams", setup{SLO: relaxed, CacheOff: true, Containers: []string{"talk"}})
		})
		if err != nil {
			return nil, err
		}
		b.say("  run %d: first part p50 %.1f ms, p99 %.1f ms; %.0f parts/s; %.0f KiB a stream; freed after %.2f s", i+1, run.quantile(0.5), run.quantile(0.99), run.perSec, run.memory, run.freed)
		runs = append(runs, run)
		if run, err = b.partsRun(ctx, func() (*target, error) { return b.bareTalk(ctx) }); err != nil {
			return nil, err
		}
		b.say("         a bare server: p50 %.1f ms, p99 %.1f ms; %.0f parts/s", run.quantile(0.5), run.quantile(0.99), run.perSec)
		bare = append(bare, run)
	}
	return []figure{
		sampled("first part, p50, while up to 1,000 streams are open", ms, bar{}, runs, func(r partsRun) float64 { return r.quantile(0.5) }),
		sampled("first part, p99", ms, bar{}, runs, func(r partsRun) float64 { return r.quantile(0.99) }),
		sampled("first part of a bare server, p99", ms, bar{}, bare, func(r partsRun) float64 { return r.quantile(0.99) }),
		compared("first part, p99, added by Topsail", ms, below(5), runs, bare, func(r, bare partsRun) float64 { return r.quantile(0.99) - bare.quantile(0.99) }),
		sampled("parts of 1,000 streams together, of 20,000", perSecond, bar{}, runs, func(r partsRun) float64 { return r.perSec }),
		sampled("memory that a stream holds in gateway and sidecar, KiB", count, below(64), runs, func(r partsRun) float64 { return r.memory }),
		sampled("until all are freed after the clients vanish", ms, below(1000), runs, func(r partsRun) float64 { return 1000 * r.freed }),
		sampled("streams that did not begin", count, none(), runs, func(r partsRun) float64 { return float64(r.refused) }),
	}, nil
}

func (b *bench) partsRun(ctx context.Context, start func() (*target, error)) (run partsRun, err error) {
	t, err := start()
	if err != nil {
		return run, err
	}
	defer t.end()
	if err := eventually(ctx, func(ctx context.Context) error { return speaks(ctx, t) }); err != nil {
		return run, err
	}
	before, err := t.held()
	if err != nil {
		return run, err
	}
	clients, vanish := context.WithCancel(ctx)
	defer vanish()
	transport := &http.Transport{MaxConnsPerHost: openStreams, DisableCompression: true}
	defer transport.CloseIdleConnections()
	var got atomic.Int64
	var mu sync.Mutex
	var reading sync.WaitGroup
	begun := make(chan struct{}, openStreams)
	for i := range openStreams {
		reading.Go(func() {
			time.Sleep(time.Duration(i) * time.Second / openRate)
			first, err := readParts(clients, transport, t.url, &got, begun)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				run.refused++
				begun <- struct{}{}
				return
			}
			run.first = append(run.first, first)
		})
	}
	for range openStreams {
		select {
		case <-begun:
		case <-ctx.Done():
			return run, ctx.Err()
		}
	}
	from := got.Load()
	time.Sleep(b.period())
	run.perSec = float64(got.Load()-from) / b.period().Seconds()
	after, err := t.held()
	if err != nil {
		return run, err
	}
	run.memory = float64(after-before) / 1024 / openStreams
	left := time.Now()
	vanish()
	reading.Wait()
	if err := b.silent(ctx, t); err != nil {
		return run, err
	}
	run.freed = time.Since(left).Seconds()
	return run, nil
}

// readParts reads a stream until ctx ends, and says after how many milliseconds its first part came.
func readParts(ctx context.Context, transport http.RoundTripper, url string, got *atomic.Int64, begun chan<- struct{}) (first float64, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(queryBody))
	if err != nil {
		return 0, err
	}
	r.Header.Set("Accept", "text/event-stream")
	start := time.Now()
	response, err := transport.RoundTrip(r)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return 0, errors.New(response.Status)
	}
	for in := bufio.NewReaderSize(response.Body, 512); ; {
		line, err := in.ReadString('\n')
		if err != nil {
			if first == 0 {
				return 0, err
			}
			return first, nil
		}
		if !strings.HasPrefix(line, spoken) {
			continue
		}
		if got.Add(1); first == 0 {
			first = time.Since(start).Seconds() * 1e3
			begun <- struct{}{}
		}
	}
}

// spoken is how the event of a part begins.
const spoken = `data: {"output":"word`

// speaks asks for one part.
func speaks(ctx context.Context, t *target) error {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	var got atomic.Int64
	begun := make(chan struct{}, 1)
	_, err := readParts(ctx, http.DefaultTransport, t.url, &got, begun)
	if got.Load() > 0 {
		return nil
	}
	return err
}

// end stops the processes of the target.
func (t *target) end() {
	for _, c := range t.children {
		_ = c.kill() // the next run has its own
	}
}

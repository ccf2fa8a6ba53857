package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/topsail-serving/topsail/test/harness"
)

const versions = 200

// many compares a cluster with 200 versions at zero to one with two.
func (b *bench) many(ctx context.Context) error {
	var more strings.Builder
	for i := range versions - 2 {
		fmt.Fprintf(&more, "\n[[model]]\nname = \"idle-%d\"\nversion = \"1\"\ninput_type = \"doubles\"\ncommand = [%q]\nreplicas = 0\n", i, b.Gosum)
	}
	few := b.CatalogOf(harness.Replicas, "1", "1", "2")
	var latency, tick []float64
	for range b.rounds {
		a, err := b.look(ctx, few)
		if err != nil {
			return err
		}
		z, err := b.look(ctx, few+more.String())
		if err != nil {
			return err
		}
		latency = append(latency, float64(z.median)/float64(a.median))
		tick = append(tick, z.tick/a.tick)
		fmt.Printf("  2 versions: median %v, p99 %v, tick %.2f ms; %d versions: median %v, p99 %v, tick %.2f ms\n",
			a.median, a.p99, 1000*a.tick, versions, z.median, z.p99, 1000*z.tick)
	}
	show("predict latency, median, 200 versions / 2", latency, "≤ 1.2")
	show("scheduler's tick, 200 versions / 2", tick, "≤ 1.2")
	return b.Apply(ctx, b.Catalog(harness.Replicas))
}

type sight struct {
	median, p99 time.Duration
	tick        float64 // seconds
}

// look measures for ten seconds with a catalog.
func (b *bench) look(ctx context.Context, catalog string) (sight, error) {
	if err := b.Apply(ctx, catalog); err != nil {
		return sight{}, err
	}
	time.Sleep(3 * time.Second)
	sum, n, err := b.ticks(ctx)
	if err != nil {
		return sight{}, err
	}
	load := harness.StartLoad("sum", harness.Rate, b.Gateways)
	time.Sleep(10 * time.Second)
	r := load.End("look")
	sum2, n2, err := b.ticks(ctx)
	if err != nil {
		return sight{}, err
	}
	return sight{r.Median, r.P99, (sum2 - sum) / (n2 - n)}, nil
}

// ticks are the seconds that all schedulers have spent in ticks, and their number.
func (b *bench) ticks(ctx context.Context) (sum, n float64, err error) {
	list, _, err := b.Services.Health().Service("topsail-scheduler", "", true, nil)
	if err != nil {
		return 0, 0, err
	}
	for _, e := range list {
		text, err := get(ctx, fmt.Sprintf("http://%s:%d/metrics", e.Service.Address, e.Service.Port))
		if err != nil {
			return 0, 0, err
		}
		sum += value(text, "topsail_scheduler_tick_seconds_sum ")
		n += value(text, "topsail_scheduler_tick_seconds_count ")
	}
	return sum, n, nil
}

func get(ctx context.Context, url string) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return string(text), err
}

// value of a metric without labels; 0 where there is none.
func value(text, name string) float64 {
	_, rest, _ := strings.Cut(text, "\n"+name)
	line, _, _ := strings.Cut(rest, "\n")
	v, _ := strconv.ParseFloat(strings.TrimSpace(line), 64)
	return v
}

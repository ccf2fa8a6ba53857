package inspect

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"math"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/topsail-serving/topsail/gateway/predict"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/test/require"
)

// page reads a page as Clipper's clients do: categories of objects with one key each,
// whose values are texts.
func page(t *testing.T, p *Page) map[string]map[string]map[string]string {
	t.Helper()
	var raw map[string][]map[string]map[string]string
	require.NoError(t, json.Unmarshal(p.Append(nil), &raw))
	all := map[string]map[string]map[string]string{}
	for category, list := range raw {
		all[category] = map[string]map[string]string{}
		for _, one := range list {
			if len(one) != 1 {
				t.Errorf("%s: %v has not one name", category, one)
			}
			maps.Copy(all[category], one)
		}
	}
	return all
}

func number(t *testing.T, text string) float64 {
	t.Helper()
	x, err := strconv.ParseFloat(text, 64)
	if err != nil {
		t.Error(err)
	}
	return x
}

// app has answered in a millisecond each, by cause.
func app(name string, since time.Time, answers ...uint64) predict.Traffic {
	t := predict.Traffic{App: name, Since: since, Answers: append(answers, make([]uint64, len(serving.Causes())-len(answers))...)}
	t.Times = predict.Times{Buckets: []predict.Bucket{{Above: 500 * time.Microsecond, UpTo: time.Millisecond, Count: t.Total()}}}
	t.Times.Count, t.Times.Sum, t.Times.Least, t.Times.Most = t.Total(), time.Duration(t.Total())*time.Millisecond, time.Millisecond, time.Millisecond
	return t
}

func TestThePage(t *testing.T) {
	since := time.Now().Add(-100 * time.Second)
	wine, tea := app("wine", since, 60, 30, 10), app("tea", since, 5)
	wine.Hits, wine.Joined, wine.Missed = 20, 10, 70
	got := page(t, New(func() []predict.Traffic { return []predict.Traffic{tea, wine} }))
	if names := slices.Sorted(maps.Keys(got)); !slices.Equal(names, []string{"counters", "histograms", "meters", "ratio_counters"}) {
		t.Errorf("categories %v", names)
	}
	for name, want := range map[string]string{"app:wine:num_predictions": "100", "app:tea:num_predictions": "5", "internal:aggregate_num_predictions": "105", "internal:prediction_cache_lookups": "100"} {
		if count := got["counters"][name]["count"]; count != want {
			t.Errorf("%s is %q, want %s", name, count, want)
		}
	}
	for name, want := range map[string]string{"app:wine:default_prediction_ratio": "0.4", "app:tea:default_prediction_ratio": "0", "internal:prediction_cache_hit_ratio": "0.3"} {
		if ratio := got["ratio_counters"][name]["ratio"]; ratio != want {
			t.Errorf("%s is %q, want %s", name, ratio, want)
		}
	}
	want := map[string]string{"unit": "microseconds", "size": "100", "min": "1000", "max": "1000", "mean": "1000", "std_dev": "0", "p50": "1000", "p95": "1000", "p99": "1000"}
	if h := got["histograms"]["app:wine:prediction_latency"]; !maps.Equal(h, want) {
		t.Errorf("latency %v, want %v", h, want)
	}
	m := got["meters"]["app:wine:prediction_throughput"]
	if rate := number(t, m["rate"]); m["unit"] != "events per second" || rate < 0.99 || rate > 1 || m["rate_1min"] != m["rate"] || m["rate_15min"] != m["rate"] {
		t.Errorf("throughput %v", m)
	}
}

// Clipper's own test wants a page that is an object with something in it, from the start.
func TestThePageOfNothing(t *testing.T) {
	got := page(t, New(func() []predict.Traffic { return nil }))
	if len(got) == 0 || got["counters"]["internal:aggregate_num_predictions"]["count"] != "0" || got["ratio_counters"]["internal:prediction_cache_hit_ratio"]["ratio"] != "nan" {
		t.Errorf("%v", got)
	}
	fresh := app("wine", time.Now())
	got = page(t, New(func() []predict.Traffic { return []predict.Traffic{fresh} }))
	if h := got["histograms"]["app:wine:prediction_latency"]; h["size"] != "0" || h["mean"] != "0" || h["p99"] != "0" || h["std_dev"] != "0" {
		t.Errorf("%v", h)
	}
}

func TestRates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex // guards the following
		since, answers, perTick := time.Now(), uint64(0), uint64(50)
		p := New(func() []predict.Traffic {
			mu.Lock()
			defer mu.Unlock()
			answers += perTick
			return []predict.Traffic{app("wine", since, answers)}
		})
		change := func(f func()) {
			mu.Lock()
			defer mu.Unlock()
			f()
		}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- p.Run(ctx) }()
		time.Sleep(time.Minute + time.Second)
		change(func() { perTick = 0 })
		now := page(t, p)["meters"]["app:wine:prediction_throughput"]
		for _, key := range []string{"rate_1min", "rate_5min", "rate_15min"} {
			if rate := number(t, now[key]); math.Abs(rate-10) > 1e-9 {
				t.Errorf("%s is %v, want 10", key, rate)
			}
		}
		time.Sleep(time.Minute)
		now = page(t, p)["meters"]["app:wine:prediction_throughput"]
		for key, minutes := range map[string]float64{"rate_1min": 1, "rate_5min": 5, "rate_15min": 15} {
			if rate, want := number(t, now[key]), 10*math.Exp(-1/minutes); math.Abs(rate-want) > 1e-6 {
				t.Errorf("%s is %v after a minute of silence, want %v", key, rate, want)
			}
		}
		change(func() { since, answers = time.Now(), 7 }) // registered anew
		time.Sleep(tick)
		if rate := number(t, page(t, p)["meters"]["app:wine:prediction_throughput"]["rate_1min"]); rate != 7/tick.Seconds() {
			t.Errorf("the new app inherits: %v", rate)
		}
		stop()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
}

func TestSpread(t *testing.T) {
	const ms = time.Millisecond
	times := predict.Times{Count: 100, Sum: 100 * 5 * ms, Least: ms, Most: 40 * ms, Buckets: []predict.Bucket{
		{UpTo: 2 * ms, Count: 50}, {Above: 2 * ms, UpTo: 4 * ms, Count: 40}, {Above: 10 * ms, UpTo: math.MaxInt64, Count: 10},
	}}
	got := spread(times)
	for _, tt := range []struct {
		name, got string
		want      float64
	}{
		{"p50", got.P50, 2000}, {"p95", got.P95, 25_000}, {"p99", got.P99, 37_000}, {"mean", got.Mean, 5000},
		{"std_dev", got.StdDev, math.Sqrt((50*3500*3500 + 40*2000*2000 + 10*20_000*20_000) / 100.0)},
	} {
		if x := number(t, tt.got); math.Abs(x-tt.want) > 1e-6 {
			t.Errorf("%s is %v, want %v", tt.name, x, tt.want)
		}
	}
}

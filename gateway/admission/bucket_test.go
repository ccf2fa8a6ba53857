package admission

import (
	"math"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/topsail-serving/topsail/serving"
)

var begun = time.Unix(1_700_000_000, 0)

// Over any span of time no more pass than the burst and what fills in meanwhile; whoever
// waits as long as it was told passes; and nobody is told to wait while there is enough.
func TestBucket(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := serving.Limit{
			PerSecond: rapid.OneOf(rapid.Float64Range(0.001, 10), rapid.Float64Range(1, 1e6)).Draw(t, "per second"),
			Burst:     rapid.IntRange(0, 50).Draw(t, "burst"),
		}
		b := newBucket(limit, begun)
		burst := float64(limit.Burst)
		if limit.Burst == 0 {
			burst = max(limit.PerSecond, 1)
		}
		type grant struct {
			at time.Duration
			n  int
		}
		var granted []grant
		at := time.Duration(0)
		level, last := burst, time.Duration(0) // of an exact bucket
		taken := 0.0
		for range rapid.IntRange(1, 100).Draw(t, "requests") {
			n := rapid.IntRange(1, 60).Draw(t, "n")
			at += time.Duration(rapid.Int64Range(0, int64(float64(20*time.Second)/limit.PerSecond)).Draw(t, "pause"))
			level, last = min(burst, level+limit.PerSecond*(at-last).Seconds()), at
			wait := b.take(begun.Add(at), n)
			rounded := limit.PerSecond * 1e-9 * (taken + burst + 1) // a nanosecond for each
			if wait > 0 && level > min(float64(n), burst)+rounded+1e-6 {
				t.Fatalf("%d of %v that there are were refused", n, level)
			}
			if wait > 0 {
				if b.take(begun.Add(at+wait-1), n) == 0 {
					t.Fatalf("a wait of %v is too long for %d", wait, n)
				}
				at += wait
				level, last = min(burst, level+limit.PerSecond*(at-last).Seconds()), at
				if again := b.take(begun.Add(at), n); again != 0 {
					t.Fatalf("%d did not pass after %v: %v more", n, wait, again)
				}
			}
			level, taken = level-float64(n), taken+float64(n)
			granted = append(granted, grant{at, n})
		}
		for from := range granted {
			sum := 0
			for _, g := range granted[from:] {
				most := max(burst, float64(g.n)) // a large one passes alone
				if sum += g.n; float64(sum) > most+limit.PerSecond*(g.at-granted[from].at).Seconds()+1e-6*float64(sum) {
					t.Fatalf("%d passed in %v", sum, g.at-granted[from].at)
				}
			}
		}
	})
}

// Without requests larger than the burst the bound is exact.
func TestNoMoreThanTheLimitPasses(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := serving.Limit{PerSecond: rapid.Float64Range(0.1, 1e5).Draw(t, "per second"), Burst: rapid.IntRange(1, 50).Draw(t, "burst")}
		b := newBucket(limit, begun)
		var at []time.Duration // of each query that passed
		now := time.Duration(0)
		for range rapid.IntRange(1, 200).Draw(t, "requests") {
			now += time.Duration(rapid.Int64Range(0, int64(float64(2*time.Second)/limit.PerSecond)).Draw(t, "pause"))
			n := rapid.IntRange(1, limit.Burst).Draw(t, "n")
			if b.take(begun.Add(now), n) == 0 {
				for range n {
					at = append(at, now)
				}
			}
		}
		for i := range at {
			for j := i; j < len(at); j++ {
				if passed := float64(j - i + 1); passed > float64(limit.Burst)+limit.PerSecond*(at[j]-at[i]).Seconds()+1e-6 {
					t.Fatalf("%v passed in %v", passed, at[j]-at[i])
				}
			}
		}
	})
}

func TestABucketByExample(t *testing.T) {
	at := func(ms int) time.Time { return begun.Add(time.Duration(ms) * time.Millisecond) }
	const ms = time.Millisecond
	type ask struct {
		at, n int
		wait  time.Duration
	}
	for name, tt := range map[string]struct {
		limit serving.Limit
		asks  []ask
	}{
		"a burst, one by one":        {serving.Limit{PerSecond: 3, Burst: 3}, []ask{{0, 1, 0}, {0, 1, 0}, {0, 1, 0}, {0, 1, 333333334}}},
		"a second's worth":           {serving.Limit{PerSecond: 10}, []ask{{0, 10, 0}, {0, 1, 100 * ms}, {100, 1, 0}}},
		"at least one":               {serving.Limit{PerSecond: 0.5}, []ask{{0, 1, 0}, {1, 1, 1999 * ms}}},
		"a batch goes into debt":     {serving.Limit{PerSecond: 10, Burst: 2}, []ask{{0, 20, 0}, {0, 1, 1900 * ms}, {1899, 1, 1 * ms}, {1900, 1, 0}}},
		"a batch waits until full":   {serving.Limit{PerSecond: 10, Burst: 2}, []ask{{0, 1, 0}, {50, 20, 50 * ms}, {100, 20, 0}}},
		"an idle bucket is not deep": {serving.Limit{PerSecond: 10, Burst: 2}, []ask{{1_000_000, 2, 0}, {1_000_000, 1, 100 * ms}}},
		"a clock that steps back":    {serving.Limit{PerSecond: 10, Burst: 1}, []ask{{500, 1, 0}, {400, 1, 200 * ms}, {-500, 1, 600 * ms}}},
		"the slowest":                {serving.Limit{PerSecond: math.SmallestNonzeroFloat64, Burst: 1e9}, []ask{{0, 1, 0}, {0, 1, longest}}},
		"the fastest":                {serving.Limit{PerSecond: serving.MaxLimit, Burst: 1}, []ask{{0, 1, 0}, {0, 1, 1}}},
	} {
		b := newBucket(tt.limit, begun)
		for i, a := range tt.asks {
			if wait := b.take(at(a.at), a.n); wait != a.wait {
				t.Errorf("%s: request %d waits %v, want %v", name, i, wait, a.wait)
			}
		}
	}
	b := newBucket(serving.Limit{PerSecond: 1, Burst: 1}, begun)
	b.take(begun, 1)
	b.give(1)
	if wait := b.take(begun, 1); wait != 0 {
		t.Errorf("what was put back is not there: %v", wait)
	}
	var none *bucket
	none.give(1)
	if none.take(begun, 1<<40) != 0 {
		t.Error("a bucket that is not there refuses")
	}
}

// Whoever comes at the same moment, the bucket is shared once.
func TestABucketIsSharedOnce(t *testing.T) {
	const burst, workers = 1000, 8
	b := newBucket(serving.Limit{PerSecond: 0.001, Burst: burst}, begun)
	var passed atomic.Int64
	var all sync.WaitGroup
	for range workers {
		all.Go(func() {
			for range burst {
				if b.take(begun, 1) == 0 {
					passed.Add(1)
				}
			}
		})
	}
	all.Wait()
	if passed.Load() != burst {
		t.Errorf("%d passed", passed.Load())
	}
}

func BenchmarkBucket(b *testing.B) {
	for name, rate := range map[string]float64{"taking": serving.MaxLimit, "refused": 0.001} {
		bucket := newBucket(serving.Limit{PerSecond: rate, Burst: 1}, begun)
		now := begun
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				now = now.Add(time.Microsecond)
				bucket.take(now, 1)
			}
		})
		b.Run(name+" by all", func(b *testing.B) {
			b.ReportAllocs()
			b.SetParallelism(8)
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					bucket.take(time.Now(), 1)
				}
			})
		})
	}
}

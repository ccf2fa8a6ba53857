package dispatch

import (
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"
)

// TestLatencyFollowsQuantiles draws from several distributions at several scales, and
// holds that about the right part lies below each estimate.
func TestLatencyFollowsQuantiles(t *testing.T) {
	shapes := map[string]func(r *rand.Rand) float64{
		"uniform":     func(r *rand.Rand) float64 { return 0.5 + r.Float64() },
		"exponential": func(r *rand.Rand) float64 { return r.ExpFloat64() },
		"log-normal":  func(r *rand.Rand) float64 { return math.Exp(r.NormFloat64()) },
		"two modes": func(r *rand.Rand) float64 {
			if r.IntN(10) == 0 {
				return 20 + r.Float64()
			}
			return 1 + r.Float64()
		},
	}
	for name, draw := range shapes {
		t.Run(name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(1, 2))
			var p latency
			for _, scale := range []time.Duration{time.Millisecond, time.Second, 10 * time.Microsecond} { // one after the other
				next := func() time.Duration { return time.Duration(draw(r) * float64(scale)) }
				for range 6000 {
					p.note(next())
				}
				var medians, p95s []time.Duration
				for range 2000 {
					p.note(next())
					median, p95 := p.times()
					medians, p95s = append(medians, median), append(p95s, p95)
				}
				sample := make([]time.Duration, 20000)
				for i := range sample {
					sample[i] = next()
				}
				slices.Sort(sample)
				slices.Sort(medians)
				slices.Sort(p95s)
				below := func(x time.Duration) float64 {
					at, _ := slices.BinarySearch(sample, x)
					return float64(at) / float64(len(sample))
				}
				if b := below(medians[1000]); b < 0.44 || b > 0.56 {
					t.Errorf("at %v, %.3f lie below the median", scale, b)
				}
				if b := below(p95s[1000]); b < 0.92 || b > 0.98 {
					t.Errorf("at %v, %.3f lie below the 95th percentile", scale, b)
				}
			}
		})
	}
}

func TestLatencyOfConstants(t *testing.T) {
	var p latency
	if median, p95 := p.times(); median != 0 || p95 != 0 {
		t.Errorf("%v and %v before any answer", median, p95)
	}
	for range 100 {
		p.note(time.Millisecond)
		if median, p95 := p.times(); median != time.Millisecond || p95 != time.Millisecond {
			t.Fatalf("%v and %v", median, p95)
		}
	}
	p.note(-time.Second) // a clock that went back
	if median, _ := p.times(); median <= 0 || median >= time.Millisecond {
		t.Errorf("%v after an impossible answer", median)
	}
}

func TestLatencyIsNotedAtOnce(t *testing.T) {
	var p latency
	var all sync.WaitGroup
	for g := range 4 {
		all.Go(func() {
			for i := range 5000 {
				p.note(time.Duration(1+(g+i)%3) * time.Millisecond)
				if median, p95 := p.times(); median < time.Millisecond || p95 > 3200*time.Microsecond { // a step above the largest
					t.Errorf("%v and %v of 1 to 3 ms", median, p95)
				}
			}
		})
	}
	all.Wait()
}

// Who seems too slow is asked once in a while, by one.
func TestProbes(t *testing.T) {
	var p latency
	start, probes := time.Unix(1e9, 0), 0
	for ms := range 10_000 {
		if p.probe(start.Add(time.Duration(ms) * time.Millisecond)) {
			probes++
		}
	}
	if probes != 100 {
		t.Errorf("%d probes in 10 s", probes)
	}
}

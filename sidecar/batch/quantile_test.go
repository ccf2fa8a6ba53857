package batch

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// bestLoss tries every line through two observations, and every flat one: the
// best line is among them.
func bestLoss(window []observation, tau float64) float64 {
	best := math.Inf(1)
	try := func(slope float64) {
		for _, through := range window {
			base, sum := through.t-slope*through.n, 0.0
			for _, o := range window {
				if d := o.t - slope*o.n - base; d > 0 {
					sum += tau * d
				} else {
					sum -= (1 - tau) * d
				}
			}
			best = min(best, sum)
		}
	}
	try(0)
	for i, a := range window {
		for _, b := range window[:i] {
			if slope := (a.t - b.t) / (a.n - b.n); slope > 0 && !math.IsInf(slope, 1) {
				try(slope)
			}
		}
	}
	return best
}

func TestPinballFindsTheBestLine(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q := NewQuantile(Unlimited)
		widest := rapid.SampledFrom([]int{1, 3, 50, 1000}).Draw(t, "widest")
		for range rapid.IntRange(1, 24).Draw(t, "observations") {
			q.window = append(q.window, observation{
				n: float64(rapid.IntRange(1, widest).Draw(t, "n")),
				t: rapid.Float64Range(0, 0.1).Draw(t, "t"),
			})
		}
		tau := rapid.SampledFrom([]float64{0.5, 0.9, 0.99}).Draw(t, "tau")
		slope, base := q.pinball(tau)
		got := 0.0
		for _, o := range q.window {
			if d := o.t - slope*o.n - base; d > 0 {
				got += tau * d
			} else {
				got -= (1 - tau) * d
			}
		}
		precision := 1e-9 * float64(widest*len(q.window)) // the search stops at a slope good enough
		if want := bestLoss(q.window, tau); slope < 0 || got > want*(1+1e-5)+precision {
			t.Fatalf("loss %g with slope %g and base %g, the best line has %g", got, slope, base, want)
		}
	})
}

func TestQuantileIsFlatWhileSizesAreAlike(t *testing.T) {
	q := NewQuantile(Unlimited)
	r := rand.New(rand.NewPCG(1, 1))
	for range 100 {
		q.window = append(q.window, observation{37, 0.02 + 0.01*r.Float64()})
	}
	if slope, base := q.pinball(quantileTau); slope != 0 || base < 0.0295 || base > 0.03 {
		t.Errorf("slope %g, base %g from one size only", slope, base)
	}
}

// noisy takes what the line says, times a factor whose 99th percentile is known.
func noisy(base, each, sigma float64) (took func(int) time.Duration, p99 float64) {
	r := rand.New(rand.NewPCG(7, 7))
	line := linear(base, each)
	return func(n int) time.Duration { return time.Duration(float64(line(n)) * math.Exp(sigma*r.NormFloat64())) }, math.Exp(2.326 * sigma)
}

func TestQuantileKeepsItsTarget(t *testing.T) {
	const batches = 1500
	for _, c := range []struct{ target, base, each, sigma float64 }{
		{50, 2, 0.1, 0.2},
		{50, 20, 0.1, 0.1},
		{10, 1, 1, 0.1},
		{250, 5, 0.05, 0.3},
	} {
		took, factor := noisy(c.base, c.each, c.sigma)
		q := NewQuantile(Unlimited)
		target := time.Duration(c.target * 1e6)
		missed, total := 0, 0
		watched := func(n int) time.Duration {
			t := took(n)
			if t > target {
				missed++
			}
			total += n
			return t
		}
		saturate(q, NewProfile(), 300, target, took)
		saturate(q, NewProfile(), batches, target, watched)
		right := (c.target/factor - c.base) / c.each
		if mean := float64(total) / batches; mean < 0.8*right || mean > 1.1*right {
			t.Errorf("%+v: mean size %.0f, the right one is %.0f", c, mean, right)
		}
		// Of a window of 256, the estimate of a 99th percentile is good for no more.
		if missed > batches*2/100 {
			t.Errorf("%+v: %d of %d batches missed the target", c, missed, batches)
		}
	}
}

func TestQuantileAtMostDoublesWhatItHasSeen(t *testing.T) {
	q := NewQuantile(Unlimited)
	for _, c := range []struct{ n, want int }{{1, 2}, {2, 4}, {3, 6}, {2, 6}, {6, 12}} {
		q.Observe(c.n, ms, time.Second, false)
		if q.Size() != c.want {
			t.Fatalf("after a batch of %d it is at %d, want %d", c.n, q.Size(), c.want)
		}
	}
}

// Sizes that are all alike say nothing of smaller ones. A model that became slow
// must not make it collapse to 1.
func TestQuantileShrinksInProportionAtFirst(t *testing.T) {
	q := NewQuantile(100)
	for range quantileWindow {
		q.Observe(100, 40*ms, 50*ms, true)
	}
	if q.Size() != 100 {
		t.Fatalf("it is at %d, and 100 are within the target", q.Size())
	}
	for range 2 * quantileRefit {
		q.Observe(100, 120*ms, 50*ms, true)
	}
	if q.Size() < 35 || q.Size() > 50 {
		t.Errorf("a model that is too slow by 2.4 brought it from 100 to %d", q.Size())
	}
}

func TestQuantileFollowsTheModel(t *testing.T) {
	q := NewQuantile(Unlimited)
	p := NewProfile()
	saturate(q, p, 100, 100*ms, linear(10, 0.5))
	saturate(q, p, 2*quantileWindow, 100*ms, linear(30, 1.5))
	checkBand(t, "three times slower", saturate(q, p, 50, 100*ms, linear(30, 1.5)), 100, 30, 1.5)
	saturate(q, p, 2*quantileWindow, 100*ms, linear(10, 0.5))
	checkBand(t, "fast again", saturate(q, p, 50, 100*ms, linear(10, 0.5)), 100, 10, 0.5)
}

// Targets change with nearly every batch, and a fit is dear: it is not for that.
func TestQuantileDoesNotFitForATarget(t *testing.T) {
	q := NewQuantile(Unlimited)
	saturate(q, NewProfile(), 100, 100*ms, linear(10, 0.5))
	q.fit()
	for i := range quantileRefit - 1 {
		q.Observe(1, linear(10, 0.5)(1), time.Duration(50+i)*ms, false)
		if want := int((50+float64(i)-10)/0.5 + 1e-6); q.Size() < want-1 || q.Size() > want+1 {
			t.Fatalf("a target of %d ms gives %d, want %d", 50+i, q.Size(), want)
		}
	}
	if q.since != quantileRefit-1 {
		t.Errorf("it was fitted anew, %d observations ago", q.since)
	}
}

func BenchmarkQuantileFit(b *testing.B) {
	took, _ := noisy(5, 0.1, 0.2)
	q := NewQuantile(Unlimited)
	for i := range quantileWindow {
		q.Observe(1+i%200, took(1+i%200), 50*ms, true)
	}
	b.ReportAllocs()
	for b.Loop() {
		q.fit()
	}
}

func BenchmarkQuantileObserve(b *testing.B) {
	took, _ := noisy(5, 0.1, 0.2)
	q := NewQuantile(Unlimited)
	i := 0
	b.ReportAllocs()
	for b.Loop() {
		i++
		n := 1 + i%200
		q.Observe(n, took(n), time.Duration(50_000+i%1000)*time.Microsecond, true)
	}
}

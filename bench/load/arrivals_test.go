package load

import (
	"math"
	"testing"
	"time"
)

func TestUniformArrivals(t *testing.T) {
	a := newArrivals(Config{Rate: 4, Uniform: true})
	for want := range 10 {
		i, at := a.next()
		if i != want || at != time.Duration(want)*250*time.Millisecond {
			t.Fatalf("arrival %d at %v, want %d at %v", i, at, want, time.Duration(want)*250*time.Millisecond)
		}
	}
}

// The gaps of a Poisson process have the mean 1/rate and as large a deviation.
func TestPoissonArrivals(t *testing.T) {
	const n, rate = 100_000, 1000.0
	a := newArrivals(Config{Rate: rate, Seed: 7})
	var last time.Duration
	var sum, squares float64
	for want := range n {
		i, at := a.next()
		if i != want || at < last {
			t.Fatalf("arrival %d at %v after %v, want %d", i, at, last, want)
		}
		gap := (at - last).Seconds()
		sum, squares, last = sum+gap, squares+gap*gap, at
	}
	mean := sum / n
	deviation := math.Sqrt(squares/n - mean*mean)
	if math.Abs(mean*rate-1) > 0.02 || math.Abs(deviation*rate-1) > 0.02 {
		t.Errorf("gaps of %.3g ± %.3g s, want %g for both", mean, deviation, 1/rate)
	}
}

func TestSeedFixesArrivals(t *testing.T) {
	a, same, other := newArrivals(Config{Rate: 10, Seed: 1}), newArrivals(Config{Rate: 10, Seed: 1}), newArrivals(Config{Rate: 10, Seed: 2})
	differs := false
	for range 100 {
		_, at := a.next()
		if _, again := same.next(); again != at {
			t.Fatalf("equal seeds gave %v and %v", at, again)
		}
		_, elsewhere := other.next()
		differs = differs || elsewhere != at
	}
	if !differs {
		t.Error("two seeds gave the same arrivals")
	}
}

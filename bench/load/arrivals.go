package load

import (
	"math/rand/v2"
	"time"
)

// arrivals are the points in time at which requests are due, in order and without
// end. Equal seeds give equal arrivals.
type arrivals struct {
	rate   float64    // per second
	random *rand.Rand // nil for even distances
	count  int
	last   float64 // seconds
}

func newArrivals(cfg Config) *arrivals {
	a := &arrivals{rate: cfg.Rate}
	if !cfg.Uniform {
		a.random = rand.New(rand.NewPCG(cfg.Seed, 0))
	}
	return a
}

// next returns the number of the next arrival and its distance from the start.
func (a *arrivals) next() (i int, at time.Duration) {
	i = a.count
	a.count++
	if a.random == nil {
		a.last = float64(i) / a.rate
	} else {
		a.last += a.random.ExpFloat64() / a.rate
	}
	return i, time.Duration(a.last * float64(time.Second))
}

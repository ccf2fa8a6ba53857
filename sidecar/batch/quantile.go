package batch

import (
	"math"
	"slices"
	"time"
)

const (
	quantileTau    = 0.99
	quantileWindow = 256
	quantileRefit  = 16 // batches between two fits
)

// Quantile sizes batches by regression: a line fitted to the 99th percentile of
// the time by size, solved for the target (Clipper, section 4.3). Beyond the
// sizes that it has seen it goes by at most double, since a line knows nothing
// there.
type Quantile struct {
	size   int
	limit  int
	window []observation // a ring of the latest
	next   int
	since  int // observations since the last fit
	target time.Duration
}

type observation struct{ n, t float64 } // t in seconds

// NewQuantile starts at 1 and never exceeds limit.
func NewQuantile(limit int) *Quantile { return &Quantile{size: 1, limit: limit} }

func (q *Quantile) Size() int { return q.size }

func (q *Quantile) Observe(n int, took, target time.Duration, full bool) {
	o := observation{float64(n), took.Seconds()}
	if len(q.window) < quantileWindow {
		q.window = append(q.window, o)
	} else {
		q.window[q.next] = o
		q.next = (q.next + 1) % quantileWindow
	}
	q.since++
	if q.since < quantileRefit && !(full && q.size < quantileRefit) && target == q.target {
		return
	}
	q.since, q.target = 0, target
	q.size = q.solve(target)
}

// solve is the largest size that the fitted line allows within target.
func (q *Quantile) solve(target time.Duration) int {
	a, b := pinballFit(q.window, quantileTau)
	largest := 0.0
	for _, o := range q.window {
		largest = max(largest, o.n)
	}
	fit := math.Inf(1)
	if a > 0 {
		fit = (target.Seconds() - b) / a
	} else if b > target.Seconds() {
		fit = 1
	}
	return int(min(max(fit, 1), 2*largest, float64(q.limit)))
}

// pinballFit minimises the pinball loss of t ≈ a·n + b at quantile tau, with a ≥ 0.
// For a given slope the best intercept is the tau-quantile of what is left, and
// the loss is convex in the slope: a ternary search finds it.
func pinballFit(window []observation, tau float64) (a, b float64) {
	rest := make([]float64, len(window))
	loss := func(a float64) (float64, float64) {
		for i, o := range window {
			rest[i] = o.t - a*o.n
		}
		slices.Sort(rest)
		b := rest[min(int(tau*float64(len(rest))), len(rest)-1)]
		sum := 0.0
		for _, r := range rest {
			if d := r - b; d > 0 {
				sum += tau * d
			} else {
				sum -= (1 - tau) * d
			}
		}
		return sum, b
	}
	high := 0.0
	for _, o := range window {
		high = max(high, o.t/o.n)
	}
	low := 0.0
	for range 40 {
		third := (high - low) / 3
		left, _ := loss(low + third)
		right, _ := loss(high - third)
		if left <= right {
			high -= third
		} else {
			low += third
		}
	}
	a = (low + high) / 2
	flat, b0 := loss(0)
	if best, b := loss(a); best < flat {
		return a, b
	}
	return 0, b0
}

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

	slope, base float64 // the fitted line, in seconds
	largest     float64 // the largest size behind it
	rest        []float64
}

type observation struct{ n, t float64 } // t in seconds

// NewQuantile starts at 1 and never exceeds limit.
func NewQuantile(limit int) *Quantile { return &Quantile{size: 1, limit: limit} }

func (q *Quantile) Size() int { return q.size }

// Observe fits anew from time to time, and at once when a batch was larger than
// any before; for a changed target the line that it has will do.
func (q *Quantile) Observe(n int, took, target time.Duration, _ bool) {
	o := observation{float64(n), took.Seconds()}
	if len(q.window) < quantileWindow {
		q.window = append(q.window, o)
	} else {
		q.window[q.next] = o
		q.next = (q.next + 1) % quantileWindow
	}
	if q.since++; q.since >= quantileRefit || o.n > q.largest {
		q.fit()
	}
	q.size = q.solve(target.Seconds())
}

func (q *Quantile) fit() {
	q.since, q.largest = 0, 0
	for _, o := range q.window {
		q.largest = max(q.largest, o.n)
	}
	q.slope, q.base = q.pinball(quantileTau)
}

// solve is the largest size that the line allows within target. Beyond the sizes seen the time is
// taken to grow at least in proportion, and at a slope that was not seen for lack of different
// sizes.
func (q *Quantile) solve(target float64) int {
	fit := q.largest * target / max(q.slope*q.largest+q.base, 1e-9)
	if q.slope > 0 {
		fit = min(fit, (target-q.base)/q.slope)
	}
	return int(min(max(fit, 1), 2*q.largest, float64(q.limit)))
}

// pinball minimises the pinball loss of t ≈ slope·n + base at quantile tau, with
// slope ≥ 0. For a given slope the best base is the tau-quantile of what is left,
// and the loss is convex in the slope: a golden section search finds it.
func (q *Quantile) pinball(tau float64) (slope, base float64) {
	const golden = 0.6180339887498949
	low, high := 0.0, q.steepest()
	flat, _ := q.loss(0, tau)
	left, right := high-golden*high, golden*high
	atLeft, _ := q.loss(left, tau)
	atRight, _ := q.loss(right, tau)
	for range 40 {
		if atLeft <= atRight {
			high, right, atRight = right, left, atLeft
			left = high - golden*(high-low)
			atLeft, _ = q.loss(left, tau)
		} else {
			low, left, atLeft = left, right, atRight
			right = low + golden*(high-low)
			atRight, _ = q.loss(right, tau)
		}
	}
	slope = (low + high) / 2
	// While all sizes are alike, every slope does as well but for rounding.
	if best, base := q.loss(slope, tau); best < flat*(1-1e-6) {
		return slope, base
	}
	_, base = q.loss(0, tau)
	return 0, base
}

// steepest bounds the slope of the best line: no two observations of different
// sizes have a steeper one between them, since sizes are whole numbers.
func (q *Quantile) steepest() float64 {
	least, most := math.Inf(1), 0.0
	for _, o := range q.window {
		least, most = min(least, o.t), max(most, o.t)
	}
	return most - least
}

// loss is that of the best line of a slope, and the line's base.
func (q *Quantile) loss(slope, tau float64) (sum, base float64) {
	q.rest = q.rest[:0]
	for _, o := range q.window {
		q.rest = append(q.rest, o.t-slope*o.n)
	}
	slices.Sort(q.rest)
	base = q.rest[min(int(tau*float64(len(q.rest))), len(q.rest)-1)]
	for _, r := range q.rest {
		if d := r - base; d > 0 {
			sum += tau * d
		} else {
			sum -= (1 - tau) * d
		}
	}
	return sum, base
}

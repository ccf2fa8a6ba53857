package traffic

import (
	"math"
	"slices"

	"github.com/topsail-serving/topsail/internal/obs"
)

// maxBuckets bounds the buckets of a histogram that is read.
const maxBuckets = 64

// histogram counts values by bucket.
type histogram struct {
	bounds []float64 // upper ones, ascending, in seconds; shared and never changed
	counts []float64 // of each bucket, and of what lies above all
}

// readHistogram takes a histogram as it is read; ok is false for one that makes no sense. Its bounds
// are those of others where they are the same.
func readHistogram(s *obs.Series, others []float64) (h histogram, ok bool) {
	if len(s.Bounds) == 0 || len(s.Bounds) > maxBuckets || len(s.Counts) != len(s.Bounds)+1 {
		return histogram{}, false
	}
	if h.bounds = others; !slices.Equal(s.Bounds, others) {
		lower := 0.0
		for _, bound := range s.Bounds {
			if !(bound > lower) {
				return histogram{}, false
			}
			lower = bound
		}
		h.bounds = slices.Clone(s.Bounds)
	}
	h.counts = make([]float64, len(s.Counts))
	for i, n := range s.Counts {
		h.counts[i] = float64(n)
	}
	return h, true
}

// total is how many values there are.
func (h histogram) total() float64 {
	sum := 0.0
	for _, n := range h.counts {
		sum += n
	}
	return sum
}

// alike says whether two have the same buckets.
func (h histogram) alike(other histogram) bool { return slices.Equal(h.bounds, other.bounds) }

// add adds what other counted. Where the buckets are others, because a newer release
// has come, it begins anew.
func (h *histogram) add(other histogram) {
	if !h.alike(other) {
		*h = histogram{bounds: other.bounds, counts: slices.Clone(other.counts)}
		return
	}
	for i, n := range other.counts {
		h.counts[i] += n
	}
}

// quantile is the value below which the share q of the values lies, in seconds, as far
// as buckets tell: evenly spread within each, and nothing above the last bound. It is
// NaN for no values.
func (h histogram) quantile(q float64) float64 {
	total := h.total()
	if total <= 0 {
		return math.NaN()
	}
	rank := q * total
	lower := 0.0
	for i, bound := range h.bounds {
		if n := h.counts[i]; n > 0 && rank <= n {
			return lower + (bound-lower)*rank/n
		}
		rank -= h.counts[i]
		lower = bound
	}
	return lower
}

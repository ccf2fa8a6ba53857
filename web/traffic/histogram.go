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

// readHistogram takes a histogram as it is exposed; ok is false for one that makes no sense.
func readHistogram(h *obs.HistogramSample) (histogram, bool) {
	var read histogram
	below, lower := 0.0, 0.0
	for _, b := range h.GetBucket() {
		bound, upTo := b.GetUpperBound(), float64(b.GetCumulativeCount())
		if math.IsInf(bound, 1) {
			continue
		}
		if len(read.bounds) == maxBuckets || upTo < below || !(bound > lower) {
			return histogram{}, false
		}
		read.bounds = append(read.bounds, bound)
		read.counts = append(read.counts, upTo-below)
		below, lower = upTo, bound
	}
	above := float64(h.GetSampleCount()) - below
	read.counts = append(read.counts, max(0, above))
	return read, len(read.bounds) > 0
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

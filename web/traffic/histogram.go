package traffic

import (
	"cmp"
	"math"

	"github.com/topsail-serving/topsail/internal/obs"
)

// maxBuckets bounds the buckets of a histogram that is read.
const maxBuckets = 256

// histogram counts values by bucket: ascending, without those that are empty, which are most. It is
// shared and never changed.
type histogram []bucket

// bucket is n values above one bound and up to another, in seconds; the last has no upper one.
type bucket struct{ above, upTo, n float64 }

// compare orders buckets by their upper bounds.
func (b bucket) compare(other bucket) int {
	return cmp.Or(cmp.Compare(b.upTo, other.upTo), cmp.Compare(b.above, other.above))
}

// readHistogram takes a histogram as it is read; ok is false for one that makes no sense.
func readHistogram(s *obs.Series) (h histogram, ok bool) {
	if len(s.Bounds) == 0 {
		return nil, false
	}
	return histogramOf(s.Bounds, s.Counts)
}

// histogramOf has so many values up to each bound, and beyond all of them.
func histogramOf[N uint64 | float64](bounds []float64, counts []N) (h histogram, ok bool) {
	if len(bounds) > maxBuckets || len(counts) != len(bounds)+1 {
		return nil, false
	}
	b := bucket{}
	for i, n := range counts {
		b.above, b.upTo, b.n = b.upTo, math.Inf(1), float64(n)
		if i < len(bounds) {
			b.upTo = bounds[i]
		}
		if !(b.upTo > b.above) {
			return nil, false
		}
		if n > 0 {
			h = append(h, b)
		}
	}
	return h, true
}

// parts are what histogramOf takes.
func (h histogram) parts() (bounds, counts []float64) {
	last, beyond := 0.0, 0.0
	for _, b := range h {
		if b.above > last {
			bounds, counts, last = append(bounds, b.above), append(counts, 0), b.above
		}
		switch {
		case math.IsInf(b.upTo, 1):
			beyond = b.n
		case b.upTo > last:
			bounds, counts, last = append(bounds, b.upTo), append(counts, b.n), b.upTo
		default: // of two scales
			counts[len(counts)-1] += b.n
		}
	}
	return bounds, append(counts, beyond)
}

// total is how many values there are.
func (h histogram) total() float64 {
	sum := 0.0
	for _, b := range h {
		sum += b.n
	}
	return sum
}

// plus is both together.
func (h histogram) plus(other histogram) histogram {
	if len(h) == 0 {
		return other
	}
	return h.with(other, 1)
}

// since is what came after before; ok is false where it had other buckets, as those of a release or
// of an objective that has changed.
func (h histogram) since(before histogram) (came histogram, ok bool) {
	came = h.with(before, -1)
	for _, b := range came {
		if b.n < 0 {
			return nil, false
		}
	}
	return came, true
}

// with adds so many times what other has.
func (h histogram) with(other histogram, times float64) histogram {
	if len(other) == 0 {
		return h
	}
	all := make(histogram, 0, len(h)+len(other))
	for len(h) > 0 || len(other) > 0 {
		order := 0
		switch {
		case len(other) == 0:
			order = -1
		case len(h) == 0:
			order = 1
		default:
			order = h[0].compare(other[0])
		}
		var b bucket
		if order <= 0 {
			b, h = h[0], h[1:]
		}
		if order >= 0 {
			b.above, b.upTo, b.n = other[0].above, other[0].upTo, b.n+times*other[0].n
			other = other[1:]
		}
		if b.n != 0 {
			all = append(all, b)
		}
	}
	return all
}

// less says whether a bucket that both have has become less, which is so only where counting began
// anew.
func (h histogram) less(before histogram) bool {
	for _, b := range before {
		for len(h) > 0 && h[0].compare(b) < 0 {
			h = h[1:]
		}
		if len(h) > 0 && h[0].compare(b) == 0 && h[0].n < b.n {
			return true
		}
	}
	return false
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
	for _, b := range h {
		if rank <= b.n && !math.IsInf(b.upTo, 1) {
			return b.above + (b.upTo-b.above)*rank/b.n
		}
		rank -= b.n
	}
	if last := h[len(h)-1]; math.IsInf(last.upTo, 1) {
		return last.above
	} else {
		return last.upTo // rank is above all for a rounding error
	}
}

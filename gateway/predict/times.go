package predict

import (
	"math"
	"slices"
	"sync/atomic"
	"time"

	"github.com/topsail-serving/topsail/gateway/usage"
)

// decade are the bounds of buckets within a power of ten: the preferred numbers of IEC 60063, series E48.
// Each is about 5 % above the one before.
var decade = [...]int{
	100, 105, 110, 115, 121, 127, 133, 140, 147, 154, 162, 169, 178, 187, 196, 205,
	215, 226, 237, 249, 261, 274, 287, 301, 316, 332, 348, 365, 383, 402, 422, 442,
	464, 487, 511, 536, 562, 590, 619, 649, 681, 715, 750, 787, 825, 866, 909, 953,
}

// decades is how many powers of ten there are: 100 µs to 1,000 s, longer than any objective.
const decades = 7

const timeBounds = decades*len(decade) + 1

// bounds are the upper bounds of the buckets of times.
var bounds = func() (all [timeBounds]time.Duration) {
	unit := time.Microsecond
	for i := range all {
		all[i] = time.Duration(decade[i%len(decade)]) * unit
		if i%len(decade) == len(decade)-1 {
			unit *= 10
		}
	}
	return all
}()

// times counts how long answers took. The zero value is ready, and small until there is one.
type times struct {
	buckets atomic.Pointer[buckets]
	sum     atomic.Int64 // nanoseconds
	spread  usage.Spread // since it was taken
	taken   usage.Spread // all that was taken
}

// buckets are counts by bounds; the last is beyond all of them.
type buckets [timeBounds + 1]atomic.Uint64

func (t *times) add(took time.Duration) {
	took = max(took, 0)
	all := t.buckets.Load()
	if all == nil {
		t.buckets.CompareAndSwap(nil, new(buckets))
		all = t.buckets.Load()
	}
	i, _ := slices.BinarySearch(bounds[:], took)
	all[i].Add(1)
	t.sum.Add(int64(took))
	t.spread.Add(took)
}

// total is all times together.
func (t *times) total() time.Duration { return time.Duration(t.sum.Load()) }

// take is the shortest and the longest time since it was last taken; 0 is none.
func (t *times) take() (least, most time.Duration) {
	least, most = t.spread.Take()
	t.taken.Join(least, most)
	return least, most
}

// Times is how long answers took, as of some moment.
type Times struct {
	Count            uint64
	Sum, Least, Most time.Duration
	Buckets          []Bucket // ascending; those without a time are left out
}

// Bucket is the times above one bound and up to another.
type Bucket struct {
	Above, UpTo time.Duration
	Count       uint64
}

func (t *times) now() Times {
	var all usage.Spread
	all.Join(t.taken.Get())
	all.Join(t.spread.Get())
	s := Times{Sum: t.total()}
	s.Least, s.Most = all.Get()
	counts := t.buckets.Load()
	if counts == nil {
		return s
	}
	b := Bucket{}
	for i := range counts {
		b.Above, b.UpTo = b.UpTo, math.MaxInt64
		if i < timeBounds {
			b.UpTo = bounds[i]
		}
		if b.Count = counts[i].Load(); b.Count > 0 {
			s.Count += b.Count
			s.Buckets = append(s.Buckets, b)
		}
	}
	return s
}

// scale is which bounds of times the metrics of an app have: few enough for a page, and close to each
// other where its answers are, so that a percentile is right to 5 %, however times are spread within a
// bucket. That is from a hundredth of the objective, where a fast model is, to a quarter above it,
// where the last default is. Times are counted by all bounds, and so an app whose objective changes
// goes on counting.
type scale struct {
	bounds []float64 // in seconds
	upTo   []int     // by bound: its place among all bounds
	counts []uint64  // by bound, and of what is beyond; reused
}

// newScale is that of an objective.
func newScale(objective time.Duration) *scale {
	const apart = 1.6 // how far bounds may be from each other where no answers are expected, as a ratio
	s := &scale{bounds: []float64{bounds[0].Seconds()}, upTo: []int{0}}
	last := bounds[0]
	for i := 1; i < timeBounds; i++ {
		end := i == timeBounds-1
		near := !end && bounds[i+1] >= objective/100 && bounds[i-1] <= objective+objective/4
		if end || near || float64(bounds[i+1]) > float64(last)*apart {
			last = bounds[i]
			s.bounds, s.upTo = append(s.bounds, last.Seconds()), append(s.upTo, i)
		}
	}
	s.counts = make([]uint64, len(s.bounds)+1)
	return s
}

// of counts times by the scale; valid until it is called again.
func (s *scale) of(t *times) []uint64 {
	clear(s.counts)
	all := t.buckets.Load()
	if all == nil {
		return s.counts
	}
	at := 0
	for i := range all {
		n := all[i].Load()
		if n == 0 {
			continue
		}
		for at < len(s.upTo) && i > s.upTo[at] {
			at++
		}
		s.counts[at] += n
	}
	return s.counts
}

// scales are those of objectives, made as they are asked for.
type scales map[time.Duration]*scale

func (all scales) of(objective time.Duration) *scale {
	if all[objective] == nil {
		all[objective] = newScale(objective)
	}
	return all[objective]
}

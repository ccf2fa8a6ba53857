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

package predict

import (
	"math"
	"sync/atomic"
	"time"

	"github.com/topsail-serving/topsail/gateway/usage"
)

// timeBounds are the upper bounds of the buckets of times, those of obs.Seconds.
const timeBounds = 16

var bounds = [timeBounds]time.Duration{
	100 * time.Microsecond, 250 * time.Microsecond, 500 * time.Microsecond,
	1 * time.Millisecond, 2500 * time.Microsecond, 5 * time.Millisecond,
	10 * time.Millisecond, 25 * time.Millisecond, 50 * time.Millisecond,
	100 * time.Millisecond, 250 * time.Millisecond, 500 * time.Millisecond,
	1 * time.Second, 2500 * time.Millisecond, 5 * time.Second, 10 * time.Second,
}

// boundsInSeconds are bounds as metrics have them.
func boundsInSeconds() (all [timeBounds]float64) {
	for i, b := range bounds {
		all[i] = b.Seconds()
	}
	return all
}

// times counts how long answers took. The zero value is ready.
type times struct {
	buckets [timeBounds + 1]atomic.Uint64 // the last is beyond all bounds
	sum     atomic.Int64                  // nanoseconds
	spread  usage.Spread                  // since it was taken
	taken   usage.Spread                  // all that was taken
}

func (t *times) add(took time.Duration) {
	took = max(took, 0)
	i := 0
	for i < timeBounds && took > bounds[i] {
		i++
	}
	t.buckets[i].Add(1)
	t.sum.Add(int64(took))
	t.spread.Add(took)
}

// total is all times together.
func (t *times) total() time.Duration { return time.Duration(t.sum.Load()) }

// counts is how many are in each bucket.
func (t *times) counts() (all [timeBounds + 1]uint64) {
	for i := range t.buckets {
		all[i] = t.buckets[i].Load()
	}
	return all
}

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
	Buckets          []Bucket // by their bounds; the last has none
}

// Bucket is the times up to a bound, and above that of the bucket before.
type Bucket struct {
	UpTo  time.Duration
	Count uint64
}

func (t *times) now() Times {
	var all usage.Spread
	all.Join(t.taken.Get())
	all.Join(t.spread.Get())
	s := Times{Sum: time.Duration(t.sum.Load())}
	s.Least, s.Most = all.Get()
	for i := range t.buckets {
		b := Bucket{UpTo: math.MaxInt64, Count: t.buckets[i].Load()}
		if i < timeBounds {
			b.UpTo = bounds[i]
		}
		s.Count += b.Count
		s.Buckets = append(s.Buckets, b)
	}
	return s
}

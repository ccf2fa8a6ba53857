package admission

import (
	"math"
	"sync/atomic"
	"time"

	"github.com/topsail-serving/topsail/serving"
)

// bucket is a bucket of tokens, one for each query, that fills up at a steady rate. It
// keeps no more than the time at which it will be full, so that taking is one atomic
// step. A nil bucket is bottomless.
type bucket struct {
	limit serving.Limit
	burst float64 // tokens that it holds
	token int64   // nanoseconds until it has one more
	depth int64   // nanoseconds until all are in
	begun time.Time
	full  atomic.Int64 // when it is full again, in nanoseconds since begun
}

// longest bounds the times that a bucket reckons with, to decades, so that sums of
// them fit.
const longest = 1 << 60

// newBucket is a full bucket.
func newBucket(limit serving.Limit, now time.Time) *bucket {
	b := &bucket{limit: limit, burst: float64(limit.Burst), begun: now}
	if limit.Burst == 0 {
		b.burst = max(limit.PerSecond, 1)
	}
	b.token = int64(math.Ceil(min(float64(time.Second)/limit.PerSecond, longest)))
	b.depth = b.worth(b.burst)
	return b
}

// worth is how many nanoseconds so many tokens take.
func (b *bucket) worth(tokens float64) int64 {
	return int64(math.Ceil(min(tokens*float64(b.token), longest)))
}

// take takes n tokens, or says how long it will be until it can. A request for more than the
// bucket holds gets them when it is full, and later requests wait longer.
func (b *bucket) take(now time.Time, n int) (wait time.Duration) {
	if b == nil {
		return 0
	}
	at := max(int64(now.Sub(b.begun)), 0)
	cost := b.worth(float64(n))
	for {
		old := b.full.Load()
		next := max(old, at)
		if wait := next + min(cost, b.depth) - b.depth - at; wait > 0 {
			return time.Duration(wait)
		}
		if b.full.CompareAndSwap(old, next+cost) {
			return 0
		}
	}
}

// give puts n tokens back that were taken.
func (b *bucket) give(n int) {
	if b != nil {
		b.full.Add(-b.worth(float64(n)))
	}
}

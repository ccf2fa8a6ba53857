package batch

import (
	"time"

	"github.com/topsail-serving/topsail/sidecar/queue"
)

// defaultTarget is the time that a batch should take when no item in it has a
// deadline.
const defaultTarget = 500 * time.Millisecond

// goals are the time that the batch should take at most, and when its last
// deadline is. alone is what one input takes.
func goals(items []*queue.Item, now time.Time, alone time.Duration) (target time.Duration, last time.Time) {
	target, last = defaultTarget, now
	for _, it := range items {
		if it.Deadline.IsZero() {
			continue
		}
		target = min(target, share(it.Budget(), alone))
		if it.Deadline.After(last) {
			last = it.Deadline
		}
	}
	return target, last
}

// share is what of a budget is for the batch. It is half, since a query that just
// misses a batch waits out a whole one before its own (Nexus); and it is of the
// budget and not of what is left of it, so that a standing queue does not shrink
// the batches that must clear it. When not even a batch of 1 is done in half,
// small batches gain nothing: then it is halfway from there to all of it.
func share(budget, alone time.Duration) time.Duration {
	if half := budget / 2; alone < half*9/10 {
		return half
	}
	return (min(alone, budget) + budget) / 2
}

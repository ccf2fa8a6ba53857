package queue

import "time"

// Batch is what Form took out of the queue. The caller owns all of it.
type Batch struct {
	Items   []*Item // to run now, in order of deadline
	Expired []*Item // their deadline has passed
	Late    []*Item // they could not finish by their deadline
}

// Form takes the next batch of at most size items into b, whose slices it
// reuses: the largest whose time, by took, meets the earliest deadline in it.
// took must not fall as n grows. An item that has less left than alone, what it
// takes by itself, is dropped now instead of being started in vain; that may be
// less than took allows for a batch of 1. An item is dropped, too, when the batch
// would shrink so much for it that more of those behind it came late. others is
// what the container does for other models before the next batch from this queue.
func (q *Queue) Form(b *Batch, now time.Time, size int, alone, others time.Duration, took func(n int) time.Duration) {
	b.Items, b.Expired, b.Late = b.Items[:0], b.Expired[:0], b.Late[:0]
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.went != nil {
		defer q.went()
	}
	for q.head < len(q.items) {
		left := q.items[q.head].Left(now)
		if left > 0 && alone <= left {
			break
		}
		it := q.pop()
		if left <= 0 {
			b.Expired = append(b.Expired, it)
		} else {
			b.Late = append(b.Late, it)
		}
	}
	drop, n := cut(q.items[q.head:], now, size, others, took)
	for range drop {
		b.Late = append(b.Late, q.pop())
	}
	for range n {
		b.Items = append(b.Items, q.pop())
	}
}

// cut says how many of the first items to drop, and how many behind them to run.
// Each of them could make its deadline alone. When the first does not bear a full
// batch, the batch shrinks for it, unless that would make items behind it late:
// under overload each small batch leaves the next ones with as little time, and
// the queue would be cleared in small, dear batches for good. Then as many are
// dropped as it takes for a full batch (Nexus' early drop), if that is fewer than
// the slower clearing of what waits would cost.
func cut(items []*Item, now time.Time, size int, others time.Duration, took func(n int) time.Duration) (drop, n int) {
	full := min(size, len(items))
	if full == 0 || took(full) <= items[0].Left(now) {
		return 0, full
	}
	n = max(1, largest(full, items[0].Left(now), took))
	if inTime(items[n:], now.Add(took(n)+others), size, took(full), others) {
		return 0, n
	}
	slower := float64(n) / float64(full) * float64(took(full)+others) / float64(took(n)+others)
	lost := len(items) - int(float64(len(items))*slower)
	for drop = 1; drop < lost; drop++ {
		full = min(size, len(items)-drop)
		if took(full) <= items[drop].Left(now) {
			return drop, full
		}
	}
	return 0, n
}

// inTime says whether all items would make their deadlines if they ran from start
// on in batches of size, each of which takes as long, with others between them.
func inTime(items []*Item, start time.Time, size int, each, others time.Duration) bool {
	rounds := (len(items) + size - 1) / size
	for done := range rounds {
		left := items[done*size].Left(start)
		if left < time.Duration(done+1)*each+time.Duration(done)*others {
			return false
		}
		if left >= time.Duration(rounds)*each+time.Duration(rounds-1)*others {
			return true // and so have all behind it
		}
	}
	return true
}

// largest is the largest n up to limit that takes at most left, or 0.
func largest(limit int, left time.Duration, took func(n int) time.Duration) int {
	low, high := 0, limit+1 // low fits, high does not
	for high-low > 1 {
		if mid := (low + high) / 2; took(mid) <= left {
			low = mid
		} else {
			high = mid
		}
	}
	return low
}

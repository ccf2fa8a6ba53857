// Package queue holds the queries that wait for a batch, earliest deadline
// first, bounded in number and in bytes.
package queue

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// ErrFull refuses an item because the queue holds all that it may.
var ErrFull = errors.New("the queue is full")

// ErrLate refuses an item that could not be answered by its deadline.
var ErrLate = errors.New("the deadline cannot be met")

// Limits bound a queue.
type Limits struct {
	Items int
	Bytes int
}

// Queue orders items by deadline. It is a sorted slice rather than a heap: nearly
// all items arrive in order, so that pushing is appending, and the place of a new
// item, which admission needs, is known.
type Queue struct {
	limits Limits
	admit  func(it *Item, ahead int) error

	mu    sync.Mutex // guards the following
	items []*Item    // items[head:] wait, in order
	head  int
	bytes int

	length atomic.Int64
	ready  chan struct{} // holds a token when items may wait
}

// New makes an empty queue. admit is asked about each item before it is queued,
// with the number of items that would go before it; it must be quick.
func New(limits Limits, admit func(it *Item, ahead int) error) *Queue {
	return &Queue{limits: limits, admit: admit, ready: make(chan struct{}, 1)}
}

// Len is the number of items that wait.
func (q *Queue) Len() int { return int(q.length.Load()) }

// Push queues it, or says why not: ErrFull, or the error of admission.
func (q *Queue) Push(it *Item) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	waiting := q.items[q.head:]
	if len(waiting) >= q.limits.Items || q.bytes+it.bytes() > q.limits.Bytes {
		return ErrFull
	}
	ahead := len(waiting)
	if ahead > 0 && it.before(waiting[ahead-1]) {
		ahead, _ = slices.BinarySearchFunc(waiting, it, func(a, b *Item) int {
			if b.before(a) {
				return 1
			}
			return -1 // equal deadlines keep the order of arrival
		})
	}
	if err := q.admit(it, ahead); err != nil {
		return err
	}
	q.insert(it, q.head+ahead)
	q.signal()
	return nil
}

func (q *Queue) insert(it *Item, at int) {
	if q.head > 0 && len(q.items) == cap(q.items) {
		n := copy(q.items, q.items[q.head:])
		clear(q.items[n:])
		q.items, at, q.head = q.items[:n], at-q.head, 0
	}
	q.items = slices.Insert(q.items, at, it)
	q.bytes += it.bytes()
	q.length.Add(1)
}

func (q *Queue) signal() {
	select {
	case q.ready <- struct{}{}:
	default:
	}
}

// Wait returns when at least n items wait, or until is reached (zero: never) while
// some do, or ctx ends. It says whether any wait.
func (q *Queue) Wait(ctx context.Context, n int, until time.Time) bool {
	var timeout <-chan time.Time
	if !until.IsZero() {
		timer := time.NewTimer(time.Until(until))
		defer timer.Stop()
		timeout = timer.C
	}
	for q.Len() < n {
		select {
		case <-q.ready:
		case <-timeout:
			return q.Len() > 0
		case <-ctx.Done():
			return false
		}
	}
	return true
}

// First is the arrival of the item that goes next, and what it has left.
func (q *Queue) First(now time.Time) (arrived time.Time, left time.Duration, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.head == len(q.items) {
		return time.Time{}, 0, false
	}
	it := q.items[q.head]
	return it.Arrived, it.Left(now), true
}

// Batch is what Form took out of the queue. The caller owns all of it.
type Batch struct {
	Items   []*Item // to run now, in order of deadline
	Expired []*Item // their deadline has passed
	Late    []*Item // they could not finish by their deadline
}

// Form takes the next batch of at most size items into b, whose slices it
// reuses: the largest whose time, by took, meets the earliest deadline in it.
// An item that cannot make its deadline even alone is dropped now instead of
// being started in vain. With two batches or more waiting it drops what cannot
// make it within a full batch rather than shrink the batch for it, because a
// small batch costs everyone behind it (Nexus' early drop).
func (q *Queue) Form(b *Batch, now time.Time, size int, took func(n int) time.Duration) {
	b.Items, b.Expired, b.Late = b.Items[:0], b.Expired[:0], b.Late[:0]
	q.mu.Lock()
	defer q.mu.Unlock()
	for q.head < len(q.items) {
		waiting := len(q.items) - q.head
		left := q.items[q.head].Left(now)
		n := min(size, waiting)
		switch {
		case left <= 0:
			b.Expired = append(b.Expired, q.pop())
			continue
		case took(n) <= left:
		case took(1) > left, waiting >= 2*size:
			b.Late = append(b.Late, q.pop())
			continue
		default:
			n = largest(n, func(n int) bool { return took(n) <= left })
		}
		for range n {
			b.Items = append(b.Items, q.pop())
		}
		break
	}
	if q.head < len(q.items) {
		q.signal() // another batcher may be waiting
	}
}

// largest finds the largest n in [1, limit) that is good; 1 is.
func largest(limit int, good func(int) bool) int {
	low, high := 1, limit
	for high-low > 1 {
		if mid := (low + high) / 2; good(mid) {
			low = mid
		} else {
			high = mid
		}
	}
	return low
}

func (q *Queue) pop() *Item {
	it := q.items[q.head]
	q.items[q.head] = nil
	q.bytes -= it.bytes()
	q.length.Add(-1)
	if q.head++; q.head == len(q.items) {
		q.items, q.head = q.items[:0], 0
	}
	return it
}

// Drain takes everything out.
func (q *Queue) Drain() []*Item { return q.Remove(func(*Item) bool { return true }) }

// Remove takes out the items that match.
func (q *Queue) Remove(match func(*Item) bool) []*Item {
	q.mu.Lock()
	defer q.mu.Unlock()
	var removed []*Item
	for waiting := len(q.items) - q.head; waiting > 0; waiting-- {
		it := q.pop()
		if match(it) {
			removed = append(removed, it)
		} else {
			q.insert(it, len(q.items))
		}
	}
	return removed
}

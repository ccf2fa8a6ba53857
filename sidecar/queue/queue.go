// Package queue holds the queries that wait for a batch, earliest deadline
// first, bounded in number and in bytes.
package queue

import (
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
	went   func() // called when items have gone; may be nil

	mu    sync.Mutex // guards the following
	items []*Item    // items[head:] wait, in order
	head  int
	bytes int

	length atomic.Int64 // of items[head:]; changed under mu, read without it
}

// New makes an empty queue. admit is asked about each item before it is queued, with the number of items that
// would go before it. went, which may be nil, is called when items may have gone. Both must be quick and leave the
// queue alone.
func New(limits Limits, admit func(it *Item, ahead int) error, went func()) *Queue {
	return &Queue{limits: limits, admit: admit, went: went}
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
	q.insert(it, ahead)
	return nil
}

// insert puts it behind the first ahead items. It moves the items to the front
// rather than let the slice grow, once at least as much is free as is in use, so
// that a move pays for as many inserts as it takes.
func (q *Queue) insert(it *Item, ahead int) {
	if len(q.items) == cap(q.items) && 2*q.head >= len(q.items) && q.head > 0 {
		n := copy(q.items, q.items[q.head:])
		clear(q.items[n:])
		q.items, q.head = q.items[:n], 0
	}
	q.items = slices.Insert(q.items, q.head+ahead, it)
	q.bytes += it.bytes()
	q.length.Add(1)
}

// Below says whether less waits than limits allow.
func (q *Queue) Below(limits Limits) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.items)-q.head < limits.Items && q.bytes < limits.Bytes
}

// First is what the item that goes next has left, and the earliest arrival among
// the next n.
func (q *Queue) First(now time.Time, n int) (arrived time.Time, left time.Duration, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	waiting := q.items[q.head:]
	if len(waiting) == 0 {
		return time.Time{}, 0, false
	}
	arrived = waiting[0].Arrived
	for _, it := range waiting[:min(n, len(waiting))] {
		if it.Arrived.Before(arrived) {
			arrived = it.Arrived
		}
	}
	return arrived, waiting[0].Left(now), true
}

// Span is how many items wait, and when the first and the last of them are due.
func (q *Queue) Span(now time.Time) (n int, first, last time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	waiting := q.items[q.head:]
	if n = len(waiting); n > 0 {
		first, last = now.Add(waiting[0].Left(now)), now.Add(waiting[n-1].Left(now))
	}
	return n, first, last
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
	waiting := q.items[q.head:]
	kept := waiting[:0]
	for _, it := range waiting {
		if match(it) {
			removed = append(removed, it)
			q.bytes -= it.bytes()
		} else {
			kept = append(kept, it)
		}
	}
	clear(waiting[len(kept):])
	q.items = q.items[:q.head+len(kept)]
	q.length.Store(int64(len(kept)))
	if q.went != nil {
		q.went()
	}
	return removed
}

// Package queue holds the queries that wait for a batch, bounded in number and in bytes: apps share the capacity by
// weight, and the queries of each go by earliest deadline.
package queue

import (
	"cmp"
	"errors"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/topsail-serving/topsail/internal/fair"
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

const (
	// mostLanes is how many apps have lanes of their own; those beyond share one.
	mostLanes = 64
	// laneIdle is how long an app counts among those that share the capacity after its last item.
	laneIdle = 10 * time.Second
	// leastCredit is how many items an app can save up where batches are smaller; else it is a batch.
	leastCredit = 8
	// shareDecay is the weight that a taken item keeps per later one in what an app had lately.
	shareDecay = 0.99
)

// Queue has a lane for each app whose items wait.
type Queue struct {
	// Displaced gets the items that make way for others in a full queue. It is set before the first is pushed.
	Displaced func(*Item)

	limits Limits
	admit  func(it *Item, ahead int) error
	went   func() // called when items have gone; may be nil

	mu     sync.Mutex // guards the following
	lanes  []*lane    // of the apps that were there lately
	clock  fair.Clock
	credit int // the items that an app can save up while it asks for less than its share

	length atomic.Int64 // of all lanes; changed under mu, read without it
	shared atomic.Bool  // there are several lanes; likewise
}

// New makes an empty queue. admit is asked about each item before it is queued, with the number of items that are
// thought to go before it. went, which may be nil, is called when items may have gone. Both must be quick and leave
// the queue alone.
func New(limits Limits, admit func(it *Item, ahead int) error, went func()) *Queue {
	return &Queue{limits: limits, admit: admit, went: went}
}

// Len is the number of items that wait.
func (q *Queue) Len() int { return int(q.length.Load()) }

// Shared says whether several apps had items here lately.
func (q *Queue) Shared() bool { return q.shared.Load() }

// Push queues it, or says why not: ErrFull, or the error of admission. In a full queue an app that has less than its
// share of the room displaces items of others.
func (q *Queue) Push(it *Item) error {
	var displaced []*Item
	defer func() {
		for _, it := range displaced {
			q.Displaced(it)
		}
	}()
	q.mu.Lock()
	defer q.mu.Unlock()
	l := q.lane(it)
	full := q.full(it)
	if full && !q.entitled(l, it) {
		return ErrFull
	}
	if l.len() == 0 {
		q.clock.Wake(&l.Share, q.credit)
	}
	place := l.place(it)
	if err := q.admit(it, q.ahead(l, place)); err != nil {
		return err
	}
	for ; full; full = q.full(it) {
		displaced = append(displaced, q.largest().popLast())
		q.length.Add(-1)
	}
	l.insert(it, place)
	q.length.Add(1)
	return nil
}

// lane is that of the item's app.
func (q *Queue) lane(it *Item) *lane {
	l := q.find(it.App)
	if l == nil {
		q.prune(it.Arrived)
		app := it.App
		if len(q.lanes) >= mostLanes {
			app = ""
		}
		if l = q.find(app); l == nil {
			l = newLane(app)
			q.clock.Join(&l.Share)
			q.lanes = append(q.lanes, l)
			q.shared.Store(len(q.lanes) > 1)
		}
	}
	if l.app == it.App {
		l.Weight = fair.Weight(it.Weight)
	}
	return l
}

func (q *Queue) find(app string) *lane {
	for _, l := range q.lanes {
		if l.app == app {
			return l
		}
	}
	return nil
}

// prune forgets the apps that are not there any more.
func (q *Queue) prune(now time.Time) {
	q.lanes = slices.DeleteFunc(q.lanes, func(l *lane) bool { return l.len() == 0 && now.Sub(l.last) > laneIdle })
	q.shared.Store(len(q.lanes) > 1)
}

// full says whether there is no room for it.
func (q *Queue) full(it *Item) bool {
	return q.Len() >= q.limits.Items || q.bytes()+it.bytes() > q.limits.Bytes
}

func (q *Queue) bytes() (n int) {
	for _, l := range q.lanes {
		n += l.bytes
	}
	return n
}

// entitled says whether l, with it, has at most its share of the room, so that if there is none another has more.
func (q *Queue) entitled(l *lane, it *Item) bool {
	weights := 0.0
	for _, other := range q.lanes {
		weights += other.Weight
	}
	return l.room(q.limits, 1, it.bytes())*weights <= 1
}

// largest is the lane that has the most room for its weight.
func (q *Queue) largest() *lane {
	return slices.MaxFunc(q.lanes, func(a, b *lane) int {
		return cmp.Compare(a.room(q.limits, 0, 0), b.room(q.limits, 0, 0))
	})
}

// ahead is how many items are thought to go before the one at a place of a lane: of other apps at most what their
// shares allow, and at least what waits, or what they had lately if that is more.
func (q *Queue) ahead(l *lane, place int) int {
	if len(q.lanes) == 1 {
		return place
	}
	waiting, most := place, place
	for _, other := range q.lanes {
		if other == l {
			continue
		}
		share := other.Share
		if other.len() == 0 {
			q.clock.Wake(&share, q.credit)
		}
		before := l.Before(place, &share)
		most += before
		waiting += min(before, other.len())
	}
	lately := float64(place+1)/max(l.lately, 1e-6) - 1
	return min(most, max(waiting, int(lately)))
}

// Below says whether less waits than limits allow.
func (q *Queue) Below(limits Limits) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.Len() < limits.Items && q.bytes() < limits.Bytes
}

// First is what the item that is due first has left, and the earliest arrival among the next n of each app.
func (q *Queue) First(now time.Time, n int) (arrived time.Time, left time.Duration, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, l := range q.lanes {
		waiting := l.waiting()
		for i, it := range waiting[:min(n, len(waiting))] {
			if !ok || it.Arrived.Before(arrived) {
				arrived = it.Arrived
			}
			if !ok || i == 0 && it.Left(now) < left {
				left = it.Left(now)
			}
			ok = true
		}
	}
	return arrived, left, ok
}

// Span is how many items wait, and when the first and the last of them are due.
func (q *Queue) Span(now time.Time) (n int, first, last time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	least, most := time.Duration(math.MaxInt64), time.Duration(math.MinInt64)
	for _, l := range q.lanes {
		if waiting := l.waiting(); len(waiting) > 0 {
			n += len(waiting)
			least, most = min(least, waiting[0].Left(now)), max(most, waiting[len(waiting)-1].Left(now))
		}
	}
	if n > 0 {
		first, last = now.Add(least), now.Add(most)
	}
	return n, first, last
}

// Drain takes everything out.
func (q *Queue) Drain() []*Item { return q.Remove(func(*Item) bool { return true }) }

// Remove takes out the items that match.
func (q *Queue) Remove(match func(*Item) bool) (removed []*Item) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, l := range q.lanes {
		removed = l.remove(match, removed)
	}
	q.length.Add(-int64(len(removed)))
	if q.went != nil {
		q.went()
	}
	return removed
}

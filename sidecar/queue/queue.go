// Package queue holds the queries that wait for a batch, bounded in number and in bytes: those of a higher priority go
// first, apps of the same share the capacity by weight, and the queries of each go by earliest deadline.
package queue

import (
	"cmp"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/topsail-serving/topsail/internal/fair"
	"github.com/topsail-serving/topsail/serving"
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
	// mostLanes is how many apps have lanes of their own; those beyond share one for each priority.
	mostLanes = 64
	// laneIdle is how long an app counts among those that share the capacity after its last item.
	laneIdle = 10 * time.Second
	// leastCredit is how many items an app can save up where batches are smaller; else it is a batch.
	leastCredit = 8
	// shareDecay is the weight that a taken item keeps per later one in what an app had lately.
	shareDecay = 0.99
)

// Queue has a lane for each app and priority whose items wait.
type Queue struct {
	// Displaced gets the items that make way for others in a full queue. It is set before the first is pushed.
	Displaced func(*Item)

	limits Limits
	admit  func(it *Item, ahead Load) error
	went   func() // called when items have gone; may be nil

	mu     sync.Mutex // guards the following
	lanes  []*lane    // of those that were there lately, by priority
	clocks [serving.Priorities]fair.Clock
	credit int // the items that an app can save up while it asks for less than its share

	length atomic.Int64 // of all lanes; changed under mu, read without it
	shared atomic.Bool  // there are several lanes; likewise
}

// New makes an empty queue. admit is asked about each item before it is queued, with what is
// thought to go before it. went, which may be nil, is called when items may have gone. Both must be quick and leave
// the queue alone.
func New(limits Limits, admit func(it *Item, ahead Load) error, went func()) *Queue {
	return &Queue{limits: limits, admit: admit, went: went}
}

// Len is the number of items that wait.
func (q *Queue) Len() int { return int(q.length.Load()) }

// Shared says whether several apps had items here lately.
func (q *Queue) Shared() bool { return q.shared.Load() }

// Push queues it, or says why not: ErrFull, or the error of admission. In a full queue it displaces items of a lower
// priority, and where its app has less than its share of the room, those of others.
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
		q.clocks[l.priority].Wake(&l.Share, q.credit)
	}
	place := l.place(it)
	if err := q.admit(it, q.alike(it, q.ahead(l, place))); err != nil {
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

// lane is that of the item's app and priority.
func (q *Queue) lane(it *Item) *lane {
	l := q.find(it.App, it.Priority)
	if l == nil {
		q.prune(it.Arrived)
		app := it.App
		if len(q.lanes) >= mostLanes {
			app = ""
		}
		if l = q.find(app, it.Priority); l == nil {
			l = &lane{Share: fair.Share{Weight: 1}, app: app, priority: it.Priority, lately: 1}
			q.clocks[l.priority].Join(&l.Share)
			q.lanes = append(q.lanes, l)
			slices.SortStableFunc(q.lanes, func(a, b *lane) int { return cmp.Compare(a.priority, b.priority) })
			q.shared.Store(len(q.lanes) > 1)
		}
	}
	if l.app == it.App {
		l.Weight, l.minShare = fair.Weight(it.Weight), it.MinShare
	}
	return l
}

func (q *Queue) find(app string, priority int) *lane {
	for _, l := range q.lanes {
		if l.app == app && l.priority == priority {
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
	items, bytes := q.held(serving.LowestPriority)
	return items >= q.limits.Items || bytes+it.bytes() > q.limits.Bytes
}

// held is what waits of a priority and those above.
func (q *Queue) held(priority int) (items, bytes int) {
	for _, l := range q.lanes {
		if l.priority <= priority {
			items, bytes = items+l.len(), bytes+l.bytes
		}
	}
	return items, bytes
}

// entitled says whether l may displace others for it: its priority and those above have the room without lower ones, or
// l has, with it, at most its share of what those above leave, so that another one of the same priority has more.
func (q *Queue) entitled(l *lane, it *Item) bool {
	items, bytes := q.held(l.priority)
	if items < q.limits.Items && bytes+it.bytes() <= q.limits.Bytes {
		return true
	}
	weights := 0.0
	for _, other := range q.lanes {
		if other.priority == l.priority {
			weights += other.Weight
		}
	}
	items, bytes = q.held(l.priority - 1)
	left := 1 - max(float64(items)/float64(q.limits.Items), float64(bytes)/float64(q.limits.Bytes))
	return l.room(q.limits, 1, it.bytes())*weights <= left
}

// largest is the lane of the lowest priority that has the most room for its weight.
func (q *Queue) largest() *lane {
	return slices.MaxFunc(q.lanes, func(a, b *lane) int {
		return cmp.Or(
			cmp.Compare(min(a.len(), 1), min(b.len(), 1)), // there must be one to make way
			cmp.Compare(a.priority, b.priority),
			cmp.Compare(a.room(q.limits, 0, 0), b.room(q.limits, 0, 0)),
		)
	})
}

// ahead is how many items are thought to go before the one at a place of a lane: of other apps at most what their
// shares allow, and at least what waits, or what they had lately if that is more. Of higher priorities all go first that
// wait, and at least as many as lately, unless nothing else waits in the lane: then one is tried.
func (q *Queue) ahead(l *lane, place int) int {
	if len(q.lanes) == 1 {
		return place
	}
	waiting, most, behind := place, place, q.lanes[0].priority < l.priority
	for _, other := range q.lanes {
		switch {
		case other == l || other.priority > l.priority:
			continue
		case other.priority < l.priority:
			waiting += other.len()
			continue
		}
		share := other.Share
		if other.len() == 0 {
			q.clocks[l.priority].Wake(&share, q.credit)
		}
		before := l.Before(place, &share)
		most += before
		waiting += min(before, other.len())
	}
	lately := int(float64(place+1)/max(l.lately, 1e-6)) - 1
	switch {
	case !behind:
		return min(most, max(waiting, lately))
	case l.len() == 0:
		return waiting
	}
	return max(waiting, lately)
}

// alike is the load of n items that are as large in the mean as those that wait, or if none does, as it.
func (q *Queue) alike(it *Item, n int) Load {
	waits := q.waiting(serving.LowestPriority)
	if waits.N == 0 {
		waits = it.Load()
	}
	return Load{n, int(float64(waits.Bytes) * float64(n) / float64(waits.N))}
}

// Below says whether less waits than limits allow.
func (q *Queue) Below(limits Limits) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	items, bytes := q.held(serving.LowestPriority)
	return items < limits.Items && bytes < limits.Bytes
}

// Waiting is what waits of a priority and those above.
func (q *Queue) Waiting(priority int) Load {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.waiting(priority)
}

func (q *Queue) waiting(priority int) (load Load) {
	for _, l := range q.lanes {
		if l.priority <= priority {
			load.N += l.len()
			load.Bytes += l.inputs
		}
	}
	return load
}

// Head is what goes first of what waits.
type Head struct {
	Priority int
	Left     time.Duration // of the item that is due first
	Arrived  time.Time     // the earliest of the next n of each app
}

// First is the head of those of the highest priority that wait.
func (q *Queue) First(now time.Time, n int) (head Head, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, l := range q.lanes {
		if ok && l.priority > head.Priority {
			break
		}
		waiting := l.waiting()
		for i, it := range waiting[:min(n, len(waiting))] {
			if !ok || it.Arrived.Before(head.Arrived) {
				head.Arrived = it.Arrived
			}
			if !ok || i == 0 && it.Left(now) < head.Left {
				head.Priority, head.Left = l.priority, it.Left(now)
			}
			ok = true
		}
	}
	return head, ok
}

// Span is what waits, and when the first and the last of it are due.
type Span struct {
	Load
	First, Last time.Time
}

// Spans are those of each priority.
func (q *Queue) Spans(now time.Time) (spans [serving.Priorities]Span) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, l := range q.lanes {
		waiting := l.waiting()
		if len(waiting) == 0 {
			continue
		}
		s := &spans[l.priority]
		first, last := now.Add(waiting[0].Left(now)), now.Add(waiting[len(waiting)-1].Left(now))
		if s.N == 0 || first.Before(s.First) {
			s.First = first
		}
		if s.N == 0 || last.After(s.Last) {
			s.Last = last
		}
		s.N += len(waiting)
		s.Bytes += l.inputs
	}
	return spans
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

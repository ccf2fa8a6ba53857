package dispatch

import (
	"cmp"
	"container/heap"
	"time"

	"github.com/topsail-serving/topsail/internal/fair"
	"github.com/topsail-serving/topsail/serving"
)

// held are the questions of a version that are held: those of a higher priority go first, apps of the same by their
// shares, and the questions of each by deadline.
type held struct {
	apps   []*heldApp // that asked while the version is cold
	clocks [serving.Priorities]fair.Clock
	calls  int
	bytes  int64
}

// heldApp are the questions of one app and priority.
type heldApp struct {
	fair.Share
	byDeadline
	name     string
	priority int
}

func (h *held) of(c *Call) *heldApp {
	for _, a := range h.apps {
		if a.name == c.Class.App && a.priority == c.Class.Priority {
			return a
		}
	}
	a := &heldApp{name: c.Class.App, priority: c.Class.Priority, Share: fair.Share{Weight: fair.Weight(c.Class.Weight)}}
	h.clocks[a.priority].Join(&a.Share)
	h.apps = append(h.apps, a)
	return a
}

func (h *held) push(c *Call) {
	a := h.of(c)
	if len(a.calls) == 0 {
		h.clocks[a.priority].Wake(&a.Share, 0)
	}
	a.push(c)
	h.calls++
	h.bytes += c.size()
}

func (h *held) remove(c *Call) {
	h.of(c).remove(c)
	h.calls--
	h.bytes -= c.size()
}

func (h *held) postpone(c *Call, until time.Time) { h.of(c).postpone(c, until) }

// first is the app whose question goes next; nil: none is held.
func (h *held) first() (first *heldApp) {
	for _, a := range h.apps {
		if len(a.calls) == 0 {
			continue
		}
		if first == nil || cmp.Or(cmp.Compare(a.priority, first.priority), a.Due(&first.Share), a.calls[0].until.Compare(first.calls[0].until)) < 0 {
			first = a
		}
	}
	return first
}

// charge counts a question that is sent.
func (h *held) charge(c *Call) { h.clocks[c.Class.Priority].Take(&h.of(c).Share) }

// displaced is a question that makes way for c: one of a lower priority, or of another app if that of c has less than its
// share of what is held of the same priority; nil: there is none.
func (h *held) displaced(c *Call) *Call {
	own, all, bytes, most := h.of(c), 0.0, int64(0), (*heldApp)(nil)
	for _, a := range h.apps {
		if len(a.calls) == 0 && a != own {
			continue
		}
		if a.priority == own.priority {
			all, bytes = all+a.Weight, bytes+a.bytes
		}
		if most == nil || cmp.Or(cmp.Compare(a.priority, most.priority), cmp.Compare(float64(a.bytes)/a.Weight, float64(most.bytes)/most.Weight)) > 0 {
			most = a
		}
	}
	if own == most || most.priority == own.priority && float64(own.bytes+c.size())*all > float64(bytes)*own.Weight {
		return nil
	}
	return most.calls[len(most.calls)-1] // not the most urgent one
}

// all are the questions, in no order.
func (h *held) all() (calls []*Call) {
	for _, a := range h.apps {
		calls = append(calls, a.calls...)
	}
	return calls
}

// byDeadline is a heap of held questions, the most urgent first: so the fewest are too late
// when a replica comes, and none waits for one with more time.
type byDeadline struct {
	calls callHeap
	bytes int64
}

func (d *byDeadline) push(c *Call) {
	d.bytes += c.size()
	heap.Push(&d.calls, c)
}

func (d *byDeadline) remove(c *Call) {
	d.bytes -= c.size()
	heap.Remove(&d.calls, c.place)
}

func (d *byDeadline) postpone(c *Call, until time.Time) {
	c.until = until
	heap.Fix(&d.calls, c.place)
}

// callHeap implements heap.Interface.
type callHeap []*Call

func (h callHeap) Len() int           { return len(h) }
func (h callHeap) Less(i, j int) bool { return h[i].until.Before(h[j].until) }

func (h callHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].place, h[j].place = i, j
}

func (h *callHeap) Push(x any) {
	c := x.(*Call)
	c.place = len(*h)
	*h = append(*h, c)
}

func (h *callHeap) Pop() any {
	last := len(*h) - 1
	c := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return c
}

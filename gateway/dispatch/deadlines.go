package dispatch

import (
	"container/heap"
	"time"
)

// deadlines are held questions, the most urgent first: so the fewest are too late
// when a replica comes, and none waits for one with more time.
type deadlines struct {
	calls callHeap
	bytes int64
}

func (d *deadlines) push(c *Call) {
	d.bytes += c.size()
	heap.Push(&d.calls, c)
}

func (d *deadlines) remove(c *Call) {
	d.bytes -= c.size()
	heap.Remove(&d.calls, c.place)
}

func (d *deadlines) postpone(c *Call, until time.Time) {
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

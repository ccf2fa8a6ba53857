package stream

import (
	"context"
	"slices"
	"sync"
	"time"
)

// window is the items in flight: those that are polled and not committed. It bounds how many they are,
// and knows whose results may leave.
type window struct {
	order     Order
	most      int // items
	mostBytes int // of their records, after which no more are polled

	freed    chan struct{} // has a token when there may be room
	finished chan struct{} // has a token when an item is finished, or gone

	mu    sync.Mutex
	items []*Item // in the order in which they came
	bytes int
	last  map[sequence]*Item // the item that came last
	ids   map[string]*Item
	looks uint64 // at what is ready
	done  int    // items that are finished
}

// stage is how far an item has come.
type stage uint8

const (
	inFlight  stage = iota
	finished        // it has its result, which may have to wait
	abandoned       // it gets none here, and no result leaves that has to wait for it
	gone            // committed, or lost
)

func newWindow(order Order, most, mostBytes int) *window {
	return &window{
		order: order, most: most, mostBytes: mostBytes,
		freed: make(chan struct{}, 1), finished: make(chan struct{}, 1),
		last: map[sequence]*Item{}, ids: map[string]*Item{},
	}
}

// awaitRoom waits until there is room for some items, and says for how many.
func (w *window) awaitRoom(ctx context.Context) (items int) {
	for {
		if items = w.room(); items > 0 {
			return items
		}
		select {
		case <-w.freed:
		case <-ctx.Done():
			return 0
		}
	}
}

func (w *window) room() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.bytes >= w.mostBytes {
		return 0
	}
	return w.most - len(w.items)
}

// add adds items, in the order in which they came.
func (w *window) add(items []*Item) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, it := range items {
		if sequence, is := w.order.of(it); is {
			it.before = w.last[sequence]
			w.last[sequence] = it
		}
		w.bytes += it.Record.Size()
	}
	w.items = append(w.items, items...)
}

// name remembers an id for as long as its item is in flight.
func (w *window) name(it *Item) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if it.stage != gone {
		w.ids[it.id] = it
	}
}

// of is what is known of an id that is in flight.
func (w *window) of(id string) (known, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if it := w.ids[id]; it != nil {
		return it.known, true
	}
	return known{}, false
}

// finish notes that an item has its result.
func (w *window) finish(it *Item) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if it.stage == inFlight {
		it.stage = finished
		w.done++
		if w.ids[it.id] == it && it.dead() { // it may be corrected and sent again under its id
			delete(w.ids, it.id)
		}
		signal(w.finished)
	}
}

// gather waits for a time, or until half of the window is finished, or all that is in flight.
func (w *window) gather(ctx context.Context, d time.Duration) {
	if d <= 0 {
		return
	}
	enough := time.After(d)
	for !w.mostly() {
		select {
		case <-w.finished:
		case <-enough:
			return
		case <-ctx.Done():
			return
		}
	}
}

func (w *window) mostly() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return 2*w.done >= w.most || w.done == len(w.items)
}

// abandon notes that items get no results, because the job is to end.
func (w *window) abandon(items ...*Item) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, it := range items {
		if it.stage == inFlight {
			it.stage = abandoned
		}
	}
	signal(w.finished)
}

// expects says whether some item may still get its result.
func (w *window) expects() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.ContainsFunc(w.items, func(it *Item) bool { return it.stage == inFlight })
}

// ready are the items whose results may leave together, in this order.
func (w *window) ready() (items []*Item) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.looks++
	for _, it := range w.items {
		if it.before != nil && it.before.stage == gone {
			it.before = nil
		}
		if it.stage == finished && (it.before == nil || it.before.leaves == w.looks) {
			items = append(items, it)
			it.leaves = w.looks
		}
	}
	return items
}

// remove removes items that are committed.
func (w *window) remove(items ...*Item) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, it := range items {
		w.end(it)
	}
	w.clear()
}

// dropLost removes the items whose records are lost.
func (w *window) dropLost() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, it := range w.items {
		if it.Record.IsLost() {
			w.end(it)
		}
	}
	w.clear()
}

// end ends an item, which clear removes.
func (w *window) end(it *Item) {
	if it.stage == gone {
		return
	}
	if it.stage == finished {
		w.done--
	}
	it.stage, it.before = gone, nil
	it.cancel()
	w.bytes -= it.Record.Size()
	if w.ids[it.id] == it {
		delete(w.ids, it.id)
	}
	if sequence, is := w.order.of(it); is && w.last[sequence] == it {
		delete(w.last, sequence)
	}
}

// clear removes the items that have ended.
func (w *window) clear() {
	before := len(w.items)
	w.items = slices.DeleteFunc(w.items, func(it *Item) bool { return it.stage == gone })
	if len(w.items) < before {
		signal(w.freed)
		signal(w.finished)
	}
}

// now is how many items there are, and for how long the first of them has been.
func (w *window) now() (items int, held time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.items) == 0 {
		return 0, 0
	}
	return len(w.items), time.Since(w.items[0].came)
}

// signal leaves a token in a channel that has room for one.
func signal(to chan<- struct{}) {
	select {
	case to <- struct{}{}:
	default:
	}
}

package queue

import (
	"cmp"
	"slices"
	"time"

	"github.com/topsail-serving/topsail/internal/fair"
)

// lane holds the items of one app and priority by deadline. It is a sorted slice rather than a heap: nearly
// all items arrive in order, so that pushing is appending, and the place of a new
// item, which admission needs, is known.
type lane struct {
	fair.Share
	app      string
	priority int
	minShare float64
	owed     float64 // items that it should have had by its minimum share, and had not

	items  []*Item // items[head:] wait, in order
	head   int
	bytes  int
	inputs int       // bytes of what is in them
	last   time.Time // when its last item arrived
	lately float64   // its part of the items that were taken lately while some of its own waited

	dealt  int        // how many of its items go into the batch that is being formed
	amount float64    // of those, as Capacity counts it
	deal   fair.Share // after those
}

// due orders lanes by whose next item goes first, behind those that are dealt: one that is owed some, then the
// priorities, the shares, and the deadlines.
func (l *lane) due(other *lane) int {
	if mine, theirs := l.owed-float64(l.dealt) >= 1, other.owed-float64(other.dealt) >= 1; mine != theirs {
		if mine {
			return -1
		}
		return 1
	}
	return cmp.Or(cmp.Compare(l.priority, other.priority), l.deal.Due(&other.deal), l.waiting()[l.dealt].order(other.waiting()[other.dealt]))
}

func (l *lane) waiting() []*Item { return l.items[l.head:] }

func (l *lane) len() int { return len(l.items) - l.head }

// room is what the lane, with so much more, has of the limits, for its weight.
func (l *lane) room(limits Limits, items, bytes int) float64 {
	return max(float64(l.len()+items)/float64(limits.Items), float64(l.bytes+bytes)/float64(limits.Bytes)) / l.Weight
}

// place is how many of the lane's items go before it.
func (l *lane) place(it *Item) int {
	waiting := l.waiting()
	n := len(waiting)
	if n > 0 && it.order(waiting[n-1]) < 0 {
		n, _ = slices.BinarySearchFunc(waiting, it, func(a, b *Item) int {
			if b.order(a) < 0 {
				return 1
			}
			return -1 // equal deadlines keep the order of arrival
		})
	}
	return n
}

// insert puts it behind the first n items. It moves the items to the front
// rather than let the slice grow, once at least as much is free as is in use, so
// that a move pays for as many inserts as it takes.
func (l *lane) insert(it *Item, n int) {
	if len(l.items) == cap(l.items) && 2*l.head >= len(l.items) && l.head > 0 {
		moved := copy(l.items, l.waiting())
		clear(l.items[moved:])
		l.items, l.head = l.items[:moved], 0
	}
	l.items = slices.Insert(l.items, l.head+n, it)
	l.bytes += it.bytes()
	l.inputs += len(it.Ask.Payload)
	l.last = it.Arrived
}

// pop takes out the first item.
func (l *lane) pop() *Item {
	it := l.items[l.head]
	l.items[l.head] = nil
	l.left(it)
	if l.head++; l.head == len(l.items) {
		l.items, l.head = l.items[:0], 0
	}
	return it
}

// popLast takes out the last item.
func (l *lane) popLast() *Item {
	last := len(l.items) - 1
	it := l.items[last]
	l.items[last] = nil
	l.left(it)
	l.items = l.items[:last]
	return it
}

// left counts an item no longer.
func (l *lane) left(it *Item) {
	l.bytes -= it.bytes()
	l.inputs -= len(it.Ask.Payload)
}

// remove takes out the items that match, and appends them to removed.
func (l *lane) remove(match func(*Item) bool, removed []*Item) []*Item {
	waiting := l.waiting()
	kept := waiting[:0]
	for _, it := range waiting {
		if match(it) {
			removed = append(removed, it)
			l.left(it)
		} else {
			kept = append(kept, it)
		}
	}
	clear(waiting[len(kept):])
	l.items = l.items[:l.head+len(kept)]
	return removed
}

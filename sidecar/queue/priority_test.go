package queue

import (
	"errors"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/test/require"
)

// at makes an item of a priority.
func at(priority, ms int) *Item {
	it := due(ms)
	it.App, it.Priority = "app", priority
	return it
}

// Nothing of a lower priority goes into a batch while something of a higher one waits, whatever apps and deadlines
// there are.
func TestHigherPrioritiesGoFirst(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q := New(Limits{Items: 1 << 20, Bytes: 1 << 30}, anyone, nil)
		waits := map[*Item]bool{}
		for range rapid.IntRange(1, 30).Draw(t, "rounds") {
			for range rapid.IntRange(0, 12).Draw(t, "arrivals") {
				it := of(rapid.SampledFrom([]string{"a", "b"}).Draw(t, "app"), rapid.Float64Range(0.1, 10).Draw(t, "weight"), rapid.IntRange(-1, 40).Draw(t, "deadline"))
				it.Priority = rapid.IntRange(0, serving.LowestPriority).Draw(t, "priority")
				require.NoError(t, q.Push(it))
				waits[it] = true
			}
			size := rapid.IntRange(1, 9).Draw(t, "size")
			line := drawLine(t)
			var b Batch
			q.Form(&b, epoch, Capacity{Line: line, Size: size, Most: size, Shared: rapid.IntRange(1, size).Draw(t, "shared")})
			for _, it := range slices.Concat(b.Items, b.Late, b.Expired) {
				delete(waits, it)
			}
			if len(waits) != q.Len() || len(b.Items) == 0 && len(waits) > 0 {
				t.Fatalf("%d wait, want %d, and %d were taken", q.Len(), len(waits), len(b.Items))
			}
			highest := serving.Priorities
			for it := range waits {
				highest = min(highest, it.Priority)
			}
			for _, it := range b.Items {
				if it.Priority > highest {
					t.Fatalf("one of priority %d goes before one of priority %d", it.Priority, highest)
				}
			}
		}
	})
}

// An app has its minimum share of what is done while it has work, whatever waits of higher priorities.
func TestAMinimumShare(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q := New(Limits{Items: 1 << 20, Bytes: 1 << 30}, anyone, nil)
		size, share := rapid.IntRange(1, 9).Draw(t, "size"), rapid.Float64Range(0.01, serving.MaxMinShare).Draw(t, "share")
		push := func(priority int, minShare float64) {
			it := at(priority, -1)
			it.MinShare = minShare
			require.NoError(t, q.Push(it))
		}
		low, all, work := 0, 0, 0
		for range rapid.IntRange(1, 200).Draw(t, "rounds") {
			for range 2 * size {
				push(0, 0)
				push(2, (1-share)/2) // which does not live off another
			}
			for range rapid.IntRange(0, 5).Draw(t, "arrivals") {
				push(3, share)
				work++
			}
			before := work - low
			var b Batch
			form(q, &b, epoch, size, 0, Line{})
			for _, it := range b.Items {
				if it.Priority == 3 {
					low++
				}
			}
			if all += len(b.Items); before == 0 || low == work {
				low, all, work = 0, 0, 0 // all that it asked for
			} else if within := float64(size + 2); float64(low) < share*float64(all)-within || float64(low) > share*float64(all)+within {
				t.Fatalf("%d of %d were of an app with the minimum share %v", low, all, share)
			}
		}
	})
}

// What waits of a lower priority makes a batch neither smaller for a higher one, nor much longer.
func TestALowerPriorityDoesNotShrinkABatch(t *testing.T) {
	q := New(Limits{Items: 4096, Bytes: 1 << 30}, anyone, nil)
	for range 5 {
		q.Push(at(0, 100))
	}
	q.Push(at(1, 30))
	q.Push(at(1, 1000))
	var b Batch
	q.Form(&b, epoch, Capacity{Line: linear(0, 10), Size: 8, Most: 8, Shared: 5})
	if len(b.Items) != 5 || slices.ContainsFunc(b.Items, func(it *Item) bool { return it.Priority > 0 }) {
		t.Errorf("a batch of %d, want those 5 of the highest priority", len(b.Items))
	}
	q.Drain()
	for range 10 {
		q.Push(at(1, -1))
	}
	for _, c := range []struct {
		base float64 // milliseconds
		had  int     // the two of the highest priority, in milliseconds
		want int     // in a batch with them
	}{{0, 300, 2}, {35, 300, 3}, {1000, 10_000, 4}, {0, 330, 3}, {0, 660, 4}, {0, 10_000, 4}, {0, -1, 4}} {
		q.Push(at(0, c.had))
		q.Push(at(0, c.had))
		q.Form(&b, epoch, Capacity{Line: linear(c.base, 10), Size: 8, Most: 8, Shared: 4})
		if len(b.Items) != c.want || b.Items[1].Priority != 0 {
			t.Errorf("a batch of %d, want 2 of the highest priority and %d beside them", len(b.Items), c.want-2)
		}
	}
}

// In a full queue what has the lowest priority makes way first, and never for one of its own app.
func TestTheLowestPriorityMakesWay(t *testing.T) {
	q := New(Limits{Items: 100, Bytes: 1 << 30}, anyone, nil)
	var displaced []*Item
	q.Displaced = func(it *Item) { displaced = append(displaced, it) }
	for i := range 60 {
		q.Push(at(2, i))
	}
	for i := range 40 {
		q.Push(at(3, i))
	}
	for i := range 100 {
		require.NoError(t, q.Push(at(1, i)))
	}
	for i, it := range displaced {
		want := at(3, 39-i)
		if i >= 40 {
			want = at(2, 99-i)
		}
		if it.Priority != want.Priority || !it.Deadline.Equal(want.Deadline) {
			t.Fatalf("the %dth that made way has priority %d and is due at %v, want %d and %v", i, it.Priority, it.Deadline, want.Priority, want.Deadline)
		}
	}
	if len(displaced) != 100 {
		t.Errorf("%d made way", len(displaced))
	}
	for priority, want := range []error{nil, ErrFull, ErrFull, ErrFull} {
		if err := q.Push(at(priority, 0)); !errors.Is(err, want) {
			t.Errorf("one of priority %d in a queue that is full of priority 1: %v, want %v", priority, err, want)
		}
	}
}

// Admission counts what waits of higher priorities, and nothing of lower ones. One of a priority is tried in any case.
func TestAheadOfAPriority(t *testing.T) {
	ahead := -1
	q := New(Limits{Items: 4096, Bytes: 1 << 30}, func(_ *Item, load Load) error { ahead = load.N; return nil }, nil)
	var b Batch
	for range 300 {
		q.Push(at(0, -1))
		q.Push(at(2, -1))
		q.Push(at(2, -1))
	}
	q.Push(at(1, -1))
	if ahead != 300 {
		t.Errorf("%d are ahead of the first of priority 1, want the 300 of priority 0", ahead)
	}
	if q.Push(at(0, -1)); ahead != 300 {
		t.Errorf("%d are ahead of one more of priority 0, want 300", ahead)
	}
	if high, all := q.Waiting(0).N, q.Waiting(serving.LowestPriority).N; high != 301 || all != 902 {
		t.Errorf("%d wait of the highest priority, and %d in all", high, all)
	}
	q.Remove(func(it *Item) bool { return it.Priority < 2 })
	for range 100 {
		for range 4 {
			q.Push(at(0, -1))
		}
		q.Form(&b, epoch, Capacity{Size: 5, Most: 5, Shared: 5})
	}
	if q.Push(at(2, -1)); ahead < 4*500 || ahead > 5*510 {
		t.Errorf("%d are ahead of the 501st of a priority that gets one in five", ahead)
	}
}

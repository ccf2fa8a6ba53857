package queue

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// instant is what a container takes of which nothing is known.
func instant(int) time.Duration { return 0 }

// linear takes so many milliseconds, and so many more for each input.
func linear(base, each float64) func(int) time.Duration {
	return func(n int) time.Duration { return time.Duration((base + each*float64(n)) * 1e6) }
}

// drawTook is what a container takes, in quarters of a millisecond so that a batch
// may fit exactly, and what an item takes by itself, which may be less.
func drawTook(t *rapid.T) (alone time.Duration, took func(int) time.Duration) {
	if rapid.IntRange(0, 4).Draw(t, "unknown") == 0 {
		return 0, instant
	}
	took = linear(float64(rapid.IntRange(0, 32).Draw(t, "base"))/4, float64(rapid.IntRange(0, 8).Draw(t, "each"))/4)
	return took(1) * time.Duration(rapid.IntRange(1, 4).Draw(t, "alone")) / 4, took
}

// drawOthers is what other models take between two batches; mostly there are none.
func drawOthers(t *rapid.T) time.Duration {
	return time.Duration(max(rapid.IntRange(-16, 16).Draw(t, "others"), 0)) * time.Millisecond / 4
}

// Crowded queues, as under overload: here batches shrink or items are dropped.
func TestFormOfACrowd(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q := New(Limits{Items: 4096, Bytes: 1 << 30}, anyone, nil)
		for range rapid.IntRange(1, 4).Draw(t, "crowds") {
			ms := rapid.IntRange(1, 30).Draw(t, "deadline")
			for range rapid.IntRange(1, 20).Draw(t, "crowd") {
				if err := q.Push(due(ms)); err != nil {
					t.Fatal(err)
				}
			}
		}
		waiting := slices.Clone(waiting(q))
		var b Batch
		size := rapid.IntRange(1, 40).Draw(t, "size")
		alone, took := drawTook(t)
		others := drawOthers(t)
		form(q, &b, epoch, size, alone, others, took)
		checkForm(t, waiting, &b, epoch, size, alone, others, took)
	})
}

// checkForm checks a batch against the items that waited, and says how many left.
func checkForm(t *rapid.T, waiting []*Item, b *Batch, now time.Time, size int, alone, others time.Duration, took func(int) time.Duration) (gone int) {
	gone = len(b.Items) + len(b.Expired) + len(b.Late)
	out := slices.Concat(b.Expired, b.Late, b.Items)
	slices.SortStableFunc(out, order)
	if len(b.Items) > size || gone > len(waiting) || !slices.Equal(out, waiting[:gone]) {
		t.Fatalf("took %d, %d expired and %d late of %d, not the first of those that wait", len(b.Items), len(b.Expired), len(b.Late), len(waiting))
	}
	hopeless := 0 // must go, whatever else is done
	for _, it := range waiting {
		if left := it.Left(now); left > 0 && left >= alone {
			break
		}
		hopeless++
	}
	dropped := len(b.Expired) + len(b.Late)
	for i, it := range slices.Concat(b.Expired, b.Late)[:min(hopeless, dropped)] {
		if expired := it.Left(now) <= 0; expired != (i < len(b.Expired)) {
			t.Fatalf("dropped item %d has %v left, with %d expired", i, it.Left(now), len(b.Expired))
		}
	}
	if dropped < hopeless || (hopeless == len(waiting)) != (len(b.Items) == 0) {
		t.Fatalf("%d of %d were dropped and %d taken, %d cannot make it", dropped, len(waiting), len(b.Items), hopeless)
	}
	if hopeless == len(waiting) {
		return gone
	}
	if !slices.Equal(b.Items, waiting[dropped:gone]) {
		t.Fatal("the batch is not in order of deadline")
	}
	checkFits(t, waiting[dropped:], b.Items, now, size, took)
	if early, want := dropped-hopeless, earlyDrop(waiting[hopeless:], now, size, others, took); early != want {
		t.Fatalf("%d of %d were dropped early, want %d", early, len(waiting)-hopeless, want)
	}
	return gone
}

// checkFits checks that a batch is the largest that meets its earliest deadline; a
// batch of 1 may miss it.
func checkFits(t *rapid.T, waiting, taken []*Item, now time.Time, size int, took func(int) time.Duration) {
	left := waiting[0].Left(now)
	if left <= 0 || (len(taken) > 1 && took(len(taken)) > left) {
		t.Fatalf("a batch of %d takes %v, its first item has %v left", len(taken), took(len(taken)), left)
	}
	if more := len(taken) + 1; more <= min(size, len(waiting)) && took(more) <= left {
		t.Fatalf("a batch of %d would have fitted as well as one of %d", more, len(taken))
	}
}

// earlyDrop is how many of those that could make it alone are to go, by plain count.
func earlyDrop(waiting []*Item, now time.Time, size int, others time.Duration, took func(int) time.Duration) int {
	full := func(from int) int { return min(size, len(waiting)-from) }
	if took(full(0)) <= waiting[0].Left(now) {
		return 0
	}
	small := 1
	for small < full(0) && took(small+1) <= waiting[0].Left(now) {
		small++
	}
	strained := false
	for i, it := range waiting[small:] {
		strained = strained || it.Left(now) < took(small)+time.Duration(1+i/size)*(others+took(full(0)))
	}
	if !strained {
		return 0
	}
	slower := float64(small) / float64(full(0)) * float64(took(full(0))+others) / float64(took(small)+others)
	for drop := 1; drop < len(waiting)-int(float64(len(waiting))*slower); drop++ {
		if took(full(drop)) <= waiting[drop].Left(now) {
			return drop
		}
	}
	return 0
}

func pushAll(t testing.TB, deadlines ...int) *Queue {
	q := New(Limits{Items: 4096, Bytes: 1 << 30}, anyone, nil)
	for _, ms := range deadlines {
		if err := q.Push(due(ms)); err != nil {
			t.Fatal(err)
		}
	}
	return q
}

func times(n int, ms int) []int { return slices.Repeat([]int{ms}, n) }

func TestForm(t *testing.T) {
	for _, c := range []struct {
		name                 string
		due                  []int // milliseconds
		size                 int
		took                 func(int) time.Duration
		taken, expired, late int
	}{
		{"nothing waits", nil, 8, linear(2, 0), 0, 0, 0},
		{"all fit", times(5, 50), 8, linear(2, 1), 5, 0, 0},
		{"no more than the size", times(20, 50), 8, linear(2, 1), 8, 0, 0},
		{"without deadlines", times(20, -1), 8, linear(2000, 1000), 8, 0, 0},
		{"an expired one goes first", []int{0, 50, 50}, 8, linear(2, 1), 2, 1, 0},
		{"one that cannot make it is dropped", []int{2, 50, 50}, 8, linear(2, 1), 2, 0, 1},
		{"all hopeless", times(4, 2), 8, linear(2, 1), 0, 0, 4},
		{"an unknown container tries all but the expired", []int{0, 1, 1}, 8, instant, 2, 1, 0},
		{"it shrinks for the first when the next batch bears it", []int{5, 50, 50, 50, 50, 50}, 8, linear(2, 1), 3, 0, 0},
		{"a batch that just fits", times(8, 10), 8, linear(2, 1), 8, 0, 0},
		// One item that bears a batch of 1 in 10 ms, and behind it a full batch that
		// cannot wait so long.
		{"it drops one rather than make eight late", append([]int{10}, times(8, 17)...), 8, linear(9, 1), 8, 0, 1},
		{"it looks beyond the next batch", append([]int{10}, times(40, 60)...), 8, linear(9, 1), 8, 0, 1},
		{"and no further than it must", append([]int{10}, times(20, 70)...), 8, linear(9, 1), 1, 0, 0},
		// The reverse: eight that bear 7, then one that bears a wait.
		{"it shrinks rather than drop seven", append(times(7, 15), times(2, 40)...), 9, linear(8, 1), 7, 0, 0},
		// A lasting overload: the first have little left, and small batches for them
		// would make all who follow late.
		{"a standing queue is cut to full batches", append(append(times(30, 12), times(30, 25)...), times(60, 60)...), 60, linear(10, 0.2), 60, 0, 30},
		{"unless the small batches are about as good", append(append(times(30, 12), times(30, 25)...), times(60, 60)...), 60, linear(0.1, 0.33), 36, 0, 0},
		// A crowd without deadlines must not have the one with a deadline dropped.
		{"a patient crowd lets an urgent one go first", append([]int{15}, times(500, -1)...), 100, linear(5, 1), 10, 0, 0},
	} {
		q := pushAll(t, c.due...)
		var b Batch
		form(q, &b, epoch, c.size, c.took(1), 0, c.took)
		if len(b.Items) != c.taken || len(b.Expired) != c.expired || len(b.Late) != c.late {
			t.Errorf("%s: took %d, expired %d, late %d; want %d, %d, %d", c.name, len(b.Items), len(b.Expired), len(b.Late), c.taken, c.expired, c.late)
		}
	}
}

// The next batch comes after those of other models, so a small one now costs more.
func TestFormBesideOtherModels(t *testing.T) {
	for others, want := range map[time.Duration][2]int{0: {3, 0}, 30 * time.Millisecond: {3, 0}, 60 * time.Millisecond: {5, 1}} {
		q := pushAll(t, append([]int{5}, times(5, 50)...)...)
		var b Batch
		form(q, &b, epoch, 8, 3*time.Millisecond, others, linear(2, 1))
		if len(b.Items) != want[0] || len(b.Late) != want[1] {
			t.Errorf("when others take %v it took %d, late %d; want %v", others, len(b.Items), len(b.Late), want)
		}
	}
}

func TestFormReusesItsBatch(t *testing.T) {
	q := pushAll(t, 0, 1, 50)
	var b Batch
	form(q, &b, epoch, 8, 2*time.Millisecond, 0, linear(2, 0))
	form(q, &b, epoch, 8, 2*time.Millisecond, 0, linear(2, 0))
	if len(b.Items)+len(b.Expired)+len(b.Late) != 0 {
		t.Errorf("the batch of an empty queue still holds %+v", b)
	}
}

// form forms a batch of a container that is as free for several apps as for one.
func form(q *Queue, b *Batch, now time.Time, size int, alone, others time.Duration, took func(n int) time.Duration) {
	q.Form(b, now, Capacity{Size: size, Shared: size, Alone: alone, Others: others, Took: took})
}

// waiting are the items of a queue of at most one app.
func waiting(q *Queue) (items []*Item) {
	for _, l := range q.lanes {
		items = append(items, l.waiting()...)
	}
	return items
}

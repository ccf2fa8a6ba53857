package queue

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/topsail-serving/topsail/rpc"
	"github.com/topsail-serving/topsail/test/require"
)

// linear takes so many milliseconds, and so many more for each input.
func linear(base, each float64) Line { return Line{Base: base / 1000, Slope: each / 1000} }

// drawLine is what a container takes, in quarters of a millisecond so that a batch
// may fit exactly.
func drawLine(t *rapid.T) Line {
	if rapid.IntRange(0, 4).Draw(t, "unknown") == 0 {
		return Line{}
	}
	line := linear(float64(rapid.IntRange(0, 32).Draw(t, "base"))/4, float64(rapid.IntRange(0, 8).Draw(t, "each"))/4)
	line.Dev = float64(rapid.IntRange(0, 16).Draw(t, "margin")) / 8000
	return line
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
				require.NoError(t, q.Push(due(ms)))
			}
		}
		waiting := slices.Clone(waiting(q))
		var b Batch
		size := rapid.IntRange(1, 40).Draw(t, "size")
		line, others := drawLine(t), drawOthers(t)
		form(q, &b, epoch, size, others, line)
		checkForm(t, waiting, &b, epoch, size, others, line)
	})
}

// checkForm checks a batch against the items that waited, and says how many left.
func checkForm(t *rapid.T, waiting []*Item, b *Batch, now time.Time, size int, others time.Duration, line Line) (gone int) {
	alone, took := line.Took(1), func(n int) time.Duration { return line.Within(float64(n)) }
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
		require.NoError(t, q.Push(due(ms)))
	}
	return q
}

func times(n int, ms int) []int { return slices.Repeat([]int{ms}, n) }

func TestForm(t *testing.T) {
	for _, c := range []struct {
		name                 string
		due                  []int // milliseconds
		size                 int
		line                 Line
		taken, expired, late int
	}{
		{"nothing waits", nil, 8, linear(2, 0), 0, 0, 0},
		{"all fit", times(5, 50), 8, linear(2, 1), 5, 0, 0},
		{"no more than the size", times(20, 50), 8, linear(2, 1), 8, 0, 0},
		{"without deadlines", times(20, -1), 8, linear(2000, 1000), 8, 0, 0},
		{"an expired one goes first", []int{0, 50, 50}, 8, linear(2, 1), 2, 1, 0},
		{"one that cannot make it is dropped", []int{2, 50, 50}, 8, linear(2, 1), 2, 0, 1},
		{"all hopeless", times(4, 2), 8, linear(2, 1), 0, 0, 4},
		{"an unknown container tries all but the expired", []int{0, 1, 1}, 8, Line{}, 2, 1, 0},
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
		form(q, &b, epoch, c.size, 0, c.line)
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
		form(q, &b, epoch, 8, others, linear(2, 1))
		if len(b.Items) != want[0] || len(b.Late) != want[1] {
			t.Errorf("when others take %v it took %d, late %d; want %v", others, len(b.Items), len(b.Late), want)
		}
	}
}

func TestFormReusesItsBatch(t *testing.T) {
	q := pushAll(t, 0, 1, 50)
	var b Batch
	form(q, &b, epoch, 8, 0, linear(2, 0))
	form(q, &b, epoch, 8, 0, linear(2, 0))
	if len(b.Items)+len(b.Expired)+len(b.Late) != 0 {
		t.Errorf("the batch of an empty queue still holds %+v", b)
	}
}

// form forms a batch of a container that is as free for several apps as for one.
func form(q *Queue, b *Batch, now time.Time, size int, others time.Duration, line Line) {
	q.Form(b, now, Capacity{Line: line, Size: size, Most: size, Shared: size, Others: others})
}

// waiting are the items of a queue of at most one app.
func waiting(q *Queue) (items []*Item) {
	for _, l := range q.lanes {
		items = append(items, l.waiting()...)
	}
	return items
}

// sized makes an item with an input of so many bytes.
func sized(ms, bytes int) *Item {
	it := due(ms)
	it.Ask = rpc.Ask{Payload: make([]byte, bytes)}
	return it
}

// Of inputs whose time goes with their bytes, a batch takes no longer than its first deadline allows and is not larger
// than the size, unless it is one item; and nothing more would have gone in.
func TestFormByBytes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q := New(Limits{Items: 4096, Bytes: 1 << 30}, anyone, nil)
		for range rapid.IntRange(1, 40).Draw(t, "crowd") {
			require.NoError(t, q.Push(sized(rapid.IntRange(-1, 40).Draw(t, "deadline"), rapid.IntRange(1, 4000).Draw(t, "bytes"))))
		}
		waiting := slices.Clone(waiting(q))
		line := drawLine(t)
		line.Mean = 1000
		c := Capacity{Line: line, Size: rapid.IntRange(1, 20).Draw(t, "size"), Most: rapid.IntRange(1, 40).Draw(t, "most")}
		var b Batch
		q.Form(&b, epoch, c)
		if got := slices.Concat(b.Expired, b.Late, b.Items); q.Len()+len(got) != len(waiting) || len(b.Items) == 0 && q.Len() > 0 {
			t.Fatalf("took %d and dropped %d of %d", len(b.Items), len(b.Expired)+len(b.Late), len(waiting))
		}
		for _, it := range b.Items {
			if left := it.Left(epoch); left <= 0 || line.Took(line.Amount(it.Load())) > left {
				t.Fatalf("one that takes %v alone and has %v left is to run", line.Took(line.Amount(it.Load())), left)
			}
		}
		if len(b.Items) == 0 {
			return
		}
		left := b.Items[0].Left(epoch)
		fits := func(items []*Item) bool {
			amount := line.Amount(LoadOf(items))
			return len(items) <= c.Most && amount <= float64(c.Size)+1e-6 && line.Within(amount) <= left+time.Microsecond
		}
		if len(b.Items) > 1 && !fits(b.Items) {
			t.Fatalf("%d items of %+v do not fit in %+v, with %v left", len(b.Items), LoadOf(b.Items), c, left)
		}
		if q.Len() == 0 {
			return
		}
		with := append(slices.Clone(b.Items), q.lanes[0].waiting()[0])
		c.Size-- // what rounding decides may go either way
		if left -= 2 * time.Microsecond; c.Size > 0 && fits(with) {
			t.Fatalf("one more item would have gone into %d of %+v, of %+v", len(b.Items), LoadOf(b.Items), c)
		}
	})
}

// A large input whose deadline it cannot meet does not take the small ones behind it along.
func TestFormDropsALargeInput(t *testing.T) {
	q := New(Limits{Items: 4096, Bytes: 1 << 30}, anyone, nil)
	for _, bytes := range []int{30_000, 1000, 500, 9000, 1000} {
		require.NoError(t, q.Push(sized(20, bytes)))
	}
	line := linear(2, 1)
	line.Mean = 1000
	var b Batch
	q.Form(&b, epoch, Capacity{Line: line, Size: 10, Most: 40})
	if len(b.Late) != 1 || len(b.Items) != 2 || b.With < 10 || b.With > 11 {
		t.Errorf("%d late and %d in a batch, with the next one %.2f; want 1, 2 and 10.5", len(b.Late), len(b.Items), b.With)
	}
	q.Form(&b, epoch, Capacity{Line: line, Size: 10, Most: 40})
	if len(b.Items) != 2 || b.With < 11 || b.With > 11.1 {
		t.Errorf("%d in the next one, with a usual input %.2f; want 2 and 11", len(b.Items), b.With)
	}
}

package queue

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/topsail-serving/topsail/test/require"
)

// of makes an item of an app.
func of(app string, weight float64, ms int) *Item {
	it := due(ms)
	it.App, it.Weight = app, weight
	return it
}

// No app gets more than its share while another has less than its own, and work: over any time in which an app has
// work, no other gets more for its weight than it does, but for what it had saved up.
func TestSharesAreMaxMin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const apps = 4
		size := rapid.IntRange(1, 9).Draw(t, "size")
		weights := rapid.SliceOfN(rapid.Float64Range(0.1, 20), apps, apps).Draw(t, "weights")
		q := New(Limits{Items: 1 << 20, Bytes: 1 << 30}, anyone, nil)
		var waits, taken [apps]int
		var least [apps][apps]float64 // of what i had more than j for its weight, since j has work
		had := func(i, j int) float64 { return float64(taken[i])/weights[i] - float64(taken[j])/weights[j] }
		for range rapid.IntRange(1, 60).Draw(t, "rounds") {
			for j := range apps {
				n := rapid.IntRange(0, 12).Draw(t, "arrivals")
				for range n {
					require.NoError(t, q.Push(of(fmt.Sprint(j), weights[j], -1)))
				}
				for i := range apps {
					if waits[j] == 0 {
						least[i][j] = had(i, j)
					}
				}
				waits[j] += n
			}
			var b Batch
			form(q, &b, epoch, size, 0, Line{})
			if want := min(size, q.Len()+len(b.Items)); len(b.Items) != want {
				t.Fatalf("a batch of %d, want %d", len(b.Items), want)
			}
			for _, it := range b.Items {
				j := int(it.App[0] - '0')
				taken[j]++
				waits[j]--
			}
			for i := range apps {
				for j := range apps {
					more := had(i, j)
					if most := float64(max(size, leastCredit)+1)/weights[i] + 1/weights[j]; waits[j] > 0 && more-least[i][j] > most+1e-9 {
						t.Fatalf("app %d, of weight %v, had %v more for its weight than app %d, of weight %v, which has work: at most %v is fair", i, weights[i], more-least[i][j], j, weights[j], most)
					}
					if least[i][j] = min(least[i][j], more); waits[j] == 0 {
						least[i][j] = more
					}
				}
			}
		}
	})
}

// A batch for several apps is made of the first items of each, and takes no longer than the first deadline in it
// allows.
func TestFormForSeveralApps(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q := New(Limits{Items: 4096, Bytes: 1 << 30}, anyone, nil)
		want := map[string][]*Item{}
		n := rapid.IntRange(1, 60).Draw(t, "items")
		for range n {
			it := of(rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "app"), 1, rapid.IntRange(-1, 40).Draw(t, "deadline"))
			require.NoError(t, q.Push(it))
			want[it.App] = append(want[it.App], it)
			slices.SortStableFunc(want[it.App], order)
		}
		size := rapid.IntRange(1, 30).Draw(t, "size")
		line := drawLine(t)
		alone, took := line.Took(1), func(n int) time.Duration { return line.Within(float64(n)) }
		var b Batch
		form(q, &b, epoch, size, drawOthers(t), line)
		gone := slices.Concat(b.Expired, b.Late, b.Items)
		if len(gone)+q.Len() != n {
			t.Fatalf("%d left and %d wait of %d", len(gone), q.Len(), n)
		}
		hopeless := 0
		for app, items := range want {
			out := slices.DeleteFunc(slices.Clone(gone), func(it *Item) bool { return it.App != app })
			slices.SortStableFunc(out, order)
			if !slices.Equal(out, items[:len(out)]) {
				t.Fatalf("what left of app %s are not its first", app)
			}
			for _, it := range items {
				if left := it.Left(epoch); left > 0 && left >= alone {
					break
				}
				hopeless++
			}
		}
		if dropped := len(b.Expired) + len(b.Late); dropped < hopeless || (hopeless == n) != (len(b.Items) == 0) || len(b.Items) > size {
			t.Fatalf("dropped %d of %d, of which %d are hopeless, and took %d of %d", dropped, n, hopeless, len(b.Items), size)
		}
		for _, it := range b.Items {
			if left := it.Left(epoch); len(b.Items) > 1 && took(len(b.Items)) > left {
				t.Fatalf("a batch of %d takes %v, and one of its items has %v left", len(b.Items), took(len(b.Items)), left)
			}
		}
	})
}

// What a quiet app asks for goes into the next batch, whatever waits of others; its deadline does not matter.
func TestAQuietAppGoesFirst(t *testing.T) {
	ahead := -1
	q := New(Limits{Items: 4096, Bytes: 1 << 30}, func(_ *Item, load Load) error { ahead = load.N; return nil }, nil)
	var b Batch
	q.Push(of("quiet", 1, 1000))
	form(q, &b, epoch, 4, 0, Line{})
	for range 500 {
		q.Push(of("noisy", 1, 10))
	}
	form(q, &b, epoch, 4, 0, Line{})
	for range 3 {
		q.Push(of("quiet", 1, 1000))
		if ahead > 3 {
			t.Errorf("admission was told that %d of an app that is not quiet go first", ahead)
		}
	}
	form(q, &b, epoch, 4, 0, Line{})
	if n := len(slices.DeleteFunc(b.Items, func(it *Item) bool { return it.App != "quiet" })); n != 3 {
		t.Errorf("the next batch has %d of a quiet app, want 3", n)
	}
}

// While apps share a container, its batches are no longer than they must be.
func TestSharedBatches(t *testing.T) {
	q := New(Limits{Items: 4096, Bytes: 1 << 30}, anyone, nil)
	batch := func(ms int) int {
		now := epoch.Add(time.Duration(ms) * time.Millisecond)
		for range 20 {
			it := of("a", 1, -1)
			it.Arrived = now
			q.Push(it)
		}
		var b Batch
		q.Form(&b, now, Capacity{Size: 8, Most: 8, Shared: 2})
		return len(b.Items)
	}
	if n := batch(0); n != 8 {
		t.Errorf("one app alone gets batches of %d, want 8", n)
	}
	it := of("b", 1, -1)
	it.Arrived = epoch
	q.Push(it)
	for _, ms := range []int{1, 9999} {
		if n := batch(ms); n != 2 || !q.Shared() {
			t.Errorf("%d ms after another app asked, batches are of %d, want 2", ms, n)
		}
	}
	if n := batch(10100); n != 8 || q.Shared() {
		t.Errorf("one app that is alone again gets batches of %d, want 8", n)
	}
}

// Where one app fills the queue, others still get their share of the room.
func TestAFullQueueIsShared(t *testing.T) {
	q := New(Limits{Items: 100, Bytes: 1 << 30}, anyone, nil)
	var displaced []*Item
	q.Displaced = func(it *Item) {
		_ = q.Below(Limits{}) // the queue may be looked at
		displaced = append(displaced, it)
	}
	push := func(it *Item) {
		displaced = nil
		if err := q.Push(it); err != nil {
			t.Helper()
			t.Fatal(err)
		}
	}
	for i := range 100 {
		push(of("noisy", 3, i))
	}
	for i := range 25 {
		push(of("quiet", 1, 500))
		if len(displaced) != 1 || !displaced[0].Deadline.Equal(due(99-i).Deadline) {
			t.Fatalf("item %d of a quiet app displaced %d, want the one with most time", i, len(displaced))
		}
	}
	for _, app := range []string{"quiet", "noisy"} {
		if err := q.Push(of(app, 1, 0)); !errors.Is(err, ErrFull) {
			t.Errorf("an app that has its share of a full queue gets more: %v", err)
		}
	}
	if q.Len() != 100 {
		t.Errorf("%d items wait, want 100", q.Len())
	}
}

// There may be any number of apps.
func TestAppsBeyondThoseWithLanesShareOne(t *testing.T) {
	q := New(Limits{Items: 1 << 20, Bytes: 1 << 30}, anyone, nil)
	const apps = 10 * mostLanes
	for i := range apps {
		q.Push(of(fmt.Sprint("app", i), 1, -1))
	}
	if len(q.lanes) > mostLanes+1 {
		t.Errorf("%d lanes", len(q.lanes))
	}
	var b Batch
	form(q, &b, epoch, apps, 0, Line{})
	if len(b.Items) != apps || q.Len() != 0 {
		t.Errorf("%d of %d came out, %d wait", len(b.Items), apps, q.Len())
	}
	form(q, &b, epoch.Add(time.Minute), 1, 0, Line{})
	if len(q.lanes) != 0 {
		t.Errorf("%d lanes are kept", len(q.lanes))
	}
}

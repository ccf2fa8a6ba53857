package state

import (
	"errors"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/topsail-serving/topsail/gateway/selection"
	"github.com/topsail-serving/topsail/serving"
)

func TestGetDoesNotWait(t *testing.T) {
	bubble(t, func(t *testing.T, m *memory, g *gateway) {
		m.set(func(m *memory) { m.slow = time.Second })
		m.put(keyOf("", ""), textOf(t, 7, oneV1, twoV1))
		m.put(keyOf("ann", ""), textOf(t, 3, oneV1, twoV1))
		app, began := newApp("", twoV1, oneV1), time.Now()
		if s := g.Get(app, "ann", ""); s != app.fresh {
			t.Errorf("before anything is known: %+v, want the fresh state", s)
		}
		if took := time.Since(began); took != 0 {
			t.Errorf("Get took %v", took)
		}
		time.Sleep(1100 * time.Millisecond)
		if n := count(t, g.Get(app, "ann", ""), "one"); n != 3 {
			t.Errorf("ann's count is %v, want 3", n)
		}
		if n := count(t, g.Get(app, "bob", ""), "one"); n != 7 {
			t.Errorf("the count of a user without a state is %v, want the app's 7", n)
		}
	})
}

func TestGetFollowsTheParents(t *testing.T) {
	bubble(t, func(t *testing.T, m *memory, g *gateway) {
		app := newApp(serving.ScopeUserContext, oneV1)
		want := func(n float64) {
			t.Helper()
			g.Get(app, "ann", "blue")
			time.Sleep(1100 * time.Millisecond)
			g.Get(app, "ann", "blue")
			synctest.Wait()
			if got := count(t, g.Get(app, "ann", "blue"), "one"); got != n {
				t.Errorf("count %v, want %v", got, n)
			}
		}
		want(0)
		m.put(keyOf("", ""), textOf(t, 1, oneV1))
		want(1)
		m.put(keyOf("ann", ""), textOf(t, 9, oneV1)) // of another scope: not meant
		want(1)
		m.put(keyOf("", "blue"), textOf(t, 2, oneV1))
		want(2)
		m.put(keyOf("ann", "blue"), textOf(t, 3, oneV1))
		want(3)
	})
}

func TestScopesDecideTheKey(t *testing.T) {
	for scope, want := range map[string]serving.StateKey{
		"":                       keyOf("ann", ""),
		serving.ScopeUser:        keyOf("ann", ""),
		serving.ScopeApp:         keyOf("", ""),
		serving.ScopeContext:     keyOf("", "blue"),
		serving.ScopeUserContext: keyOf("ann", "blue"),
	} {
		if got := newApp(scope, oneV1).key("ann", "blue"); got != want {
			t.Errorf("scope %q: key %+v, want %+v", scope, got, want)
		}
	}
	observing := NewApp("digits", serving.PolicySpec{Kind: kind}, watching{counting{kind}}, nil)
	if got := observing.key("ann", "blue"); got != keyOf("", "") {
		t.Errorf("of an observer: key %+v, want the app's", got)
	}
}

// What another gateway learns is seen within a second of asking, and what nobody asks
// for is not read.
func TestGetRefreshes(t *testing.T) {
	bubble(t, func(t *testing.T, m *memory, g *gateway) {
		app := newApp(serving.ScopeApp, oneV1)
		m.put(keyOf("", ""), textOf(t, 1, oneV1))
		g.Get(app, "", "")
		synctest.Wait()
		time.Sleep(time.Hour)
		if m.loads != 1 {
			t.Errorf("the state was read %d times in an hour in which nobody asked", m.loads)
		}
		g.Get(app, "", "")
		synctest.Wait()
		m.put(keyOf("", ""), textOf(t, 2, oneV1))
		changed := time.Now()
		for count(t, g.Get(app, "", ""), "one") != 2 {
			time.Sleep(10 * time.Millisecond)
			if time.Since(changed) > 1100*time.Millisecond {
				t.Fatal("the change was not seen in a second")
			}
		}
		before := g.Get(app, "", "")
		time.Sleep(2 * time.Second)
		g.Get(app, "", "")
		synctest.Wait()
		if after := g.Get(app, "", ""); after != before {
			t.Error("the same revision was decoded again")
		}
	})
}

func TestStoreAway(t *testing.T) {
	bubble(t, func(t *testing.T, m *memory, g *gateway) {
		app := newApp(serving.ScopeApp, oneV1)
		m.put(keyOf("", ""), textOf(t, 1, oneV1))
		g.Get(app, "", "")
		synctest.Wait()
		m.set(func(m *memory) { m.away = errors.New("connection refused") })
		for range 600 {
			time.Sleep(100 * time.Millisecond)
			if n := count(t, g.Get(app, "", ""), "one"); n != 1 {
				t.Fatalf("count %v while the store is unavailable, want the last good 1", n)
			}
		}
		if n := g.journal.Count("cannot be read"); n != 1 {
			t.Errorf("the outage was logged %d times, want once", n)
		}
		if n := g.metric(t, "load_failures_total"); n < 12 || n > 30 {
			t.Errorf("%v readings failed in a minute, want one in about 2.5 to 5 s", n)
		}
		if g.metric(t, "stale") != 1 {
			t.Error("the states are not said to be stale")
		}
		m.set(func(m *memory) { m.away = nil })
		m.put(keyOf("", ""), textOf(t, 2, oneV1))
		time.Sleep(maxRetryWait)
		g.Get(app, "", "")
		synctest.Wait()
		if n := count(t, g.Get(app, "", ""), "one"); n != 2 {
			t.Errorf("count %v after the outage, want 2", n)
		}
		if g.metric(t, "stale") != 0 || g.journal.Count("can be read again") != 1 {
			t.Error("the end of the outage was not noted")
		}
	})
}

// More states are asked for than can be read: they come all the same, later.
func TestManyUnknown(t *testing.T) {
	bubble(t, func(t *testing.T, m *memory, g *gateway) {
		const users = 5 * maxLoads
		m.set(func(m *memory) { m.slow = time.Millisecond })
		app := newApp("", oneV1)
		for u := range users {
			m.put(keyOf(strconv.Itoa(u), ""), textOf(t, float64(u+1), oneV1))
		}
		for round := 0; ; round++ {
			known := 0
			for u := range users {
				if g.Get(app, strconv.Itoa(u), "") != app.fresh {
					known++
				}
			}
			if known == users {
				break
			}
			if round == 100 {
				t.Fatalf("%d of %d users' states have come", known, users)
			}
			time.Sleep(100 * time.Millisecond)
		}
		if n := g.metric(t, "entries"); n != users+1 {
			t.Errorf("%v entries, want %d", n, users+1)
		}
	})
}

func TestMemoryIsBounded(t *testing.T) {
	s := start(t, newMemory()).States
	for u := range 100 {
		e := s.entry(keyOf(strconv.Itoa(u), ""))
		s.keep(e, &kept{state: selection.NewState(kind, nil), revision: 1, bytes: serving.MaxState})
	}
	if n := s.entries.WeightedSize(); n > maxBytes {
		t.Errorf("%d bytes are kept, and %d are the most", n, maxBytes)
	}
	if n := s.entries.EstimatedSize(); n == 0 || n > maxBytes/(3*serving.MaxState) {
		t.Errorf("%d large states are kept", n)
	}
}

func TestGetFitsToTheApp(t *testing.T) {
	bubble(t, func(t *testing.T, m *memory, g *gateway) {
		m.put(keyOf("", ""), textOf(t, 8, oneV1, twoV1))
		old := newApp(serving.ScopeApp, oneV1, twoV1)
		g.Get(old, "", "")
		synctest.Wait()
		app := newApp(serving.ScopeApp, oneV2, threeV1)
		s := g.Get(app, "", "")
		if len(s.Models) != 2 || count(t, s, "one") != 4 || count(t, s, "three") != 6 {
			t.Errorf("fitted: %+v, want one with 4 and three with 6", s.Models)
		}
		if again := g.Get(app, "", ""); again != s {
			t.Error("the state was fitted again")
		}
		if s := g.Get(old, "", ""); count(t, s, "two") != 8 {
			t.Errorf("the older app's state is %+v", s.Models)
		}
	})
}

// fragile panics when it takes in models.
type fragile struct{ counting }

func (fragile) AddModel(*selection.State, serving.ModelID) *selection.State { panic("no room") }

func TestGetSurvivesThePolicy(t *testing.T) {
	bubble(t, func(t *testing.T, m *memory, g *gateway) {
		m.put(keyOf("", ""), textOf(t, 8, oneV1))
		app := NewApp("digits", serving.PolicySpec{Kind: kind}, fragile{counting{kind}}, defined("", oneV1, twoV1))
		g.Get(app, "", "")
		synctest.Wait()
		if s := g.Get(app, "", ""); s != app.fresh {
			t.Errorf("got %+v, want the fresh state", s)
		}
		if n := g.metric(t, "mismatches_total"); n != 1 {
			t.Errorf("%v misfits, want 1", n)
		}
		r := g.Train(t.Context(), app, []Item{{Feedback: feedback(1, 1, oneV1)}})[0]
		if r.Err == nil || len(r.Trained) != 0 {
			t.Errorf("training said %+v, want an error", r)
		}
	})
}

func TestGetDoesNotAllocate(t *testing.T) {
	m := newMemory()
	g := start(t, m)
	app := newApp(serving.ScopeUserContext, oneV1)
	for _, c := range []string{"known", "unknown"} {
		g.Get(app, "ann", c)
		e := g.entry(keyOf("ann", "known"))
		g.keep(e, &kept{state: app.fresh, revision: 1})
		if n := testing.AllocsPerRun(100, func() { g.Get(app, "ann", c) }); n > 0.5 {
			t.Errorf("context %s: %v allocations", c, n)
		}
	}
}

func BenchmarkGet(b *testing.B) {
	for name, user := range map[string]string{"app": "", "user": "ann", "unknown_user": "bob"} {
		b.Run(name, func(b *testing.B) {
			g := start(b, newMemory())
			app := newApp("", oneV1, twoV1)
			for _, u := range []string{"", "ann"} {
				g.keep(g.entry(keyOf(u, "")), &kept{state: app.fresh.Clone(), revision: 1})
				g.entry(keyOf(u, "")).due.Store(int64(time.Hour))
			}
			b.ReportAllocs()
			for b.Loop() {
				g.Get(app, user, "")
			}
		})
	}
}

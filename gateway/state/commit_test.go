package state

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/topsail-serving/topsail/serving"
)

// The same feedback at many gateways at once trains once.
func TestDuplicatesAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T, m *memory, _ *gateway) {
		m.set(func(m *memory) { m.slow = time.Millisecond })
		var all sync.WaitGroup
		results := make([]Result, 8)
		for i := range results {
			g := start(t, m)
			all.Go(func() { results[i] = trainOne(t, g, newApp("", oneV1), "ann", feedback(1, 1, oneV1)) })
		}
		all.Wait()
		trained := 0
		for _, r := range results {
			if r.Err != nil {
				t.Error(r.Err)
			}
			trained += len(r.Trained)
		}
		if trained != 2 || m.state(t, keyOf("", "")).Steps != 1 || m.state(t, keyOf("ann", "")).Steps != 1 {
			t.Errorf("%d states were trained, want 2", trained)
		}
	})
}

// What comes while a swap is under way is stored together.
func TestGroupCommit(t *testing.T) {
	bubble(t, func(t *testing.T, m *memory, g *gateway) {
		m.set(func(m *memory) { m.slow = 10 * time.Millisecond })
		app := newApp(serving.ScopeApp, oneV1)
		const callers = 4 * maxBatch
		var all sync.WaitGroup
		for q := range callers {
			all.Go(func() {
				if r := trainOne(t, g, app, "", feedback(int64(q+1), 1, oneV1)); r.Err != nil {
					t.Error(r.Err)
				}
			})
		}
		all.Wait()
		if s := m.state(t, keyOf("", "")); s.Steps != callers {
			t.Errorf("%v of %d learned", s.Steps, callers)
		}
		if m.swaps < 4 || m.swaps > 6 {
			t.Errorf("%d swaps for %d pieces of feedback at once", m.swaps, callers)
		}
	})
}

// A reading that began before something was learned here does not undo it.
func TestTrainedWhileReading(t *testing.T) {
	bubble(t, func(t *testing.T, m *memory, g *gateway) {
		app := newApp(serving.ScopeApp, oneV1)
		trainOne(t, g, app, "", feedback(1, 1, oneV1))
		time.Sleep(time.Minute)
		m.set(func(m *memory) { m.lag = time.Second })
		m.put(keyOf("", ""), textOf(t, 10, oneV1))
		g.Get(app, "", "")
		synctest.Wait() // it has read 10
		m.set(func(m *memory) { m.lag = 0 })
		trainOne(t, g, app, "", feedback(2, 1, oneV1))
		time.Sleep(time.Second)
		synctest.Wait()
		if n := count(t, g.Get(app, "", ""), "one"); n != 11 {
			t.Errorf("count %v, want 11", n)
		}
	})
}

// For a caller that has gone the store is not asked.
func TestNobodyWaits(t *testing.T) {
	m := newMemory()
	g := start(t, m)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	list := []Item{{User: "ann", Feedback: feedback(1, 1, oneV1)}}
	if r := g.Train(ctx, newApp("", oneV1), list)[0]; !errors.Is(r.Err, context.Canceled) {
		t.Errorf("%+v", r)
	}
	for g.waiting.Load() > 0 {
		runtime.Gosched()
	}
	if m.loads != 0 || m.swaps != 0 {
		t.Errorf("%d loads and %d swaps for nobody", m.loads, m.swaps)
	}
}

func TestContextEnds(t *testing.T) {
	bubble(t, func(t *testing.T, m *memory, g *gateway) {
		app := newApp(serving.ScopeApp, oneV1)
		m.set(func(m *memory) { m.slow = time.Second })
		train := func(query int64, patience time.Duration) Result {
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			return g.Train(ctx, app, []Item{{Feedback: feedback(query, 1, oneV1)}})[0]
		}
		var all sync.WaitGroup
		all.Go(func() { // ends while its swap is under way
			if r := train(1, 1500*time.Millisecond); !errors.Is(r.Err, context.DeadlineExceeded) || !strings.Contains(r.Err.Error(), "send it again") {
				t.Errorf("query 1: %+v", r)
			}
		})
		time.Sleep(100 * time.Millisecond)
		all.Go(func() { // ends in the queue
			if r := train(2, time.Second); !errors.Is(r.Err, context.DeadlineExceeded) {
				t.Errorf("query 2: %+v", r)
			}
		})
		all.Go(func() {
			if r := train(3, time.Minute); r.Err != nil {
				t.Errorf("query 3: %+v", r)
			}
		})
		all.Wait()
		if s := m.state(t, keyOf("", "")); !slices.Equal(s.Trained, []int64{1, 3}) {
			t.Errorf("learned of %v, want 1 and 3: nobody waited for 2 when its turn came", s.Trained)
		}
		if n := g.waiting.Load(); n != 0 {
			t.Errorf("%d jobs are left", n)
		}
	})
}

// A state that conflicts forever does not hold anybody beyond the context.
func TestConflictsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		g := start(t, busy{m})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		r := g.Train(ctx, newApp("", oneV1), []Item{{Feedback: feedback(1, 1, oneV1)}})[0]
		if !errors.Is(r.Err, context.DeadlineExceeded) {
			t.Errorf("%+v", r)
		}
		if n := g.metric(t, "conflicts_total"); n < 1000 || n > 4000 {
			t.Errorf("%v conflicts in a minute, want one in about 32 ms", n)
		}
		time.Sleep(time.Second)
		if n := g.waiting.Load(); n != 0 {
			t.Errorf("%d jobs are left", n)
		}
	})
}

// busy is a store where somebody else is always faster.
type busy struct{ *memory }

func (busy) SwapState(context.Context, serving.StateKey, uint64, []byte) (uint64, error) {
	return 0, serving.ErrStateConflict
}

func TestStopping(t *testing.T) {
	bubble(t, func(t *testing.T, m *memory, g *gateway) {
		m.set(func(m *memory) { m.slow = time.Hour })
		var all sync.WaitGroup
		for q := range 3 {
			all.Go(func() {
				if r := trainOne(t, g, newApp("", oneV1), "", feedback(int64(q+1), 1, oneV1)); r.Err == nil {
					t.Errorf("%+v, want an error", r)
				}
			})
		}
		synctest.Wait()
		if err := g.stop(); !errors.Is(err, context.Canceled) {
			t.Errorf("Run returned %v", err)
		}
		all.Wait()
		if r := trainOne(t, g, newApp("", oneV1), "", feedback(9, 1, oneV1)); !errors.Is(r.Err, errStopped) {
			t.Errorf("after the end: %+v", r)
		}
	})
}

func TestTooMuchFeedback(t *testing.T) {
	bubble(t, func(t *testing.T, m *memory, g *gateway) {
		m.set(func(m *memory) { m.slow = time.Second })
		app := newApp(serving.ScopeUser, oneV1)
		list := make([]Item, maxWaiting+10)
		for i := range list {
			list[i] = Item{User: strconv.Itoa(i % 100), Feedback: feedback(int64(i+1), 1, oneV1)}
		}
		refused := 0
		for _, r := range g.Train(t.Context(), app, list) {
			if r.Err != nil {
				refused++
				if !errors.Is(r.Err, errBusy) {
					t.Fatal(r.Err)
				}
			}
		}
		if refused != 10 {
			t.Errorf("%d were refused, want 10", refused)
		}
		if s := m.state(t, keyOf("", "")); s.Steps != maxWaiting {
			t.Errorf("the app's state learned %v times, want %d", s.Steps, maxWaiting)
		}
		if n := g.waiting.Load(); n != 0 {
			t.Errorf("%d jobs are left", n)
		}
	})
}

// While two gateways do not agree on the version yet, a state is moved once, and not
// to and fro.
func TestVersionMovesOnce(t *testing.T) {
	bubble(t, func(t *testing.T, m *memory, old *gateway) {
		early := start(t, m)
		before, after := newApp(serving.ScopeApp, oneV1), newApp(serving.ScopeApp, oneV2)
		query := int64(0)
		train := func(g *gateway, a *App, id serving.ModelID) {
			t.Helper()
			query++
			if r := trainOne(t, g, a, "", feedback(query, 1, id)); r.Err != nil {
				t.Fatal(r.Err)
			}
		}
		for range 16 {
			train(old, before, oneV1)
		}
		for range 8 {
			train(early, after, oneV2)
			train(old, before, oneV1)
		}
		s := m.state(t, keyOf("", ""))
		if s.Models[0].ModelID != oneV2 || s.Models[0].Count != 8+16 {
			t.Errorf("the state is %+v, want version 2 with half of 16, and 16 more", s.Models)
		}
		train(old, newApp(serving.ScopeApp, oneV2), oneV2)
		train(old, newApp(serving.ScopeApp, oneV1), oneV1) // rolled back
		if s := m.state(t, keyOf("", "")); s.Models[0].ModelID != oneV1 || s.Models[0].Count != 25.0/2+1 {
			t.Errorf("the state is %+v, want version 1 again", s.Models)
		}
	})
}

func BenchmarkTrain(b *testing.B) {
	g := start(b, newMemory())
	app := newApp("", oneV1, twoV1)
	query := int64(0)
	b.ReportAllocs()
	for b.Loop() {
		query++
		if r := trainOne(b, g, app, "ann", feedback(query, 1, oneV1, twoV1)); r.Err != nil {
			b.Fatal(r.Err)
		}
	}
}

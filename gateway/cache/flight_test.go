package cache

import (
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"pgregory.net/rapid"

	"github.com/topsail-serving/topsail/serving"
)

var errSome = &serving.Failure{Cause: serving.ContainerError, Message: "some"}

func TestALandedFlightWakesEveryWaiter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, out := New(1<<20), text(t, 1)
		var awake atomic.Int64
		wait := func(f *Flight, w Waiter) {
			<-w
			if got, failure, landed := f.Result(); got != out || failure != nil || !landed {
				t.Errorf("a waiter woke to %v, %v, landed %v", got, failure, landed)
			}
			awake.Add(1)
		}
		w := make(Waiter, 1)
		flight, opened := c.Join(numbered(1), 0, w)
		if !opened {
			t.Fatal("the first did not open the flight")
		}
		go wait(flight, w)
		for range 99 {
			w := make(Waiter, 1)
			f, opened := c.Join(numbered(1), 0, w)
			if opened || f != flight {
				t.Fatal("an equal question opened a flight of its own")
			}
			go wait(f, w)
		}
		c.Join(numbered(1), 0, make(Waiter, 1)) // leaves at once: it never looks
		synctest.Wait()
		if awake.Load() != 0 {
			t.Fatal("somebody woke before the landing")
		}
		if _, _, landed := flight.Result(); landed || c.Open() != 1 {
			t.Fatal("it landed by itself")
		}
		flight.Land(out, nil)
		synctest.Wait()
		if awake.Load() != 100 {
			t.Errorf("%d of 100 woke", awake.Load())
		}
	})
}

func TestLandingTwiceChangesNothing(t *testing.T) {
	c, first, second := New(1<<20), text(t, 1), text(t, 2)
	w := make(Waiter, 1)
	f, _ := c.Join(numbered(1), 0, w)
	if !f.Land(first, nil) {
		t.Error("the first landing was not the first")
	}
	<-w
	newer, opened := c.Join(numbered(1), 0, w)
	if !opened || newer == f {
		t.Fatal("a landed flight can be joined")
	}
	if f.Land(second, nil) || f.Land(nil, errSome) {
		t.Error("a second landing was the first")
	}
	if out, failure, _ := f.Result(); out != first || failure != nil {
		t.Errorf("it ended with %v, %v", out, failure)
	}
	if c.Get(numbered(1), 0) != first {
		t.Error("the second landing replaced what is cached")
	}
	if len(w) != 0 || c.Open() != 1 {
		t.Error("the second landing touched the next flight")
	}
}

func TestAFailureIsNotCached(t *testing.T) {
	c := New(1 << 20)
	f, _ := c.Join(numbered(1), 0, make(Waiter, 1))
	f.Land(nil, errSome)
	if _, failure, landed := f.Result(); failure != errSome || !landed || c.Len() != 0 || c.Open() != 0 {
		t.Errorf("failure %v, landed %v, %d cached, %d open", failure, landed, c.Len(), c.Open())
	}
}

func TestAFlightAloneIsNotSharedAndNotCached(t *testing.T) {
	c, w := New(1<<20), make(Waiter, 1)
	f := c.Alone(w)
	if c.Open() != 0 {
		t.Error("it can be joined")
	}
	if !f.Land(text(t, 1), nil) || f.Land(nil, errSome) {
		t.Error("it does not land once")
	}
	<-w
	if out, _, _ := f.Result(); out == nil || c.Len() != 0 {
		t.Errorf("output %v, %d cached", out, c.Len())
	}
}

func TestWakingIsNeverBlockedNorLost(t *testing.T) {
	w := make(Waiter, 1)
	w.Wake()
	w.Wake()
	<-w
	if len(w) != 0 {
		t.Error("two wakes before a look are more than one")
	}
	w.Wake()
	if len(w) != 1 {
		t.Error("a wake after a look is lost")
	}
}

// A waiter of several flights, as a batch with equal questions has, and one that
// has left and waits for something else by now.
func TestOneWaiterOfManyFlights(t *testing.T) {
	c, w := New(1<<20), make(Waiter, 1)
	a, _ := c.Join(numbered(1), 0, w)
	b, _ := c.Join(numbered(2), 0, w)
	again, opened := c.Join(numbered(1), 0, w)
	if opened || again != a {
		t.Fatal("the same waiter did not join its own flight")
	}
	a.Land(text(t, 1), nil)
	b.Land(nil, errSome)
	<-w
	if _, _, landed := a.Result(); !landed {
		t.Error("woken before the first landed")
	}
	if len(w) != 0 {
		t.Error("three landings before a look are more than one wake")
	}
}

// TestFlights compares the flights with a model of them: what is open, who waits
// for what, and what is cached.
func TestFlights(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := New(1 << 20)
		open, cached, ended := map[Key]*Flight{}, map[Key]*serving.Output{}, map[*Flight]*serving.Output{}
		waiting := map[*Flight][]Waiter{}
		var all []*Flight
		key := rapid.Custom(func(t *rapid.T) Key { return numbered(rapid.IntRange(0, 3).Draw(t, "key")) })
		t.Repeat(map[string]func(*rapid.T){
			"join": func(t *rapid.T) {
				k, w := key.Draw(t, "k"), make(Waiter, 1)
				f, opened := c.Join(k, 0, w)
				if opened != (open[k] == nil) || (!opened && f != open[k]) {
					t.Fatalf("key %v: opened %v, and the open flight was %p, got %p", k, opened, open[k], f)
				}
				if opened {
					all = append(all, f)
				}
				open[k] = f
				waiting[f] = append(waiting[f], w)
			},
			"land": func(t *rapid.T) {
				if len(all) == 0 {
					t.Skip("none opened yet")
				}
				f := all[rapid.IntRange(0, len(all)-1).Draw(t, "flight")] // perhaps a landed one
				out, failure := &serving.Output{}, (*serving.Failure)(nil)
				if rapid.Bool().Draw(t, "fails") {
					out, failure = nil, errSome
				}
				_, landedBefore := ended[f]
				if f.Land(out, failure) == landedBefore {
					t.Fatalf("landed before: %v, and Land says the same", landedBefore)
				}
				if landedBefore {
					return
				}
				ended[f] = out
				delete(open, f.key.Key)
				if out != nil {
					cached[f.key.Key] = out
				}
				for _, w := range waiting[f] {
					<-w // blocks the test forever if nobody woke it
				}
				delete(waiting, f)
			},
			"": func(t *rapid.T) {
				if c.Open() != len(open) {
					t.Fatalf("%d are open, want %d", c.Open(), len(open))
				}
				for i := range 4 {
					if k := numbered(i); c.Get(k, 0) != cached[k] {
						t.Fatalf("key %v: cached %p, want %p", k, c.Get(k, 0), cached[k])
					}
				}
				for _, f := range all {
					want, landed := ended[f]
					if out, _, is := f.Result(); out != want || is != landed {
						t.Fatalf("a flight ended with %p, %v, want %p, %v", out, is, want, landed)
					}
				}
				for _, ws := range waiting {
					for _, w := range ws {
						if len(w) != 0 {
							t.Fatal("a waiter of an open flight was woken")
						}
					}
				}
			},
		})
	})
}

// TestAnEqualQuestionIsAskedOnce has many goroutines ask the same few questions as
// a query does: look into the cache, join, look again before asking. Whatever the
// interleaving, each question is asked once, and everybody gets its answer.
func TestAnEqualQuestionIsAskedOnce(t *testing.T) {
	const rounds, askers = 300, 8
	c := New(1 << 24)
	defer c.Close()
	var asked [rounds]atomic.Int64
	outs := make([]*serving.Output, rounds)
	for i := range outs {
		outs[i] = text(t, i)
	}
	query := func(i int, w Waiter) *serving.Output {
		k := numbered(i)
		if out := c.Get(k, 0); out != nil {
			return out
		}
		f, opened := c.Join(k, 0, w)
		if opened {
			out := c.Get(k, 0)
			if out == nil {
				asked[i].Add(1)
				out = outs[i]
			}
			f.Land(out, nil)
		}
		for {
			if out, _, landed := f.Result(); landed {
				return out
			}
			<-w
		}
	}
	var all sync.WaitGroup
	for range askers {
		all.Go(func() {
			w := make(Waiter, 1) // the same for all, as a pooled round has it
			for i := range rounds {
				if got := query(i, w); got != outs[i] {
					t.Errorf("question %d: got %p, want %p", i, got, outs[i])
				}
			}
		})
	}
	all.Wait()
	for i := range asked {
		if n := asked[i].Load(); n != 1 {
			t.Errorf("question %d was asked %d times", i, n)
		}
	}
	if c.Open() != 0 {
		t.Errorf("%d flights are still open", c.Open())
	}
}

// Several answers to one question, of which one is the first.
func TestConcurrentLandingsAreOne(t *testing.T) {
	c := New(1 << 20)
	defer c.Close()
	for i := range 200 {
		k := numbered(i)
		f, _ := c.Join(k, 0, make(Waiter, 1))
		var firsts atomic.Int64
		var won atomic.Pointer[serving.Output]
		var all sync.WaitGroup
		for range 4 {
			out := text(t, 1)
			all.Go(func() {
				if f.Land(out, nil) {
					firsts.Add(1)
					won.Store(out)
				}
			})
		}
		all.Go(func() { // joins before the landing or opens anew after it, never in between
			w := make(Waiter, 1)
			g, opened := c.Join(k, 0, w)
			switch {
			case opened && c.Get(k, 0) == nil:
				t.Error("a flight was opened before the answer was cached")
			case opened:
				g.Land(nil, errSome)
			default:
				<-w
			}
		})
		all.Wait()
		out, _, landed := f.Result()
		if firsts.Load() != 1 || !landed || out != won.Load() || c.Get(k, 0) != out || c.Open() != 0 {
			t.Fatalf("%d first landings, landed %v, %d open", firsts.Load(), landed, c.Open())
		}
	}
}

// A question joins an equal one of its priority or a higher one, and does not wait for one of a lower priority.
func TestAQuestionJoinsNoneOfALowerPriority(t *testing.T) {
	c, w := New(1<<20), make(Waiter, 1)
	low, _ := c.Join(numbered(1), 2, w)
	high, opened := c.Join(numbered(1), 1, w)
	if !opened || high == low {
		t.Fatal("a question of priority 1 joined one of priority 2")
	}
	for _, priority := range []int{1, 2, 3} {
		if f, opened := c.Join(numbered(1), priority, w); opened || f != high {
			t.Errorf("one of priority %d did not join that of priority 1", priority)
		}
	}
	high.Land(text(t, 1), nil)
	low.Land(text(t, 1), nil)
	if c.Open() != 0 || c.Get(numbered(1), 0) == nil {
		t.Error("one stays open, or none is cached")
	}
}

package cache

import (
	"sync"
	"sync/atomic"
	"testing"

	"github.com/topsail-serving/topsail/serving"
)

func TestWithdraw(t *testing.T) {
	c, w := New(1<<20), make(Waiter, 1)
	lone, _ := c.Join(numbered(1), 0, w)
	if !lone.Withdraw() || c.Open() != 0 {
		t.Fatal("a flight that nobody else waits for stays open")
	}
	if f, opened := c.Join(numbered(1), 0, w); !opened || f == lone {
		t.Error("an equal question joined what was taken back")
	}
	lone.Land(text(t, 1), nil)
	if c.Open() != 1 {
		t.Error("the flight that was taken back closed another when it landed")
	}
	if c.Get(numbered(1), 0) == nil {
		t.Error("what came all the same is not cached")
	}

	shared, _ := c.Join(numbered(2), 0, w)
	c.Join(numbered(2), 0, make(Waiter, 1))
	if shared.Withdraw() {
		t.Error("a flight was taken back that somebody else waits for")
	}
	shared.Land(text(t, 2), nil)
	if shared.Withdraw() {
		t.Error("a flight was taken back after it landed")
	}
	if !c.Alone(w).Withdraw() {
		t.Error("a flight that nobody can join was not taken back")
	}
}

// TestWithdrawWhileJoining holds that whoever joins a flight is never left alone by who
// opened it.
func TestWithdrawWhileJoining(t *testing.T) {
	c := New(1 << 20)
	for i := range 2000 {
		first, _ := c.Join(numbered(i), 0, make(Waiter, 1))
		var withdrawn, joined bool
		var all sync.WaitGroup
		all.Go(func() { withdrawn = first.Withdraw() })
		all.Go(func() {
			f, _ := c.Join(numbered(i), 0, make(Waiter, 1))
			joined = f == first
		})
		all.Wait()
		if withdrawn == joined {
			t.Fatalf("withdrawn %v, joined %v", withdrawn, joined)
		}
	}
}

// TestThen has everybody told how a flight ends exactly once, before or after it does.
func TestThen(t *testing.T) {
	c, out := New(1<<20), text(t, 1)
	var told atomic.Int64
	tell := func(got *serving.Output, failure *serving.Failure) {
		if got != out || failure != nil {
			t.Errorf("told %v and %v", got, failure)
		}
		told.Add(1)
	}
	f, _ := c.Join(numbered(1), 0, make(Waiter, 1))
	f.Then(tell)
	if told.Load() != 0 {
		t.Error("told before the end")
	}
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() { f.Then(tell) })
	}
	all.Go(func() { f.Land(out, nil) })
	all.Wait()
	f.Land(nil, errSome)
	f.Then(tell)
	if told.Load() != 52 {
		t.Errorf("told %d times, want 52", told.Load())
	}
}

package queue

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// waiter runs Wait and keeps what it said, and when.
type waiter struct {
	said bool
	took time.Duration
	done chan struct{}
}

func wait(ctx context.Context, q *Queue, n int, until func() time.Time) *waiter {
	w := &waiter{done: make(chan struct{})}
	start := time.Now()
	go func() {
		defer close(w.done)
		w.said = q.Wait(ctx, n, until)
		w.took = time.Since(start)
	}()
	return w
}

func (w *waiter) returned() bool {
	synctest.Wait()
	select {
	case <-w.done:
		return true
	default:
		return false
	}
}

func at(t time.Time) func() time.Time { return func() time.Time { return t } }

func TestWaitReturnsWhenEnoughWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := New(Limits{Items: 10, Bytes: 1 << 20}, anyone)
		w := wait(t.Context(), q, 3, nil)
		for range 2 {
			q.Push(due(-1))
			if w.returned() {
				t.Fatal("Wait returned before 3 items waited")
			}
		}
		q.Push(due(-1))
		if !w.returned() || !w.said {
			t.Error("3 items wait, and Wait goes on")
		}
		if again := wait(t.Context(), q, 3, nil); !again.returned() || !again.said {
			t.Error("Wait does not return at once while 3 wait")
		}
	})
}

func TestWaitEndsAtItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := New(Limits{Items: 10, Bytes: 1 << 20}, anyone)
		w := wait(t.Context(), q, 2, at(time.Now().Add(5*time.Millisecond)))
		if <-w.done; w.said || w.took != 5*time.Millisecond {
			t.Errorf("on an empty queue: %v after %v", w.said, w.took)
		}
		q.Push(due(-1))
		w = wait(t.Context(), q, 2, at(time.Now().Add(5*time.Millisecond)))
		if <-w.done; !w.said || w.took != 5*time.Millisecond {
			t.Errorf("with one item: %v after %v", w.said, w.took)
		}
		w = wait(t.Context(), q, 2, at(time.Now().Add(-time.Hour)))
		if <-w.done; !w.said || w.took != 0 {
			t.Errorf("with a time in the past: %v after %v", w.said, w.took)
		}
	})
}

// The time is read again for each item, as an urgent one may shorten it.
func TestWaitAsksForTheTimeAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := New(Limits{Items: 10, Bytes: 1 << 20}, anyone)
		q.Push(&Item{})
		until := time.Now().Add(time.Second)
		w := wait(t.Context(), q, 10, func() time.Time {
			if _, left, _ := q.First(time.Now(), 1); left < time.Hour {
				return time.Now().Add(left / 2)
			}
			return until
		})
		time.Sleep(10 * time.Millisecond)
		q.Push(&Item{Deadline: time.Now().Add(20 * time.Millisecond)})
		if <-w.done; !w.said || w.took != 20*time.Millisecond {
			t.Errorf("%v after %v, want after 20ms", w.said, w.took)
		}
	})
}

func TestWaitEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := New(Limits{Items: 10, Bytes: 1 << 20}, anyone)
		ctx, cancel := context.WithCancel(t.Context())
		w := wait(ctx, q, 1, nil)
		if w.returned() {
			t.Fatal("Wait returned on an empty queue")
		}
		cancel()
		if !w.returned() || w.said {
			t.Errorf("after the end: %v", w.said)
		}
		// A batcher that is to stop must stop, however much waits.
		q.Push(due(-1))
		if w := wait(ctx, q, 1, nil); !w.returned() || w.said {
			t.Error("Wait found something to do although its context has ended")
		}
	})
}

func TestEveryWaiterIsWoken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := New(Limits{Items: 10, Bytes: 1 << 20}, anyone)
		ctx, cancel := context.WithCancel(t.Context())
		leaving := wait(ctx, q, 1, nil)
		filling := wait(t.Context(), q, 5, nil)
		synctest.Wait()
		idle := wait(t.Context(), q, 1, nil)
		synctest.Wait()
		// The one that leaves and the one that wants more must not keep the item
		// from the one that can take it.
		cancel()
		q.Push(due(-1))
		if !idle.returned() || !idle.said {
			t.Error("an idle waiter sleeps while an item waits")
		}
		if !leaving.returned() || filling.returned() {
			t.Error("the others did not do as they should")
		}
		for range 4 {
			q.Push(due(-1))
		}
		<-filling.done
	})
}

// Remove on a queue of one must not look like an empty queue to a waiter.
func TestRemovingOthersLosesNoWakeUp(t *testing.T) {
	q := New(Limits{Items: 10, Bytes: 1 << 20}, anyone)
	ctx, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		for ctx.Err() == nil {
			q.Remove(func(*Item) bool { return false })
		}
	})
	var b Batch
	for range 1_000 {
		pushed := make(chan struct{})
		wg.Go(func() { q.Push(due(-1)); close(pushed) })
		patience, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		if !q.Wait(patience, 1, nil) {
			t.Fatal("an item waits, and nobody was woken for it")
		}
		cancel()
		<-pushed
		q.Form(&b, epoch, 1, 0, instant)
	}
	stop()
	wg.Wait()
}

package batch

import (
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/topsail-serving/topsail/rpc"
)

// newDelayed is a rig whose model takes 20 ms whatever the size, with a delay of
// 10 ms and batches of 4. It has been idle.
func newDelayed(t *testing.T) *rig {
	r := newRig(t, linear(20, 0), func(c *Config) { c.Delay = 10 * ms })
	r.warmUp(4, 2, 4, 2, 4)
	return r
}

// began checks when batches began, in milliseconds after start, and their sizes.
func (r *rig) began(start time.Time, want ...[2]int) {
	r.t.Helper()
	pass(time.Minute)
	var got [][2]int
	for _, b := range r.batches {
		got = append(got, [2]int{int(b.at.Sub(start).Round(ms) / ms), len(b.items)})
	}
	if len(got) != len(want) {
		r.t.Fatalf("batches began at %v, want %v", got, want)
	}
	for i := range want {
		if got[i] != want[i] {
			r.t.Fatalf("batches began at %v, want %v", got, want)
		}
	}
	r.end()
}

func TestAfterIdleThereIsNoDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newDelayed(t)
		start := time.Now()
		r.push(time.Second)
		r.began(start, [2]int{0, 1})
	})
}

func TestTheDelayCountsFromTheFirstItem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newDelayed(t)
		start := time.Now()
		r.push(time.Second)
		pass(23 * ms) // the batch ended 3 ms ago
		r.push(time.Second)
		pass(8 * ms)
		r.push(time.Second) // does not make the first wait longer
		r.began(start, [2]int{0, 1}, [2]int{33, 2})
	})
}

func TestWaitingForTheContainerCountsAsDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newDelayed(t)
		start := time.Now()
		r.push(time.Second)
		pass(5 * ms)
		r.push(time.Second)
		pass(14 * ms)
		r.push(500 * ms) // goes first, and came last: the other has waited long enough
		r.began(start, [2]int{0, 1}, [2]int{20, 2})
	})
}

func TestAFullBatchGoesAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newDelayed(t)
		start := time.Now()
		r.push(time.Second)
		pass(22 * ms)
		for range 4 {
			r.push(time.Second)
			pass(ms)
		}
		r.began(start, [2]int{0, 1}, [2]int{25, 4})
	})
}

func TestTheDelayTakesHalfOfWhatAnItemCanSpare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newDelayed(t)
		start := time.Now()
		r.push(time.Second)
		pass(22 * ms)
		r.push(28 * ms) // needs 20
		pass(time.Minute)
		if at := r.batches[1].at.Sub(start); at < 25*ms || at > 26*ms+ms/10 {
			t.Errorf("the item that had 8 ms to spare began after %v, want 4 ms after it came", at)
		}
		r.end()
	})
}

// What it needs is not the mean: a model that sometimes takes longer gets more.
func TestTheDelayLeavesAMargin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil, func(c *Config) { c.Delay = 10 * ms })
		odd := false
		r.model = func(int) time.Duration {
			if odd = !odd; odd {
				return 15 * ms
			}
			return 25 * ms
		}
		r.warmUp(slices.Repeat([]int{2, 4}, 20)...)
		r.push(time.Second)
		for r.queue.Len() > 0 || r.running() {
			pass(ms)
		}
		line, start := r.batcher.Profile().Line(), time.Now()
		r.push(36 * ms)
		pass(time.Minute)
		spare := 36*ms - line.Within(4)
		if margin := line.Within(4) - line.Took(4); margin < 6*ms || margin > 14*ms {
			t.Fatalf("the margin is %v for a deviation of 5ms", margin)
		}
		if at := r.batches[1].at.Sub(start); (at - spare/2).Abs() > ms/10 {
			t.Errorf("the item that had %v to spare began after %v", spare, at)
		}
		r.end()
	})
}

func TestAnUrgentItemEndsTheDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newDelayed(t)
		start := time.Now()
		r.push(time.Second)
		pass(22 * ms)
		r.push(time.Second) // would wait until 32
		pass(2 * ms)
		urgent := r.push(22 * ms) // has 2 to spare
		r.began(start, [2]int{0, 1}, [2]int{25, 2})
		if a := r.answers[urgent]; a.status != rpc.StatusOK || a.at.Sub(start) > 46*ms {
			t.Errorf("the urgent item got %+v", a)
		}
	})
}

func TestStoppingWhileABatchFillsBeginsNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newDelayed(t)
		r.push(time.Second)
		pass(22 * ms)
		r.push(time.Second)
		pass(ms)
		r.end()
		if len(r.batches) != 1 || r.queue.Len() != 1 {
			t.Errorf("batches %v, %d wait", r.batches, r.queue.Len())
		}
	})
}

// Whatever arrives, on a container with time for all of it the delay makes no
// item late and lets none wait longer than itself.
func TestTheDelayMakesNoItemLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newDelayed(t)
		r.model = linear(4, 0)
		for range 50 {
			r.push(0)
			pass(20 * ms)
		}
		r.batches = nil
		clear(r.answers)
		random := rand.New(rand.NewPCG(1, 1))
		for range 3000 {
			// 4 for the batch that runs, 4 for its own, and as much for a queue of a
			// full batch before it; and very little to spare.
			r.push(13*ms + time.Duration(random.IntN(20))*ms)
			pass(time.Duration(random.ExpFloat64() * 3e6))
		}
		pass(time.Second)
		if ok := r.statuses()[rpc.StatusOK]; ok < 2995 {
			t.Errorf("answers %v of 3000", r.statuses())
		}
		if mean := 3000 / float64(len(r.batches)); mean < 1.5 {
			t.Errorf("batches had %.2f items on average: there was no delay", mean)
		}
		r.end()
	})
}

package batch

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/topsail-serving/topsail/rpc"
	"github.com/topsail-serving/topsail/sidecar/queue"
	"github.com/topsail-serving/topsail/test/require"
)

func TestEveryItemIsAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, linear(2, 0), nil)
		for i := range 10 {
			r.push(time.Duration(100+i) * ms)
		}
		pass(time.Second)
		if want := map[rpc.Status]int{rpc.StatusOK: 10}; !maps.Equal(r.statuses(), want) {
			t.Errorf("answers %v, want %v", r.statuses(), want)
		}
		if r.observed != 10 || r.waited != 10 || len(r.dropped) != 0 {
			t.Errorf("observed %d run, %d waited, dropped %v", r.observed, r.waited, r.dropped)
		}
		if err := r.end(); !errors.Is(err, context.Canceled) {
			t.Errorf("Run = %v", err)
		}
	})
}

func TestItemsWithoutDeadlineGoLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, linear(2, 0), nil)
		r.warmUp()
		first := r.push(0) // starts at once, and the rest waits for it
		synctest.Wait()
		var patient, urgent []uint32
		for range 4 {
			patient = append(patient, r.push(0))
			urgent = append(urgent, r.push(time.Second))
		}
		pass(time.Minute)
		want := [][]uint32{{first}, urgent, patient}
		if !slices.EqualFunc(r.batches, want, func(b ran, want []uint32) bool { return slices.Equal(b.items, want) }) {
			t.Errorf("batches %v, want %v", r.batches, want)
		}
		r.end()
	})
}

func TestABatchForNobodyInAHurryMayTakeHalfASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, linear(0, 10), func(c *Config) { c.Sizer = NewAIMD(Unlimited, c.Profile) })
		r.pushAll(900, 0)
		pass(time.Minute)
		largest := 0
		for _, b := range r.batches {
			largest = max(largest, len(b.items))
		}
		if largest < 40 || largest > 55 {
			t.Errorf("the largest batch had %d, half a second allows 50", largest)
		}
		r.end()
	})
}

// Half of the budget of its items is for a batch, the rest for waiting for one.
func TestABatchTakesHalfTheBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, linear(50, 0.5), func(c *Config) { c.Sizer = NewAIMD(Unlimited, c.Profile) })
		for range 3000 {
			r.push(200 * ms)
			r.push(200 * ms)
			time.Sleep(ms)
		}
		synctest.Wait()
		for _, b := range r.batches[len(r.batches)-10:] {
			if took := r.model(len(b.items)); took < 85*ms || took > 102*ms {
				t.Errorf("a batch of %d took %v, for a budget of 200ms", len(b.items), took)
			}
		}
		r.end()
	})
}

func TestTheShareOfABudget(t *testing.T) {
	const budget = 100 * ms
	for _, c := range []struct{ alone, want time.Duration }{
		{0, 50 * ms},
		{44 * ms, 50 * ms},
		{45 * ms, 72500 * time.Microsecond}, // nine tenths of 50 are too little for any size
		{90 * ms, 95 * ms},
		{100 * ms, 100 * ms},
		{5 * time.Second, 100 * ms},
	} {
		if got := share(budget, c.alone); got != c.want {
			t.Errorf("when one input takes %v a batch gets %v of %v, want %v", c.alone, got, budget, c.want)
		}
	}
}

func TestExpiredItemsAreDroppedBeforeTheCallAndNeverAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, linear(50, 0), nil)
		during := r.push(20 * ms) // nothing is known of the model yet: it is tried
		synctest.Wait()
		before := r.push(30 * ms)
		pass(time.Second)
		if a := r.answers[during]; a.status != rpc.StatusOK {
			t.Errorf("the item that expired during its batch got %+v, although the model answered", a)
		}
		if a := r.answers[before]; a.status != rpc.StatusExpired || !strings.Contains(a.message, "in the queue") {
			t.Errorf("the item that expired in the queue got %+v", a)
		}
		if len(r.batches) != 1 || r.dropped[rpc.StatusExpired] != 1 {
			t.Errorf("batches %v, dropped %v", r.batches, r.dropped)
		}
		r.end()
	})
}

func TestAnItemThatCannotMakeItIsDroppedAndTriedWhenTheEstimateIsOld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, linear(50, 0), nil)
		r.warmUp()
		r.push(0)
		pass(60 * ms) // the estimate is fresh, from a batch of 50ms
		late := r.push(40 * ms)
		synctest.Wait()
		const why = "the deadline can no longer be met\nit would take 50ms by itself, and has 40ms left"
		if a := r.answers[late]; a.status != rpc.StatusLate || a.message != why || !a.at.Equal(time.Now()) || len(r.batches) != 1 {
			t.Errorf("it got %+v, batches %v", a, r.batches)
		}
		pass(profileFresh)
		r.model = linear(10, 0)
		tried := r.push(40 * ms)
		pass(time.Second)
		if a := r.answers[tried]; a.status != rpc.StatusOK {
			t.Errorf("the model has become fast, and the item got %+v", a)
		}
		r.end()
	})
}

func TestAStalledBatchFailsItsItems(t *testing.T) {
	for _, budget := range []time.Duration{0, 3 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, nil, func(c *Config) { c.Stall = 7 * time.Second })
			r.hang = true
			start := time.Now()
			numbers := r.pushAll(2, budget)
			<-r.done
			if took := time.Since(start); took != budget+7*time.Second {
				t.Errorf("with a budget of %v the container was given up after %v", budget, took)
			}
			if r.err == nil || r.err.Error() != "it hangs" {
				t.Errorf("Run = %v", r.err)
			}
			for _, n := range numbers {
				if a := r.answers[n]; a.status != rpc.StatusContainer || a.message != "it hangs" {
					t.Errorf("item %d got %+v", n, a)
				}
			}
		})
	}
}

// A container has longer while it is not known what it takes, and when it takes long.
func TestHowLongABatchMayTakeGoesByWhatIsUsual(t *testing.T) {
	for name, c := range map[string]struct {
		usual, want time.Duration
	}{
		"unknown": {0, time.Minute},
		"fast":    {10 * ms, 10 * time.Second},
		"slow":    {3 * time.Second, 30 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, func(int) time.Duration { return c.usual }, nil)
				if c.usual > 0 {
					r.warmUp(1, 1, 1)
				}
				r.hang = true
				start := time.Now()
				r.push(0)
				<-r.done
				if took := time.Since(start); took < c.want-c.want/100 || took > c.want+c.want/100 {
					t.Errorf("the container was given up after %v, want %v", took, c.want)
				}
			})
		})
	}
}

func TestAFailedBatchFailsOnlyWhatIsUnanswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, linear(5, 0), nil)
		r.fail = errors.New("the wire broke")
		r.pushAll(6, time.Second)
		<-r.done
		if !errors.Is(r.err, r.fail) {
			t.Errorf("Run = %v", r.err)
		}
		if want := map[rpc.Status]int{rpc.StatusOK: 1, rpc.StatusContainer: 3}; !maps.Equal(r.statuses(), want) {
			t.Errorf("answers %v, want %v", r.statuses(), want)
		}
		if r.queue.Len() != 2 || len(r.batches) != 1 {
			t.Errorf("%d wait after %d batches; a container that failed must not get another", r.queue.Len(), len(r.batches))
		}
		if *r.batcher.Profile().Line() != (Line{}) || r.observed != 0 {
			t.Error("a batch that failed was learnt from")
		}
	})
}

// However much waits, a batcher that is to stop finishes the batch in hand and
// begins no other.
func TestStoppingFinishesTheBatchInHand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, linear(20, 0), nil)
		r.pushAll(12, time.Minute)
		pass(10 * ms)
		start := time.Now()
		if err := r.end(); !errors.Is(err, context.Canceled) || time.Since(start) != 10*ms {
			t.Errorf("Run = %v after %v", err, time.Since(start))
		}
		if len(r.batches) != 1 || r.statuses()[rpc.StatusOK] != 4 || r.queue.Len() != 8 {
			t.Errorf("batches %v, answers %v, %d wait", r.batches, r.statuses(), r.queue.Len())
		}
	})
}

func TestBusy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, linear(20, 0), nil)
		r.warmUp(4)
		check := func(want time.Duration, wantBusy bool) {
			t.Helper()
			synctest.Wait()
			if left, busy := r.batcher.Busy(time.Now()); busy != wantBusy || !near(left, want, 1e-6) && left != want {
				t.Errorf("Busy = %v, %v; want %v, %v", left, busy, want, wantBusy)
			}
		}
		check(0, false)
		r.model = linear(50, 0)
		r.pushAll(4, 0)
		check(20*ms, true)
		pass(15 * ms)
		check(5*ms, true)
		pass(15 * ms)
		check(10*ms, true) // it is 10 ms late: as long again
		pass(30 * ms)
		check(0, false)
		r.end()
	})
}

func TestTheFirstBatchDoesNotCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, linear(3000, 0), func(c *Config) { c.Sizer = &AIMD{size: 8, limit: 99, profile: c.Profile} })
		r.push(100 * ms)
		pass(4 * time.Second)
		if r.batcher.Size() != 8 || *r.batcher.Profile().Line() != (Line{}) {
			t.Errorf("a slow first call left size %d and %+v", r.batcher.Size(), r.batcher.Profile().Line())
		}
		r.end()
	})
}

func TestASlowContainerLeavesItemsToAFastOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fastest := 2 * ms
		r := newRig(t, linear(100, 0), func(c *Config) {
			c.Fastest = func(time.Time) time.Duration { return fastest }
		})
		r.warmUp()
		r.push(0) // nobody is in a hurry: it may take its time
		pass(100 * ms)
		start := time.Now()
		urgent := r.push(50 * ms)
		synctest.Wait()
		if left, busy := r.batcher.Busy(time.Now()); !busy || left != profileFresh || len(r.answers) != 1 {
			t.Errorf("Busy = %v, %v, answers %v", left, busy, r.answers)
		}
		taken := r.queue.Drain() // by the fast one
		for range 4 {
			r.push(time.Second)
		}
		pass(profileFresh)
		if len(taken) != 1 || taken[0].Index != urgent || len(r.batches) != 2 || !r.batches[1].at.Equal(start.Add(profileFresh)) {
			t.Errorf("left %v, batches %v", taken, r.batches)
		}
		pass(time.Second)

		// Where the others are not so much faster, it does what it can.
		fastest = 50 * ms
		r.push(0)
		pass(100 * ms)
		late := r.push(50 * ms)
		synctest.Wait()
		if a := r.answers[late]; a.status != rpc.StatusLate {
			t.Errorf("with one of half its time the item got %+v", a)
		}
		r.end()
	})
}

func BenchmarkBatcher(b *testing.B) {
	q := queue.New(queue.Limits{Items: 1 << 16, Bytes: 1 << 30}, func(*queue.Item, queue.Load) error { return nil }, nil)
	p := NewProfile()
	batcher := New(Config{Queue: q, Runner: echo{}, Sizer: Fixed(8), Profile: p, Observer: nothing{}})
	items := make([]queue.Item, 8)
	b.ReportAllocs()
	for b.Loop() {
		now := time.Now()
		for i := range items {
			items[i] = queue.Item{Arrived: now, Deadline: now.Add(time.Second), From: nothing{}}
			require.NoError(b, q.Push(&items[i]))
		}
		batcher.Wake()
	}
}

type echo struct{}

func (echo) Begin(items []*queue.Item, ended func(error)) func() {
	var a rpc.Answer
	for _, it := range items {
		it.Answer(&a)
	}
	ended(nil)
	return func() {}
}

type nothing struct{}

func (nothing) Answer(*queue.Item, *rpc.Answer) {}
func (nothing) Batch(int, time.Duration)        {}
func (nothing) Waited(time.Duration)            {}
func (nothing) Dropped(rpc.Status)              {}

// A batch of a fixed size has so many inputs, and else it is as much as so many usual ones, but of small ones at most
// four times as many.
func TestTheSizeOfABatchWhoseInputsDiffer(t *testing.T) {
	for _, c := range []struct {
		name  string
		sizer func(*Profile) Sizer
		most  int
		bytes int
		want  int
	}{
		{"usual", func(p *Profile) Sizer { return &AIMD{size: 4, limit: 4, profile: p} }, 0, 1000, 4},
		{"large", func(p *Profile) Sizer { return &AIMD{size: 4, limit: 4, profile: p} }, 0, 2000, 2},
		{"larger than all", func(p *Profile) Sizer { return &AIMD{size: 4, limit: 4, profile: p} }, 0, 9000, 1},
		{"small", func(p *Profile) Sizer { return &AIMD{size: 4, limit: 4, profile: p} }, 0, 500, 8},
		{"tiny", func(p *Profile) Sizer { return &AIMD{size: 4, limit: 4, profile: p} }, 0, 10, 16},
		{"small, of at most 6", func(p *Profile) Sizer { return &AIMD{size: 4, limit: 4, profile: p} }, 6, 500, 6},
		{"large, of a fixed size", func(*Profile) Sizer { return Fixed(4) }, 4, 2000, 4},
		{"small, of a fixed size", func(*Profile) Sizer { return Fixed(4) }, 4, 10, 4},
	} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, linear(2, 1), func(cfg *Config) { cfg.Sizer, cfg.Most = c.sizer(cfg.Profile), c.most })
			r.batcher.cfg.Profile.line.Store(&Line{Line: queue.Line{Slope: 0.001, Base: 0.002, Mean: 1000}})
			for i := range 30 {
				it := &queue.Item{Arrived: time.Now(), Index: uint32(i), From: r, Ask: rpc.Ask{Payload: make([]byte, c.bytes)}}
				require.NoError(t, r.queue.Push(it))
			}
			r.batcher.Wake()
			left, _ := r.batcher.Busy(time.Now())
			synctest.Wait()
			if n := len(r.batches[0].items); n != c.want {
				t.Errorf("%s: a batch of %d, want %d", c.name, n, c.want)
			}
			if want := time.Duration(2+float64(c.want*c.bytes)/1000) * ms; (left - want).Abs() > ms {
				t.Errorf("%s: the container is thought to be busy for %v, want %v", c.name, left, want)
			}
			r.end()
		})
	}
}

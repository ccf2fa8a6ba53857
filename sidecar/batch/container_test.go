package batch

import (
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/topsail-serving/topsail/rpc"
	"github.com/topsail-serving/topsail/sidecar/queue"
)

// together makes n models of one container, whose batches take 20 ms.
func together(t *testing.T, n int) (models []*rig) {
	shared := NewContainer()
	for range n {
		models = append(models, newRig(t, linear(20, 0), func(c *Config) { c.Container = shared }))
	}
	return models
}

// started lists the batches of all models as they began: whose they are, and their sizes.
func started(start time.Time, models ...*rig) map[time.Duration][2]int {
	began := map[time.Duration][2]int{}
	for i, r := range models {
		for _, b := range r.batches {
			at := b.at.Sub(start)
			if _, both := began[at]; both {
				r.t.Errorf("two batches began after %v", at)
			}
			began[at] = [2]int{i, len(b.items)}
		}
	}
	return began
}

// The turn comes before the batch: what comes while another model runs goes in one batch, which takes the time
// that it takes and not the time that it waited.
func TestABatchIsFormedWhenItsTurnComes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		models := together(t, 2)
		a, b := models[0], models[1]
		b.warmUp(4)
		start := time.Now()
		a.push(time.Second)
		pass(5 * ms)
		b.push(time.Second)
		pass(10 * ms)
		b.push(time.Second)
		if left, busy := b.batcher.Busy(time.Now()); !busy {
			t.Errorf("while the other runs, the container is free in %v", left)
		}
		pass(time.Second)
		if got := started(start, a, b); len(got) != 2 || got[0] != [2]int{0, 1} || got[20*ms] != [2]int{1, 2} {
			t.Errorf("batches began at %v", got)
		}
		if took := b.batcher.Profile().Line().Took(2); took < 19*ms || took > 21*ms {
			t.Errorf("a batch is thought to take %v", took)
		}
		for _, r := range models {
			r.end()
		}
	})
}

func TestTurnsGoByTheEarliestDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		models := together(t, 4)
		start := time.Now()
		models[0].push(time.Second)
		models[1].push(400 * ms)
		models[2].push(0)
		models[3].push(300 * ms)
		pass(10 * ms)
		models[0].push(100 * ms)
		pass(time.Second)
		got := started(start, models...)
		for i, want := range []int{0, 0, 3, 1, 2} {
			if at := time.Duration(i) * 20 * ms; got[at] != [2]int{want, 1} {
				t.Errorf("after %v began %v, want one of model %d", at, got[at], want)
			}
		}
		for _, r := range models {
			r.end()
		}
	})
}

// Who is in no hurry waits for those who are, but not for ever.
func TestEveryModelGetsItsTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		models := together(t, 2)
		urgent, patient := models[0], models[1]
		urgent.push(50 * ms)
		start := time.Now()
		number := patient.push(0)
		for range 200 {
			urgent.push(50 * ms)
			pass(10 * ms)
		}
		pass(time.Second)
		a, answered := patient.answers[number]
		if waited := a.at.Sub(start); !answered || waited < patience/2 || waited > patience+40*ms {
			t.Errorf("it was answered: %v, after %v", answered, waited)
		}
		if n := urgent.statuses()[rpc.StatusOK]; n < 190 {
			t.Errorf("%d of those in a hurry were answered", n)
		}
		for _, r := range models {
			r.end()
		}
	})
}

// One that waits to fill, rests or is blocked by the stage behind it leaves its turn to others.
func TestWhoCannotBeginLeavesTheTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared, room := NewContainer(), false
		blocked := newRig(t, linear(20, 0), func(c *Config) { c.Container, c.Room = shared, func() bool { return room } })
		other := newRig(t, linear(20, 0), func(c *Config) { c.Container = shared })
		start := time.Now()
		blocked.push(50 * ms)
		other.push(time.Second)
		pass(30 * ms)
		if got := started(start, blocked, other); len(got) != 1 || got[0] != [2]int{1, 1} {
			t.Errorf("batches began at %v", got)
		}
		room = true
		blocked.batcher.Wake()
		pass(time.Second)
		if got := started(start, blocked, other); len(got) != 2 || got[30*ms] != [2]int{0, 1} {
			t.Errorf("with room, batches began at %v", got)
		}
		blocked.end()
		other.end()
	})
}

func TestALostContainerBeginsNothingMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		models := together(t, 2)
		a, b := models[0], models[1]
		a.fail = errors.New("the wire broke")
		a.push(time.Second)
		b.push(time.Second)
		<-a.done
		pass(time.Second)
		if len(b.batches) != 0 || b.queue.Len() != 1 {
			t.Errorf("the other got batches %v", b.batches)
		}
		b.end()
	})
}

// A model that leaves ends its batch, and those that stay have the container.
func TestAModelLeavesTheOthersGoOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		models := together(t, 2)
		a, b := models[0], models[1]
		a.push(time.Second)
		a.push(time.Second)
		b.push(time.Second)
		pass(5 * ms)
		start := time.Now()
		a.end()
		if took := time.Since(start); took != 15*ms || a.queue.Len() != 1 {
			t.Errorf("it left after %v, with %d in its queue", took, a.queue.Len())
		}
		pass(time.Second)
		if n := b.statuses()[rpc.StatusOK]; n != 1 {
			t.Errorf("%d of the other were answered", n)
		}
		a.batcher.Wake() // of something that was on its way
		pass(time.Second)
		if len(a.batches) != 1 {
			t.Errorf("who has left began %v", a.batches)
		}
		b.end()
	})
}

// stopping is a container whose model leaves in the middle of a batch.
type stopping struct {
	echo
	stop func()
}

func (s stopping) Begin(items []*queue.Item, ended func(error)) func() {
	s.stop()
	return s.echo.Begin(items, ended)
}

// Whether or not Run has seen it yet.
func TestOnceItIsToStopNothingBegins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil, nil)
		synctest.Wait()
		r.batcher.cfg.Runner = stopping{stop: r.stop}
		r.pushAll(8, time.Second)
		if r.end(); r.observed != 4 || r.queue.Len() != 4 {
			t.Errorf("%d were in batches, %d wait", r.observed, r.queue.Len())
		}
	})
}

// What others ask of the container before a query is due counts, and no more of a queue than is due by then.
func TestWhatComesBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		models := together(t, 3)
		a, b, c := models[0], models[1], models[2]
		for _, r := range models {
			r.warmUp(4, 4)
		}
		now := time.Now()
		before := func(due time.Duration) time.Duration {
			if due == 0 {
				return c.batcher.Before(0, time.Time{})
			}
			return c.batcher.Before(0, now.Add(due))
		}
		a.push(time.Second) // and runs
		pass(ms)
		now = time.Now()
		for i := range 8 {
			b.push(100*ms + time.Duration(i)*100*ms)
		}
		if got := before(0); got != 0 {
			t.Errorf("before a batch is formed, %v is known of", got)
		}
		pass(19 * ms) // the first four of them run
		a.push(2 * time.Second)
		c.push(3 * time.Second)
		pass(20 * ms)
		for due, want := range map[time.Duration]time.Duration{0: 40 * ms, 100 * ms: 0, 500 * ms: 0, 650 * ms: 10 * ms, 900 * ms: 20 * ms, 2500 * ms: 40 * ms} {
			if got := before(due); (got - want).Abs() > ms {
				t.Errorf("before a query that is due after %v others take %v, want %v", due, got, want)
			}
		}
		pass(time.Second)
		for _, r := range models {
			r.end()
		}
	})
}

// A batch may end before Begin returns, however often in a row.
func TestBatchesThatEndAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil, func(c *Config) { c.Runner = echo{} })
		r.pushAll(1000, 0)
		synctest.Wait()
		if n := r.statuses()[rpc.StatusOK]; n != 1000 || r.observed != 1000 {
			t.Errorf("%d were answered, %d observed", n, r.observed)
		}
		r.end()
	})
}

// many is what a container does that runs queries side by side.
type many struct {
	took  time.Duration
	first func(running int) time.Duration // until the first part; nil: there is none before the end

	mu                    sync.Mutex // guards the following
	running, most, gaveUp int
}

// counts are how many run, how many ran at most, and how many were given up.
func (m *many) counts() [3]int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return [3]int{m.running, m.most, m.gaveUp}
}

func (m *many) Begin(items []*queue.Item, ended func(error)) func() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.running++
	m.most = max(m.most, m.running)
	end := func() {
		m.mu.Lock()
		m.running--
		m.mu.Unlock()
		items[0].Answer(&rpc.Answer{})
		ended(nil)
	}
	if m.first != nil {
		began := time.AfterFunc(m.first(m.running), func() {
			m.mu.Lock()
			first := items[0].First
			items[0].First = nil // as a part of an answer does
			m.mu.Unlock()
			first(rpc.StatusOK)
		})
		whole := end
		end = func() { began.Stop(); whole() }
	}
	timer := time.AfterFunc(m.took, end)
	return func() {
		if timer.Stop() {
			m.mu.Lock()
			m.gaveUp++
			m.mu.Unlock()
			end()
		}
	}
}

// A container that leaves it to the sidecar runs as many queries side by side as have their first parts in time.
func TestTheLimitOfWhatRunsSideBySideIsFound(t *testing.T) {
	for _, each := range []time.Duration{ms, 2 * ms, 5 * ms} {
		synctest.Test(t, func(t *testing.T) {
			late, all := 0, 0
			m := &many{took: 400 * ms}
			m.first = func(running int) time.Duration {
				if all++; time.Duration(running)*each > 100*ms {
					late++
				}
				return time.Duration(running) * each
			}
			r := newRig(t, nil, func(c *Config) {
				c.Runner, c.Sizer, c.Ran = m, ConcurrentSizer(rpc.AnyConcurrency, c.Profile), func(time.Duration, int) {}
			})
			for range 20_000 { // 20 s, in which some wait, and not for long
				r.pushAll(max(0, 2-r.queue.Len()), 100*ms)
				pass(ms)
			}
			fit := int(50 * ms / each) // the other half of the time is for waiting, as it is with batches
			if size := r.batcher.Size(); size < fit*4/5 || size > fit*11/10 {
				t.Errorf("%v for each that runs: the limit is %d, and %d have their first part within half of the time", each, size, fit)
			}
			if late > all/50 {
				t.Errorf("%v for each that runs: %d of %d were late", each, late, all)
			}
			r.end()
		})
	}
}

func TestQueriesRunSideBySide(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &many{took: 100 * ms}
		r := newRig(t, nil, func(c *Config) {
			c.Runner, c.Sizer, c.Ran = m, ConcurrentSizer(3, c.Profile), func(time.Duration, int) {}
		})
		r.pushAll(5, time.Second)
		if left, busy := r.batcher.Busy(time.Now()); m.counts() != [3]int{3, 3, 0} || !busy || left != 0 || r.batcher.Running() != 3 {
			t.Errorf("%d run; busy %v, %v", m.counts()[0], busy, left)
		}
		pass(50 * ms)
		r.batcher.Cancel(func(it *queue.Item) bool { return it.Index == 1 })
		if got := m.counts(); got != [3]int{3, 3, 1} || r.queue.Len() != 1 {
			t.Errorf("after a cancellation %d run, %d wait", got[0], r.queue.Len())
		}
		pass(time.Second)
		if n := r.statuses()[rpc.StatusOK]; n != 5 || m.counts() != [3]int{0, 3, 1} {
			t.Errorf("%d were answered; %v", n, m.counts())
		}
		r.end()
	})
}

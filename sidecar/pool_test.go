package sidecar

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/topsail-serving/topsail/internal/obs"
	"github.com/topsail-serving/topsail/rpc"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/sidecar/batch"
	"github.com/topsail-serving/topsail/sidecar/queue"
)

// idle adds a container that is idle and takes so long for each batch of size; 0:
// nobody knows yet.
func (p *pool) idle(size int, took time.Duration) {
	profile := batch.NewProfile()
	for i := range 20 {
		if took > 0 {
			profile.Observe(queue.Load{N: 1 + i%size}, took, time.Now())
		}
	}
	b := batch.New(batch.Config{Queue: p.whole().queue, Sizer: batch.Fixed(size), Profile: profile})
	p.whole().setBatchers(func(all []*batch.Batcher) []*batch.Batcher { return append(all, b) })
}

func newTestPool() *pool {
	v := version("m", nil)
	return newPool(0, v, DefaultLimits, NewMetrics(obs.NewRegistry()).pool(v.ModelID, "m/0"), func(*pool) {})
}

func TestEstimate(t *testing.T) {
	type container struct {
		size int
		took time.Duration
	}
	for _, c := range []struct {
		name        string
		containers  []container
		ahead       int
		wait, round time.Duration
	}{
		{"no container", nil, 5, 0, 0},
		{"an unknown one", []container{{8, 0}}, 100, 0, 0},
		{"the next batch", []container{{8, 10 * ms}}, 7, 0, 10 * ms},
		{"the one after it", []container{{8, 10 * ms}}, 8, 10 * ms, 10 * ms},
		{"and far behind", []container{{8, 10 * ms}}, 81, 100 * ms, 10 * ms},
		{"two alike", []container{{8, 10 * ms}, {8, 10 * ms}}, 16, 10 * ms, 10 * ms},
		// In 40 ms both do 5 batches of 8: one takes 4 of them.
		{"one four times as fast", []container{{8, 10 * ms}, {8, 40 * ms}}, 32, 32 * ms, 16 * ms},
		{"one that is new", []container{{8, 10 * ms}, {1, 0}}, 9, 10 * ms, 10 * ms},
		{"that came first", []container{{1, 0}, {8, 10 * ms}}, 9, 10 * ms, 10 * ms},
	} {
		p := newTestPool()
		for _, x := range c.containers {
			p.idle(x.size, x.took)
		}
		wait, round := p.whole().estimate(time.Now(), nil, queue.Load{N: c.ahead})
		if diff := wait - c.wait; diff.Abs() > ms/10 || (round-c.round).Abs() > ms/10 {
			t.Errorf("%s: with %d ahead it waits %v for a round of %v, want %v and %v", c.name, c.ahead, wait, round, c.wait, c.round)
		}
	}
}

func TestTheWaitIsForTheFirstToBeFree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLoad(t, serving.BatchSpec{Strategy: "fixed", MaxSize: 1}, flat(100*ms, 0), flat(100*ms, 0))
		p := l.pool
		ask := func() {
			p.submit(&queue.Item{Arrived: time.Now(), From: l})
			p.wake()
		}
		for range 8 { // so that both are known
			ask()
			ask()
			pass(100 * ms)
		}
		check := func(ahead int, want time.Duration) {
			t.Helper()
			if wait, _ := p.whole().estimate(time.Now(), nil, queue.Load{N: ahead}); (wait - want).Abs() > ms/10 {
				t.Errorf("with %d ahead it waits %v, want %v", ahead, wait, want)
			}
		}
		check(0, 0)
		ask()
		pass(40 * ms)
		check(0, 0) // the other is free
		ask()
		pass(10 * ms)
		check(0, 50*ms)
		check(1, 50*ms)
		check(2, 150*ms)
		pass(time.Second)
		l.stop()
	})
}

func TestFastest(t *testing.T) {
	p := newTestPool()
	p.idle(8, 10*ms)
	p.idle(8, 0)
	p.idle(8, 3*ms)
	if got := p.whole().fastest(time.Now()); (got - 3*ms).Abs() > ms/10 {
		t.Errorf("the fastest takes %v, want 3ms", got)
	}
}

func TestAdmission(t *testing.T) {
	p := newTestPool()
	item := func(budget time.Duration) *queue.Item {
		now := time.Now()
		return &queue.Item{Arrived: now, Deadline: now.Add(budget)}
	}
	if err := admit(p.pipe.Load(), 0, item(time.Hour), queue.Load{}); !errors.Is(err, errNoContainer) {
		t.Errorf("without a container: %v", err)
	}
	p.idle(8, 100*ms)
	for _, c := range []struct {
		budget time.Duration
		ahead  int
		want   error
	}{
		{ms, 0, nil}, // an idle container is tried, whatever the estimate says
		{ms, 7, nil},
		{150 * ms, 8, queue.ErrLate}, // a batch before it, and its own
		{300 * ms, 8, nil},
		{300 * ms, 16, queue.ErrLate},
	} {
		if err := admit(p.pipe.Load(), 0, item(c.budget), queue.Load{N: c.ahead}); !errors.Is(err, c.want) {
			t.Errorf("a budget of %v with %d ahead: %v, want %v", c.budget, c.ahead, err, c.want)
		}
	}
	if err := admit(p.pipe.Load(), 0, &queue.Item{Arrived: time.Now()}, queue.Load{N: 1000}); err != nil {
		t.Errorf("without a deadline: %v", err)
	}
}

// What is ahead and what comes count with their bytes where the time goes with them, and the refusal says what was
// expected.
func TestAdmissionBySize(t *testing.T) {
	p := newTestPool()
	profile := batch.NewProfile()
	for i := range 40 { // 2 ms, and 1 ms for each kilobyte
		load := queue.Load{N: 1, Bytes: 500 + 1000*(i%2)}
		profile.Observe(load, 2*ms+time.Duration(load.Bytes)*time.Microsecond, time.Now())
	}
	b := batch.New(batch.Config{Queue: p.whole().queue, Sizer: batch.Fixed(8), Profile: profile})
	p.whole().setBatchers(func(all []*batch.Batcher) []*batch.Batcher { return append(all, b) })
	for _, c := range []struct {
		bytes int
		ahead queue.Load
		want  string
	}{
		{1000, queue.Load{N: 9, Bytes: 9000}, ""},
		{1000, queue.Load{N: 1000, Bytes: 9000}, ""}, // many small ones
		{1000, queue.Load{N: 9, Bytes: 45_000}, "the deadline cannot be met\nit would wait 50.5ms and take 10.1ms"},
		{40_000, queue.Load{N: 9, Bytes: 9000}, "the deadline cannot be met\nit would wait 10.1ms and take 42ms"},
		{40_000, queue.Load{}, ""}, // an idle container is tried
	} {
		now := time.Now()
		it := &queue.Item{Arrived: now, Deadline: now.Add(50 * ms), Ask: rpc.Ask{Payload: make([]byte, c.bytes)}}
		got := ""
		if err := admit(p.pipe.Load(), 0, it, c.ahead); err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%d bytes behind %+v: %q, want %q", c.bytes, c.ahead, got, c.want)
		}
	}
}

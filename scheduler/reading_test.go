package scheduler_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/topsail-serving/topsail/scheduler"
	"github.com/topsail-serving/topsail/serving"
)

// TestSlowHistory takes two seconds to read what a new leader wants to know.
func TestSlowHistory(t *testing.T) {
	in(t, func(w *world) {
		w.deployed(m1, &serving.ScaleSpec{Max: 20}, 4)
		w.apply(app("m"))
		w.setLoad(m1, steady(2000))
		w.lead(func(c *scheduler.Config) { c.Demand = slow{w} })
		time.Sleep(5 * time.Second)
		w.wantCount("as the load of the last minute needs", m1, 8)
	})
}

// slow takes 20 ms for a second's reports.
type slow struct{ w *world }

func (s slow) ReadDemand(ctx context.Context, from, to time.Time) ([]serving.DemandReport, error) {
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-time.After(to.Sub(from) / 50):
		return s.w.ReadDemand(ctx, from, to)
	}
}

// TestHint has jobs looked at before the next second.
func TestHint(t *testing.T) {
	in(t, func(w *world) {
		w.deployed(m1, nil, 2)
		w.lead()
		time.Sleep(10*time.Second + 300*time.Millisecond)
		w.lock(func() { w.jobs[m1] = w.newJob(m1, 5, 0) })
		for range 10 {
			w.hints <- struct{}{}
		}
		time.Sleep(100 * time.Millisecond)
		w.wantCount("a moment later", m1, 2)
	})
}

// TestManyHints with a slow list keep no second from being looked at.
func TestManyHints(t *testing.T) {
	in(t, func(w *world) {
		counted := &counting{w: w}
		w.listing = 170 * time.Millisecond
		w.lead(func(c *scheduler.Config) { c.Demand = counted })
		for range 3000 {
			w.hints <- struct{}{}
			time.Sleep(10 * time.Millisecond)
		}
		synctest.Wait()
		if counted.reads < 29 || counted.reads > 31 {
			t.Errorf("the demand was read %d times in 30 s", counted.reads)
		}
	})
}

type counting struct {
	w     *world
	reads int
}

func (c *counting) ReadDemand(ctx context.Context, from, to time.Time) ([]serving.DemandReport, error) {
	c.reads++
	return c.w.ReadDemand(ctx, from, to)
}

// TestSlowReaders hang; wakes and changes of the catalog do not wait for them.
func TestSlowReaders(t *testing.T) {
	in(t, func(w *world) {
		w.deployed(m1, &serving.ScaleSpec{Max: 5}, 0)
		w.lead(func(c *scheduler.Config) { c.Demand = hanging{} })
		time.Sleep(time.Minute + 300*time.Millisecond)
		w.wakes <- m1
		w.wantCount("woken", m1, 1)
		w.apply(version(serving.ModelID{Model: "n", Version: "1"}, nil, 2))
		w.wantCount("registered", serving.ModelID{Model: "n", Version: "1"}, 2)
	})
}

type hanging struct{}

func (hanging) ReadDemand(ctx context.Context, _, _ time.Time) ([]serving.DemandReport, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// TestWatchersThatEnd are begun again.
func TestWatchersThatEnd(t *testing.T) {
	in(t, func(w *world) {
		w.lead(func(c *scheduler.Config) { c.Catalog = &once{world: w} })
		time.Sleep(500 * time.Millisecond)
		w.apply(version(m1, nil, 1))
		time.Sleep(time.Second)
		w.wantCount("seen by the second watch", m1, 1)
	})
}

// once fails the first watch.
type once struct {
	*world
	failed bool
}

func (o *once) Watch(ctx context.Context, update func(*serving.Catalog)) error {
	if !o.failed {
		o.failed = true
		return errAway
	}
	return o.world.Watch(ctx, update)
}

// TestDemandUnknownMetric counts for how long.
func TestDemandUnknownMetric(t *testing.T) {
	in(t, func(w *world) {
		w.deployed(m1, nil, 1)
		w.lead()
		time.Sleep(10 * time.Second)
		synctest.Wait()
		w.wantMetric("known", "topsail_scheduler_demand_unknown_seconds 0")
		w.lock(func() { w.deaf = errAway })
		time.Sleep(60 * time.Second)
		w.wantMetric("not known", "topsail_scheduler_demand_unknown_seconds 5")
	})
}

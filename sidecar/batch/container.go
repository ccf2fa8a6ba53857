package batch

import (
	"cmp"
	"context"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/topsail-serving/topsail/sidecar/queue"
)

// Container has the models of one container take turns: it runs one batch at a time, or where its one model runs
// queries side by side, as many as that has places. The turn comes first: a batch is formed when it can start, of
// what waits by then. It has no goroutine of its own: whatever lets a batch start, starts it.
type Container struct {
	mu       sync.Mutex // guards the following
	waiting  []*Batcher // whose queues may hold something, in no order
	running  int        // batches
	current  *run       // the latest of them
	lost     bool       // a batch has failed: there are no more
	starting bool       // one goroutine starts batches at a time
	again    bool       // and it is to look once more
	alarm    *time.Timer
	alarmAt  time.Time // zero: it is not set

	free    atomic.Int64             // Unix nanoseconds when the running batch should end; 0: idle
	backlog atomic.Pointer[[]queued] // what waited when the last batch was formed; nil: for one model at most
}

// queued is what the queries that wait for one model ask of the container they share.
type queued struct {
	of       *Batcher
	priority int
	queue.Span
	takes time.Duration // to run all of them
}

// NewContainer makes one that is idle.
func NewContainer() *Container { return &Container{} }

// patience is how long a batch that is in no hurry waits at most for those that are due earlier.
const patience = defaultTarget

// Wake starts what can start now that an item came to the queue, or that the stage behind it takes more again.
func (b *Batcher) Wake() {
	b.container.mu.Lock()
	b.container.list(b)
	b.container.start()
}

// next starts what can start.
func (c *Container) next() {
	c.mu.Lock()
	c.start()
}

// start starts batches while there is one that can. c.mu is held, and released.
func (c *Container) start() {
	if c.again = c.starting; c.starting {
		c.mu.Unlock()
		return
	}
	c.starting = true
	for {
		r := c.take(time.Now())
		if r == nil && !c.again {
			break
		}
		c.again = false
		if r != nil {
			c.mu.Unlock()
			r.begin()
			c.mu.Lock()
		}
	}
	c.starting = false
	c.mu.Unlock()
}

// take is the next run, with its batch formed, or nil: of the models that can start one, that of the one whose
// first item has the highest priority, and of those is due first. c.mu is held.
func (c *Container) take(now time.Time) *run {
	if c.lost || len(c.waiting) == 0 || c.running >= c.waiting[0].places() {
		return nil
	}
	var first turn
	c.waiting = slices.DeleteFunc(c.waiting, func(b *Batcher) bool {
		t, ok := b.look(now)
		switch {
		case !ok:
			b.listed = false
			return true
		case t.from.After(now):
			c.setAlarm(t.from)
		case first.of == nil || cmp.Or(cmp.Compare(t.priority, first.priority), t.due.Compare(first.due)) < 0:
			first = t
		}
		return false
	})
	if first.of == nil {
		return nil
	}
	c.running++
	c.note(now)
	c.current = first.of.form(now, first.priority)
	return c.current
}

// note takes down what waits, for estimates. c.mu is held.
func (c *Container) note(now time.Time) {
	if len(c.waiting) < 2 {
		c.backlog.Store(nil)
		return
	}
	backlog := make([]queued, 0, len(c.waiting))
	for _, b := range c.waiting {
		for priority, span := range b.cfg.Queue.Spans(now) {
			if span.N > 0 {
				amount, size := b.Amount(span.Load), float64(b.Size())
				rounds := max(1, math.Ceil(amount/size))
				backlog = append(backlog, queued{b, priority, span, time.Duration(rounds) * b.Round(min(amount, size))})
			}
		}
	}
	c.backlog.Store(&backlog)
}

// Before is how long the container is thought to run other models before a query of b of a priority that is due then;
// zero: that is due after all that waits.
func (b *Batcher) Before(priority int, due time.Time) (takes time.Duration) {
	backlog := b.container.backlog.Load()
	if backlog == nil {
		return 0
	}
	for _, d := range *backlog {
		switch {
		case d.of == b || d.priority > priority:
		case due.IsZero() || d.priority < priority || !due.Before(d.Last):
			takes += d.takes
		case due.After(d.First):
			takes += time.Duration(float64(d.takes) * float64(due.Sub(d.First)) / float64(d.Last.Sub(d.First)))
		}
	}
	return takes
}

// list notes that something may wait for b. c.mu is held.
func (c *Container) list(b *Batcher) {
	if !b.listed {
		b.listed = true
		c.waiting = append(c.waiting, b)
	}
}

// done notes the end of a run, and starts the next one. With an error the container is lost.
func (c *Container) done(r *run, err error) {
	b := r.batcher
	c.mu.Lock()
	c.running--
	b.running--
	b.ended = time.Now()
	if c.current == r {
		c.current = nil
	}
	if c.running == 0 {
		c.free.Store(0)
	}
	if err != nil && !c.lost {
		c.lost, b.err = true, err
		close(b.failed)
	}
	if b.running == 0 && b.idle != nil {
		close(b.idle)
		b.idle = nil
	}
	c.start()
}

// setAlarm has the container look again at a time. c.mu is held.
func (c *Container) setAlarm(at time.Time) {
	switch {
	case !c.alarmAt.IsZero() && !at.Before(c.alarmAt):
		return // it looks earlier, and then sees
	case c.alarm == nil:
		c.alarm = time.AfterFunc(time.Until(at), c.onAlarm)
	default:
		c.alarm.Reset(time.Until(at))
	}
	c.alarmAt = at
}

// onAlarm gives up a batch that runs for too long, and starts what can start by now.
func (c *Container) onAlarm() {
	c.mu.Lock()
	c.alarmAt = time.Time{}
	stalled := c.stalled(time.Now())
	c.mu.Unlock()
	if stalled != nil {
		stalled()
	}
	c.next()
}

// stalled gives up the batch that runs; nil: it has time left. c.mu is held.
func (c *Container) stalled(now time.Time) (giveUp func()) {
	r := c.current
	if r == nil || r.overdue != nil {
		return nil
	}
	if now.Before(r.stallAt) {
		c.setAlarm(r.stallAt)
		return nil
	}
	return r.giveUp
}

// Run has the container run batches of b until ctx ends or the container is lost, and returns why, once the
// last of them has ended.
func (b *Batcher) Run(ctx context.Context) error {
	b.container.mu.Lock()
	b.over = ctx.Done()
	b.container.mu.Unlock()
	b.Wake()
	select {
	case <-ctx.Done():
	case <-b.failed:
	}
	b.container.mu.Lock()
	defer b.container.mu.Unlock()
	if b.running > 0 {
		idle := make(chan struct{})
		b.idle = idle
		b.container.mu.Unlock()
		<-idle
		b.container.mu.Lock()
	}
	return cmp.Or(b.err, context.Cause(ctx))
}

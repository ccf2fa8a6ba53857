package batch

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/topsail-serving/topsail/rpc"
	"github.com/topsail-serving/topsail/sidecar/queue"
)

// ErrCancelled is the cause of the end of a query that is not wanted any more.
var ErrCancelled = errors.New("cancelled by the gateway")

// errOverdue ends a query whose first part did not come long after its deadline.
var errOverdue = errors.New("the first part of the answer did not come in time")

// concurrent is what a Batcher knows of the queries that its container runs side by side.
type concurrent struct {
	mu      sync.Mutex // guards the following, and the sizer
	running map[*queue.Item]context.CancelCauseFunc
	held    time.Duration // how long a query keeps its place, a moving mean

	freed chan struct{} // of capacity 1: a place may have become free
	ended sync.WaitGroup
}

// heldDecay is the weight of what came before in held.
const heldDecay = 0.9

// ConcurrentSizer makes the sizer of a container that runs so many queries side by side, or with
// rpc.AnyConcurrency as many as have their first parts in time.
func ConcurrentSizer(limit uint32, profile *Profile) Sizer {
	if limit != rpc.AnyConcurrency {
		return Fixed(limit)
	}
	sizer := NewAIMD(Unlimited, profile)
	sizer.size = firstConcurrency
	return sizer
}

// firstConcurrency is where the search for the limit begins. From 1 it could not grow while the
// first answer, which may take minutes, is the only one.
const firstConcurrency = 8

// runConcurrent starts queries while there are places, until ctx ends or the container is lost.
// It returns when those that run have ended.
func (b *Batcher) runConcurrent(ctx context.Context) error {
	ctx, lost := context.WithCancelCause(ctx)
	defer lost(nil)
	for b.cfg.Queue.Wait(ctx, 1, nil) && b.awaitPlace(ctx) {
		b.form(time.Now(), 1)
		for _, it := range b.batch.Items {
			run := b.begin(it)
			b.concurrent.ended.Go(func() {
				if err := run(); err != nil {
					lost(err)
				}
			})
		}
	}
	b.concurrent.ended.Wait()
	return context.Cause(ctx)
}

// awaitPlace returns when another query may run, and says whether that came before the end of ctx.
func (b *Batcher) awaitPlace(ctx context.Context) bool {
	for ctx.Err() == nil {
		if _, busy := b.concurrent.busy(b.Size()); !busy {
			return true
		}
		select {
		case <-b.concurrent.freed:
		case <-ctx.Done():
		}
	}
	return false
}

// busy says whether no place is free, and when one may be.
func (c *concurrent) busy(size int) (left time.Duration, busy bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.running) < size {
		return 0, false
	}
	return c.held / time.Duration(size), true
}

// begin takes a place for a query. The function runs it, and returns an error when the container is
// lost.
func (b *Batcher) begin(it *queue.Item) (run func() error) {
	start, alone := time.Now(), b.cfg.Profile.Line().Took(1)
	items := []*queue.Item{it}
	target, last := goals(items, start, alone)
	// A query that runs is finished even when the batcher is to stop.
	ctx, cancel := context.WithCancelCause(context.Background())
	overdue := time.AfterFunc(last.Add(b.stall(1)).Sub(start), func() { cancel(errOverdue) })
	n := b.concurrent.add(it, cancel)
	full := n >= b.Size()
	it.First = func(status rpc.Status) {
		if it.Ask.Bits&rpc.AskParts != 0 {
			overdue.Stop() // from here on the gateway decides what is too late
		}
		if status == rpc.StatusOK {
			b.learn(n, time.Since(start), target, full)
		}
	}
	b.cfg.Observer.Waited(start.Sub(it.Arrived))
	return func() error {
		defer cancel(nil)
		defer overdue.Stop()
		err := b.cfg.Runner.PredictBatch(ctx, items)
		if err != nil {
			abandon(items, err)
		}
		took := time.Since(start)
		b.cfg.Ran(took, b.Size())
		b.concurrent.remove(it, took)
		return err
	}
}

func (c *concurrent) add(it *queue.Item, cancel context.CancelCauseFunc) (running int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.running[it] = cancel
	return len(c.running)
}

func (c *concurrent) remove(it *queue.Item, took time.Duration) {
	c.mu.Lock()
	delete(c.running, it)
	if c.held == 0 {
		c.held = took
	}
	c.held = time.Duration(heldDecay*float64(c.held) + (1-heldDecay)*float64(took))
	c.mu.Unlock()
	c.free()
}

func (c *concurrent) free() {
	select {
	case c.freed <- struct{}{}:
	default:
	}
}

// learn takes in that a first part took so long while n queries ran.
func (b *Batcher) learn(n int, took, target time.Duration, full bool) {
	c := b.concurrent
	c.mu.Lock()
	if b.cfg.Profile.Observe(n, took, time.Now()) {
		b.cfg.Sizer.Observe(n, took, target, full)
		b.size.Store(int64(b.cfg.Sizer.Size()))
	}
	c.mu.Unlock()
	c.free()
}

// Cancel ends the queries that run and match. Only a container that runs them side by side does
// so.
func (b *Batcher) Cancel(match func(*queue.Item) bool) {
	c := b.concurrent
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for it, cancel := range c.running {
		if match(it) {
			cancel(ErrCancelled)
		}
	}
}

// Concurrent says whether the container runs queries side by side.
func (b *Batcher) Concurrent() bool { return b.concurrent != nil }

// Running is how many queries run side by side; 0 of a container that takes batches.
func (b *Batcher) Running() int {
	if b.concurrent == nil {
		return 0
	}
	b.concurrent.mu.Lock()
	defer b.concurrent.mu.Unlock()
	return len(b.concurrent.running)
}

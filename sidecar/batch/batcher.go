package batch

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/topsail-serving/topsail/rpc"
	"github.com/topsail-serving/topsail/sidecar/queue"
)

// A container counts as hung when a batch runs so long beyond its last deadline:
// leastStall, or stallFactor times what such a batch usually takes, if that is more.
// While that is not known it is firstStall, since the first batches may pay for what
// a model puts off until then, such as compiling itself.
const (
	leastStall  = 10 * time.Second
	stallFactor = 10
	firstStall  = time.Minute
)

// Runner runs batches on one container.
type Runner interface {
	// PredictBatch runs items as one batch and answers each. An error means that
	// the container is lost; the items that it left unanswered are the caller's.
	PredictBatch(ctx context.Context, items []*queue.Item) error
}

// Observer gets the outcomes of batches, for metrics.
type Observer interface {
	Batch(n int, took time.Duration)
	Waited(time.Duration)
	Dropped(status rpc.Status)
}

// Config is what a Batcher needs.
type Config struct {
	Queue    *queue.Queue
	Runner   Runner
	Sizer    Sizer
	Profile  *Profile
	Delay    time.Duration // how long a batch may wait to fill
	Pad      int           // 0: batches go as they come; else smaller ones are filled up to so many
	Stall    time.Duration // how long a batch may run beyond its last deadline; 0: as long as its size lets expect
	Observer Observer
	// Ran, if set, has the container run queries side by side, each as a batch of its own and as many
	// as the sizer says. It gets what each took, and how many could run.
	Ran func(took time.Duration, of int)
	// Fastest, if set, is the least that any container of the queue is known to
	// take for one input.
	Fastest func(now time.Time) time.Duration
	// Room, if set, waits before each batch until the next stage can take more outputs, and says
	// whether that came before the end of ctx.
	Room func(ctx context.Context) bool
}

// Batcher runs the batches of one container.
type Batcher struct {
	cfg   Config
	batch queue.Batch // its slices are reused
	pad   padding
	ended time.Time // when the last batch ended

	size atomic.Int64 // of the next batch
	free atomic.Int64 // Unix nanoseconds when the running batch should end; 0: idle

	concurrent *concurrent // nil: batches, one at a time
}

// New makes a batcher; Run starts it.
func New(cfg Config) *Batcher {
	b := &Batcher{cfg: cfg, pad: padding{size: cfg.Pad}}
	b.size.Store(int64(cfg.Sizer.Size()))
	if cfg.Ran != nil {
		b.concurrent = &concurrent{running: map[*queue.Item]context.CancelCauseFunc{}, freed: make(chan struct{}, 1)}
	}
	return b
}

// Profile is the container's latency profile.
func (b *Batcher) Profile() *Profile { return b.cfg.Profile }

// Size is the most that the next batch will hold, or that run side by side.
func (b *Batcher) Size() int { return int(b.size.Load()) }

// Busy says whether a batch is running, and for how long it should go on. One
// that is overdue is taken to need as long again as it is late. Where queries run side by
// side it says whether all places are taken, and when one may be free.
func (b *Batcher) Busy(now time.Time) (left time.Duration, busy bool) {
	if b.concurrent != nil {
		return b.concurrent.busy(b.Size())
	}
	free := b.free.Load()
	if free == 0 {
		return 0, false
	}
	return time.Duration(free - now.UnixNano()).Abs(), true
}

// Round is how long n inputs, at most Size, keep the container from others; 0: not known.
func (b *Batcher) Round(n int) time.Duration {
	if c := b.concurrent; c != nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.held
	}
	return b.cfg.Profile.Line().Took(n)
}

// Run batches until ctx ends or the container is lost, and returns why.
func (b *Batcher) Run(ctx context.Context) error {
	if b.concurrent != nil {
		return b.runConcurrent(ctx)
	}
	for b.cfg.Queue.Wait(ctx, 1, nil) {
		if b.cfg.Room != nil && !b.cfg.Room(ctx) {
			break
		}
		if b.rest(ctx) {
			continue
		}
		if b.fill(ctx); ctx.Err() != nil {
			break
		}
		b.form(time.Now(), b.Size())
		if len(b.batch.Items) == 0 {
			continue
		}
		if err := b.run(ctx); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// fill waits at most the delay for the batch to fill, counted from the earliest arrival in it. A
// container that was idle for longer than the delay starts at once: then nothing else is on its
// way. The delay takes at most half of the time that the first item can spare, so that it makes
// none late.
func (b *Batcher) fill(ctx context.Context) {
	now := time.Now()
	if b.cfg.Delay == 0 || now.Sub(b.ended) > b.cfg.Delay {
		return
	}
	size := b.Size()
	service := b.cfg.Profile.Line().Within(size)
	arrived, _, _ := b.cfg.Queue.First(now, size)
	until := arrived.Add(b.cfg.Delay)
	b.cfg.Queue.Wait(ctx, size, func() time.Time {
		now := time.Now()
		if _, left, ok := b.cfg.Queue.First(now, 1); ok {
			until = earlier(until, now.Add((left-service)/2))
		}
		return until
	})
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// rest sits out, for as long as the estimate is trusted, while this container is
// too slow for the first item and another one is much faster: it would only drop
// what the other can still do. It says whether it did.
func (b *Batcher) rest(ctx context.Context) bool {
	now := time.Now()
	alone := b.Alone(now)
	if b.cfg.Fastest == nil || alone/profileOutlier <= b.cfg.Fastest(now) {
		return false
	}
	if _, left, ok := b.cfg.Queue.First(now, 1); !ok || alone <= left {
		return false
	}
	until := b.cfg.Profile.Line().at.Add(profileFresh)
	b.free.Store(until.UnixNano())
	defer b.free.Store(0)
	timer := time.NewTimer(until.Sub(now))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
	return true
}

// Alone is what one input is thought to take; 0 when the estimate is old.
func (b *Batcher) Alone(now time.Time) time.Duration { return b.trusted(now).Took(1) }

// trusted is the estimate, unless it is old: then it must not keep a batch from
// being tried.
func (b *Batcher) trusted(now time.Time) *Line {
	if line := b.cfg.Profile.Line(); line.Fresh(now) {
		return line
	}
	return &Line{}
}

// form takes the next batch, of at most size, from the queue and refuses what cannot make it.
func (b *Batcher) form(now time.Time, size int) {
	line := b.trusted(now)
	b.cfg.Queue.Form(&b.batch, now, size, line.Took(1), line.Within)
	for _, it := range b.batch.Expired {
		b.cfg.Observer.Dropped(rpc.StatusExpired)
		it.Refuse(rpc.StatusExpired, "the deadline passed in the queue")
	}
	for _, it := range b.batch.Late {
		b.cfg.Observer.Dropped(rpc.StatusLate)
		it.Refuse(rpc.StatusLate, "the deadline can no longer be met")
	}
}

// run sends the batch and learns from it.
func (b *Batcher) run(ctx context.Context) error {
	items, start := b.batch.Items, time.Now()
	full := len(items) >= b.Size()
	target, last := goals(items, start, b.cfg.Profile.Line().Took(1))
	for _, it := range items {
		b.cfg.Observer.Waited(start.Sub(it.Arrived))
	}
	b.free.Store(start.Add(b.cfg.Profile.Line().Took(len(items))).UnixNano())
	defer b.free.Store(0)
	// A batch that runs is finished even when the batcher is to stop.
	ctx, cancel := context.WithDeadline(context.WithoutCancel(ctx), last.Add(b.stall(len(items))))
	defer cancel()
	err := b.cfg.Runner.PredictBatch(ctx, b.pad.fill(items))
	b.ended = time.Now()
	if err != nil {
		abandon(items, err)
		return err
	}
	took := b.ended.Sub(start)
	b.cfg.Observer.Batch(len(items), took)
	if b.cfg.Profile.Observe(len(items), took, b.ended) {
		b.cfg.Sizer.Observe(len(items), took, target, full)
		b.size.Store(int64(b.cfg.Sizer.Size()))
	}
	return nil
}

// stall is how long a batch of n may run beyond its last deadline.
func (b *Batcher) stall(n int) time.Duration {
	took := b.cfg.Profile.Line().Took(n)
	switch {
	case b.cfg.Stall > 0:
		return b.cfg.Stall
	case took == 0:
		return firstStall
	}
	return max(leastStall, stallFactor*took)
}

func abandon(items []*queue.Item, why error) {
	for _, it := range items {
		it.Refuse(rpc.StatusContainer, why.Error())
	}
}

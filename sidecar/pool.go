package sidecar

import (
	"context"
	"errors"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"topsail/rpc"
	"topsail/serving"
	"topsail/sidecar/batch"
	"topsail/sidecar/queue"
)

// errNoContainer refuses queries while no container is ready.
var errNoContainer = errors.New("no container is ready")

// pool is one model version in this sidecar: its queue, and a batcher for each
// ready container.
type pool struct {
	id      uint32 // on connections with gateways
	model   *serving.Version
	queue   *queue.Queue
	metrics *poolMetrics
	changed func(*pool) // called when the state may have changed

	learners learners // the containers that take feedback

	waiting  atomic.Int64 // accepted and not yet answered
	draining atomic.Bool

	mu       sync.Mutex                       // serialises changes of batchers
	batchers atomic.Pointer[[]*batch.Batcher] // immutable slices, read without the lock
}

func newPool(id uint32, model *serving.Version, limits queue.Limits, metrics *poolMetrics, changed func(*pool)) *pool {
	p := &pool{id: id, model: model, metrics: metrics, changed: changed}
	p.batchers.Store(&[]*batch.Batcher{})
	p.queue = queue.New(limits, p.admit)
	return p
}

// state is what gateways are told.
func (p *pool) state() rpc.State {
	switch {
	case p.draining.Load():
		return rpc.StateDraining
	case len(*p.batchers.Load()) > 0:
		return rpc.StateReady
	}
	return rpc.StateLoading
}

func (p *pool) announcement() rpc.Announcement {
	return rpc.Announcement{ID: p.id, State: p.state(), InputType: p.model.InputType, InputLength: p.model.InputLength, Model: p.model.ModelID}
}

// serve runs batches on one container until ctx ends or the container is lost,
// and returns why.
func (p *pool) serve(ctx context.Context, runner batch.Runner, stall time.Duration) error {
	profile := batch.NewProfile()
	b := batch.New(batch.Config{
		Queue:    p.queue,
		Runner:   runner,
		Sizer:    batch.NewSizer(p.model.Batch, profile),
		Profile:  profile,
		Delay:    p.model.Batch.Delay,
		Stall:    stall,
		Observer: p.metrics,
		Fastest:  p.fastest,
	})
	p.setBatchers(func(all []*batch.Batcher) []*batch.Batcher { return append(all, b) })
	leave := sync.OnceFunc(func() {
		p.setBatchers(func(all []*batch.Batcher) []*batch.Batcher {
			return slices.DeleteFunc(all, func(other *batch.Batcher) bool { return other == b })
		})
	})
	defer leave()
	defer context.AfterFunc(ctx, leave)() // the batch in hand may take a while; no query waits for it
	return b.Run(ctx)
}

// setBatchers changes the set of batchers. When none is left, what waits is
// refused at once, so that gateways can ask another replica.
func (p *pool) setBatchers(change func([]*batch.Batcher) []*batch.Batcher) {
	p.mu.Lock()
	all := change(slices.Clone(*p.batchers.Load()))
	p.batchers.Store(&all)
	p.mu.Unlock()
	if len(all) == 0 {
		for _, it := range p.queue.Drain() {
			p.refuse(it, rpc.StatusNoContainer, errNoContainer)
		}
	}
	p.changed(p)
}

// submit queues an item or answers it with the reason why not.
func (p *pool) submit(it *queue.Item) {
	p.waiting.Add(1)
	if p.draining.Load() {
		p.refuse(it, rpc.StatusDraining, errors.New("the replica is stopping"))
		return
	}
	switch err := p.queue.Push(it); {
	case err == nil:
		p.metrics.demand.Admitted()
	case errors.Is(err, queue.ErrFull):
		p.refuse(it, rpc.StatusFull, err)
	case errors.Is(err, queue.ErrLate):
		p.refuse(it, rpc.StatusLate, err)
	default:
		p.refuse(it, rpc.StatusNoContainer, err)
	}
}

func (p *pool) refuse(it *queue.Item, status rpc.Status, why error) {
	p.metrics.Dropped(status)
	it.Refuse(status, why.Error())
}

// admit is the queue's admission: it refuses an item that would be answered after
// its deadline. An idle container is always tried, whatever the estimate says,
// because only a try can mend a wrong estimate.
func (p *pool) admit(it *queue.Item, ahead int) error {
	all := *p.batchers.Load()
	if len(all) == 0 {
		return errNoContainer
	}
	if it.Deadline.IsZero() {
		return nil
	}
	wait, service := p.estimate(it.Arrived, ahead)
	if wait > 0 && wait+service > margin(it.Deadline.Sub(it.Arrived)) {
		return queue.ErrLate
	}
	return nil
}

// margin is what of a budget may be planned with. A queue that is admitted up to
// the last moment answers a moment too late: the way back takes its time, and so
// do the batches that take longer than estimated.
func margin(budget time.Duration) time.Duration { return budget - budget/8 }

// estimate is how long an item with so many ahead of it would wait for its batch
// to start, and how long that batch would take. The batchers share the queue, so
// it is cleared in rounds, each as large as all their batches together, and each
// takes a part of a round that goes with its speed: one slow container among fast
// ones delays few items.
func (p *pool) estimate(now time.Time, ahead int) (wait, round time.Duration) {
	all := *p.batchers.Load()
	if len(all) == 0 {
		return 0, 0
	}
	perRound, known, rate := 0, 0, 0.0 // known: in perRound, of the containers with a profile
	soonest := time.Duration(math.MaxInt64)
	for _, b := range all {
		left, _ := b.Busy(now)
		soonest = min(soonest, left)
		size := b.Size()
		perRound += size
		if took := b.Profile().Line().Took(min(size, ahead+1)); took > 0 {
			known += size
			rate += float64(size) / float64(took)
		}
	}
	if known > 0 {
		round = time.Duration(float64(known) / rate)
	}
	return soonest + time.Duration(ahead/perRound)*round, round
}

// fastest is the least that a container is known to take for one input.
func (p *pool) fastest(now time.Time) time.Duration {
	least := time.Duration(math.MaxInt64)
	for _, b := range *p.batchers.Load() {
		if alone := b.Alone(now); alone > 0 {
			least = min(least, alone)
		}
	}
	return least
}

// load is what replies report: the length of the queue, and what a new item
// would wait.
func (p *pool) load() (queued int, wait time.Duration) {
	queued = p.queue.Len()
	wait, _ = p.estimate(time.Now(), queued)
	return queued, wait
}

// drain lets no more in.
func (p *pool) drain() {
	p.draining.Store(true)
	p.changed(p)
}

// answered says that everything accepted was answered.
func (p *pool) answered() bool { return p.waiting.Load() == 0 }

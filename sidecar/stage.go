package sidecar

import (
	"context"
	"errors"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/topsail-serving/topsail/rpc"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/sidecar/batch"
	"github.com/topsail-serving/topsail/sidecar/queue"
)

// errNoContainer refuses queries while no container is ready.
var errNoContainer = errors.New("no container is ready")

// stage is one step of a pool's pipeline: its queue, and a batcher for each ready
// worker. A model without stages has one, and its workers are whole containers.
type stage struct {
	serving.Stage
	spec     serving.BatchSpec
	queue    *queue.Queue
	observer batch.Observer
	ran      func(took time.Duration, of int) // observes a query that ran beside others
	metrics  *stageMetrics                    // nil: the model has no stages
	room     func() bool                      // says whether those behind it can take more; nil: there are none
	refuse   func(*queue.Item, rpc.Status, error)
	changed  func() // called when the batchers changed

	workers  int                              // workers that serve it; guarded by the pool
	mu       sync.Mutex                       // serialises changes of batchers
	batchers atomic.Pointer[[]*batch.Batcher] // immutable slices, read without the lock
	running  []*batch.Batcher                 // those that leave, too, until their last query has ended; guarded by mu
	bereft   atomic.Pointer[time.Time]        // when the last worker left
	blocked  atomic.Bool                      // it waits for room behind it
	waking   atomic.Bool                      // it is about to be woken
	turn     atomic.Uint32                    // whose turn it is to be woken first
}

// worker is what serves a stage: a container, or one of those of a pool.
type worker struct {
	batch.Runner
	container   *batch.Container // what it has in common with others; nil: nothing
	concurrency uint32           // queries that it runs side by side; 0: it takes batches
	stall       time.Duration    // see batch.Config
}

// newStage makes a stage without workers.
func newStage(s serving.Stage, spec serving.BatchSpec) *stage {
	st := &stage{Stage: s, spec: spec}
	st.batchers.Store(&[]*batch.Batcher{})
	return st
}

// staffed says whether it has a worker.
func (s *stage) staffed() bool { return len(*s.batchers.Load()) > 0 }

// comesBack is how long a stage of a pipeline keeps what waits when its last worker is
// gone: workers that die are started again, and a pipeline without one of its stages
// would else lose what all the others have done.
const comesBack = 5 * time.Second

// open is why it takes no items, or nil.
func (s *stage) open() error {
	if !s.staffed() && time.Since(s.left()) >= comesBack {
		return errNoContainer
	}
	return nil
}

// left is when its last worker left; zero while it never had one.
func (s *stage) left() time.Time {
	if at := s.bereft.Load(); at != nil {
		return *at
	}
	return time.Time{}
}

// push queues an item and wakes the workers, once what calls this has queued all that it has.
func (s *stage) push(it *queue.Item) error {
	err := s.queue.Push(it)
	if err == nil {
		s.wakeSoon()
	}
	return err
}

// wakeSoon is wake where a lock may be held.
func (s *stage) wakeSoon() {
	if s.waking.CompareAndSwap(false, true) {
		go func() {
			s.waking.Store(false)
			s.wake()
		}()
	}
}

// wake has idle workers begin on what is queued, a different one first each time.
func (s *stage) wake() {
	all := *s.batchers.Load()
	first := int(s.turn.Add(1))
	for i := range all {
		if s.queue.Len() == 0 {
			return
		}
		all[(first+i)%len(all)].Wake()
	}
}

// serve runs batches on one worker until ctx ends or it is lost, and returns why.
func (s *stage) serve(ctx context.Context, w worker) error {
	profile := batch.NewProfile()
	cfg := batch.Config{
		Queue:     s.queue,
		Runner:    w.Runner,
		Sizer:     batch.NewSizer(s.spec, profile),
		Profile:   profile,
		Most:      s.spec.MaxSize,
		Delay:     s.spec.Delay.Std(),
		Pad:       padTo(s.spec),
		Stall:     w.stall,
		Observer:  s.observer,
		Fastest:   s.fastest,
		Room:      s.room,
		Container: w.container,
	}
	if w.concurrency > 0 {
		cfg.Sizer, cfg.Ran, cfg.Container = batch.ConcurrentSizer(w.concurrency, profile), s.ran, nil
	}
	b := batch.New(cfg)
	s.runs(b, true)
	defer s.runs(b, false)
	s.setBatchers(func(all []*batch.Batcher) []*batch.Batcher { return append(all, b) })
	leave := sync.OnceFunc(func() {
		s.setBatchers(func(all []*batch.Batcher) []*batch.Batcher {
			return slices.DeleteFunc(all, func(other *batch.Batcher) bool { return other == b })
		})
	})
	defer leave()
	defer context.AfterFunc(ctx, leave)() // the running batch may take a while; no query waits for it
	return b.Run(ctx)
}

// runs notes that a batcher may run queries, or no longer does.
func (s *stage) runs(b *batch.Batcher, does bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if does {
		s.running = append(s.running, b)
	} else {
		s.running = slices.DeleteFunc(s.running, func(other *batch.Batcher) bool { return other == b })
	}
}

// beside is how many queries run side by side.
func (s *stage) beside() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, b := range s.running {
		n += b.Running()
	}
	return n
}

// cancel ends the queries that match of those that run side by side.
func (s *stage) cancel(match func(*queue.Item) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, b := range s.running {
		b.Cancel(match)
	}
}

// padTo is the size that batches are filled up to; 0: none.
func padTo(spec serving.BatchSpec) int {
	if !spec.Pad {
		return 0
	}
	return spec.MaxSize
}

// setBatchers changes the set of batchers. When none is left, what waits is refused,
// so that gateways can ask another replica: at once, or in a pipeline when no worker
// has come back.
func (s *stage) setBatchers(change func([]*batch.Batcher) []*batch.Batcher) {
	s.mu.Lock()
	all := change(slices.Clone(*s.batchers.Load()))
	if now := time.Now(); len(all) == 0 {
		s.bereft.Store(&now) // first: a reader that sees no worker must see since when
	}
	s.batchers.Store(&all)
	s.mu.Unlock()
	switch {
	case len(all) > 0:
	case s.Name == "":
		s.giveUp()
	default:
		time.AfterFunc(comesBack, func() {
			if s.open() != nil {
				s.giveUp()
			}
		})
	}
	s.changed()
}

// giveUp refuses what waits.
func (s *stage) giveUp() {
	for _, it := range s.queue.Drain() {
		s.refuse(it, rpc.StatusNoContainer, errNoContainer)
	}
}

// estimate is how long an item, or a usual one if that is nil, with so much ahead of it would wait for its batch
// to start, and how long that batch would take. The batchers share the queue, so
// it is cleared in rounds, each as large as all their batches together, and each
// takes a part of a round that goes with its speed: one slow worker among fast
// ones delays few items.
func (s *stage) estimate(now time.Time, it *queue.Item, ahead queue.Load) (wait, service time.Duration) {
	all := *s.batchers.Load()
	if len(all) == 0 {
		return 0, 0
	}
	cleared, known, rate := 0.0, 0.0, 0.0 // in a round: the part of what is ahead, and inputs of the workers with a profile
	soonest, alone := time.Duration(math.MaxInt64), time.Duration(math.MaxInt64)
	for _, b := range all {
		left, _ := b.Busy(now)
		soonest = min(soonest, left)
		size, own, before := float64(b.Size()), 1.0, b.Amount(ahead)
		if it != nil {
			own = b.Amount(it.Load())
		}
		cleared += size / before
		if took := b.Round(min(size, before+own)); took > 0 {
			known += size
			rate += size / float64(took)
			alone = min(alone, b.Round(own))
		}
	}
	round := time.Duration(0)
	if known > 0 {
		round = time.Duration(known / rate)
		service = max(round, alone)
	}
	wait = soonest + time.Duration(1/cleared+1e-9)*round
	if first := all[0].Alone(now); all[0].Concurrent() {
		return wait, first // what counts is the first part; the place is taken for longer
	}
	return wait, service
}

// others is how long its workers run other models at least before a query of a priority that is due then; zero: after
// all of theirs.
func (s *stage) others(now time.Time, priority int, due time.Time) (least time.Duration) {
	for i, b := range *s.batchers.Load() {
		if _, busy := b.Busy(now); !busy {
			return 0
		}
		if takes := b.Before(priority, due); i == 0 || takes < least {
			least = takes
		}
	}
	return least
}

// fastest is the least that a worker is known to take for one input.
func (s *stage) fastest(now time.Time) time.Duration {
	least := time.Duration(math.MaxInt64)
	for _, b := range *s.batchers.Load() {
		if alone := b.Alone(now); alone > 0 {
			least = min(least, alone)
		}
	}
	return least
}

// alone is what a worker takes at least for one input; 0 where it is not known.
func (s *stage) alone(now time.Time) time.Duration {
	if least := s.fastest(now); least < math.MaxInt64 {
		return least
	}
	return 0
}

// line is what a worker takes: the mean over those that are known, and zero while
// none is.
func (s *stage) line() (line serving.LatencyLine, workers int) {
	var base, slope, known float64
	all := *s.batchers.Load()
	for _, b := range all {
		if line := b.Profile().Line(); line.Took(1) > 0 {
			base += line.Base
			slope += line.Slope
			known++
		}
	}
	if known == 0 {
		return serving.LatencyLine{}, len(all)
	}
	return serving.LatencyLine{Base: seconds(base / known), PerInput: seconds(slope / known)}, len(all)
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

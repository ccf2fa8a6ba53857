package batch

import (
	"sync/atomic"
	"time"

	"github.com/topsail-serving/topsail/rpc"
	"github.com/topsail-serving/topsail/sidecar/queue"
)

// Runner runs the batches of one model on a container.
type Runner interface {
	// Begin sends items as one batch and returns at once. Each is answered, and then ended is called, once,
	// perhaps before Begin returns. An error means that the container is lost; the items that it left unanswered
	// are the caller's. giveUp has the batch end ahead of that, in its own way, and may be called at any time.
	Begin(items []*queue.Item, ended func(error)) (giveUp func())
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
	Most     int           // items in a batch, whatever their sizes; 0: any number
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
	// Room, if set, says whether the next stage can take more outputs. When it can after it could not, Wake must
	// be called.
	Room func() bool
	// Container is what the models of one container share; nil: it has no other.
	Container *Container
}

// Batcher runs the batches of one model on one container, while Run runs.
type Batcher struct {
	cfg       Config
	container *Container
	pad       padding
	run       *run // of a batch, reused; queries that run side by side have their own

	// The following is guarded by the container.
	listed  bool            // it is among those that the container looks at
	over    <-chan struct{} // closed when it is to begin nothing more
	running int             // its batches
	idle    chan struct{}   // closed when none runs; nil: nothing waits for that
	failed  chan struct{}   // closed when one of its batches has lost the container
	err     error           // why
	ended   time.Time       // when its last batch ended
	fill    time.Time       // how long its next batch may wait to fill; zero: it does not wait
	since   int             // batches since the size for several apps last changed
	changed time.Time       // when the size last changed

	beside  beside
	size    atomic.Int64 // of a batch, as the sizer says
	shared  atomic.Int64 // the same while apps share the container
	resting atomic.Int64 // Unix nanoseconds until when it rests
}

// New makes a batcher; Run starts it.
func New(cfg Config) *Batcher {
	b := &Batcher{cfg: cfg, container: cfg.Container, pad: padding{size: cfg.Pad}, failed: make(chan struct{})}
	if b.container == nil {
		b.container = NewContainer()
	}
	b.run = newRun(b)
	b.size.Store(int64(cfg.Sizer.Size()))
	b.shared.Store(b.size.Load())
	b.beside.running = map[*run]struct{}{}
	return b
}

// Profile is the container's latency profile.
func (b *Batcher) Profile() *Profile { return b.cfg.Profile }

// Size is how many usual inputs the next batch will hold at most, or how many run side by side.
func (b *Batcher) Size() int {
	size := b.size.Load()
	if b.cfg.Queue.Shared() && b.cfg.Ran == nil {
		size = min(size, b.shared.Load())
	}
	return int(size)
}

// Amount is how many usual inputs a load is as much as.
func (b *Batcher) Amount(of queue.Load) float64 { return b.cfg.Profile.Line().Amount(of) }

// places is how many of its batches may run at a time.
func (b *Batcher) places() int {
	if b.cfg.Ran != nil {
		return b.Size()
	}
	return 1
}

// Busy says whether the container runs a batch, and for how long it should go on. One
// that is overdue is taken to need as long again as it is late. Where queries run side by
// side it says whether all places are taken, and when one may be free.
func (b *Batcher) Busy(now time.Time) (left time.Duration, busy bool) {
	if b.cfg.Ran != nil {
		return b.besideBusy()
	}
	free := b.container.free.Load()
	if resting := b.resting.Load(); resting > now.UnixNano() {
		free = resting
	}
	if free == 0 {
		return 0, false
	}
	return time.Duration(free - now.UnixNano()).Abs(), true
}

// Round is how long so many usual inputs, at most Size, keep the container from others; 0: not known.
func (b *Batcher) Round(amount float64) time.Duration {
	if b.cfg.Ran == nil {
		return b.cfg.Profile.Line().Took(amount)
	}
	b.beside.mu.Lock()
	defer b.beside.mu.Unlock()
	return b.beside.held
}

// turn is a batch that could be the container's next.
type turn struct {
	of       *Batcher
	priority int
	due      time.Time // when it should begin
	from     time.Time // when it may
}

// look is the turn of the next batch. It is not ok while nothing can begin.
func (b *Batcher) look(now time.Time) (t turn, ok bool) {
	select {
	case <-b.over:
		return t, false
	default:
	}
	head, ok := b.cfg.Queue.First(now, 1)
	if !ok || b.cfg.Room != nil && !b.cfg.Room() {
		return t, false
	}
	t = turn{of: b, priority: head.Priority, due: earlier(now.Add(head.Left), head.Arrived.Add(patience)), from: b.rest(now, head.Left)}
	if t.from.IsZero() {
		t.from = b.filled(now, head.Left)
	}
	return t, true
}

// filled says until when the batch may wait to fill: at most for the delay, counted from the earliest arrival in
// it. A container that was idle for longer than the delay starts at once: then nothing else is on its
// way. The delay takes at most half of the time that the first item can spare, so that it makes
// none late.
func (b *Batcher) filled(now time.Time, left time.Duration) time.Time {
	size := b.Size()
	if b.cfg.Delay == 0 || b.cfg.Queue.Len() >= size {
		return now
	}
	if b.fill.IsZero() {
		if now.Sub(b.ended) > b.cfg.Delay {
			return now
		}
		head, _ := b.cfg.Queue.First(now, size)
		b.fill = head.Arrived.Add(b.cfg.Delay)
	}
	b.fill = earlier(b.fill, now.Add((left-b.cfg.Profile.Line().Within(float64(size)))/2))
	return b.fill
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// rest says until when this container leaves the queue to others; zero: it does not. It rests for as long as the
// estimate is trusted while it is too slow for the first item, which has so much left, and another one is much
// faster: it would only drop what that one can still do.
func (b *Batcher) rest(now time.Time, left time.Duration) time.Time {
	if until := time.Unix(0, b.resting.Load()); now.Before(until) {
		return until
	}
	alone := b.Alone(now)
	if b.cfg.Fastest == nil || alone <= left || alone/profileOutlier <= b.cfg.Fastest(now) {
		return time.Time{}
	}
	until := b.cfg.Profile.Line().at.Add(profileFresh)
	b.resting.Store(until.UnixNano())
	return until
}

// Alone is what one input is thought to take; 0 when the estimate is old.
func (b *Batcher) Alone(now time.Time) time.Duration { return b.trusted(now).Took(1) }

// trusted is the estimate, unless it is old: then it must not keep a batch from
// being tried.
func (b *Batcher) trusted(now time.Time) *Line {
	line := b.cfg.Profile.Line()
	if line.Fresh(now) {
		return line
	}
	return &Line{Line: queue.Line{Mean: line.Mean}}
}

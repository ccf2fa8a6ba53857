package batch

import (
	"cmp"
	"fmt"
	"math"
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

// run is a batch on its way through the container, or one of the queries that run side by side.
type run struct {
	batcher *Batcher
	ended   func(error) // end, kept because taking its value allocates
	batch   queue.Batch // its slices are reused
	load    queue.Load
	start   time.Time
	target  time.Duration // that it should take at most
	full    bool          // no more could have gone in
	stallAt time.Time     // when it counts as hung

	giveUp    func()      // ends it ahead of its time; nil: it is being sent. Guarded by the container
	cancelled bool        // it is to end as soon as it is sent. Guarded by the container
	overdue   *time.Timer // of a query that runs beside others, in place of stallAt
}

func newRun(b *Batcher) *run {
	r := &run{batcher: b}
	r.ended = r.end
	return r
}

// form makes the next run of what waits, of which a priority is the highest. It takes the place of one even if all that waited has to be refused.
func (b *Batcher) form(now time.Time, priority int) *run {
	r, size := b.run, int(b.size.Load())
	if b.cfg.Ran != nil {
		r, size = newRun(b), 1
	}
	shared, known := b.share(size), b.cfg.Profile.Line()
	r.giveUp = nil
	b.running++
	b.fill = time.Time{}
	c := queue.Capacity{
		Line: b.trusted(now).Line, Size: size, Most: min(mostSmall*size, cmp.Or(b.cfg.Most, Unlimited)), First: known.Enough(size, 0.97), Shared: shared,
		Others: b.Before(priority, time.Time{}),
	}
	if _, fixed := b.cfg.Sizer.(Fixed); fixed {
		c.Size, c.Most = mostSmall*size, size
	}
	b.cfg.Queue.Form(&r.batch, now, c)
	r.load = queue.LoadOf(r.batch.Items)
	if len(r.batch.Items) == 0 {
		return r
	}
	var last time.Time
	r.start = now
	r.target, last = goals(r.batch.Items, now, known.Took(1))
	r.stallAt = last.Add(b.stall(known.Amount(r.load)))
	if b.cfg.Ran != nil {
		b.join(r)
		return r
	}
	amount, with := known.Amount(r.load), r.batch.With
	r.full = with > float64(size) || with > float64(shared) && known.Took(float64(size)) < comfortable(r.target) // all that the line lets expect
	b.container.free.Store(now.Add(known.Took(amount)).UnixNano())
	b.container.setAlarm(r.stallAt)
	return r
}

// mostSmall is how many times the size of a batch in items goes in when they are small.
const mostSmall = 4

// triesAfter is how many batches have one size for several apps, before a larger one is tried.
const triesAfter = 64

// share sizes batches for several apps: as few items as cost little, since each app waits for the batches of the others. It grows
// slowly, since the estimate forgets what larger batches took, and then has them tried.
func (b *Batcher) share(size int) int {
	enough, shared := size, int(b.shared.Load())
	if b.since++; b.cfg.Queue.Shared() {
		if enough = min(size, b.cfg.Profile.Line().Enough(size, 0.9)); enough > shared && b.since < triesAfter {
			return min(size, shared)
		}
		enough = min(enough, 2*shared)
	}
	if enough != shared {
		b.since = 0
		b.shared.Store(int64(enough))
	}
	return enough
}

// begin refuses what cannot make its deadline, and sends the rest.
func (r *run) begin() {
	b := r.batcher
	r.refuse()
	if len(r.batch.Items) == 0 {
		b.container.done(r, nil)
		return
	}
	for _, it := range r.batch.Items {
		b.cfg.Observer.Waited(r.start.Sub(it.Arrived))
	}
	giveUp := b.cfg.Runner.Begin(b.pad.fill(r.batch.Items), r.ended)
	b.container.mu.Lock()
	r.giveUp = giveUp
	cancelled := r.cancelled
	b.container.mu.Unlock()
	if cancelled {
		giveUp()
	}
}

// rounded is how exactly refusals say what was expected.
const rounded = 100 * time.Microsecond

func (r *run) refuse() {
	for _, it := range r.batch.Expired {
		r.batcher.cfg.Observer.Dropped(rpc.StatusExpired)
		it.Refuse(rpc.StatusExpired, "the deadline passed in the queue")
	}
	now, line := time.Now(), r.batcher.cfg.Profile.Line()
	for _, it := range r.batch.Late {
		r.batcher.cfg.Observer.Dropped(rpc.StatusLate)
		alone, left := line.Took(line.Amount(it.Load())).Round(rounded), it.Left(now).Round(rounded)
		it.Refuse(rpc.StatusLate, fmt.Sprintf("the deadline can no longer be met\nit would take %v by itself, and has %v left", alone, left))
	}
}

// end takes in that all is answered, or with an error that the container is lost.
func (r *run) end(err error) {
	b, now := r.batcher, time.Now()
	if err != nil {
		abandon(r.batch.Items, err)
	}
	switch n, took := len(r.batch.Items), now.Sub(r.start); {
	case r.overdue != nil:
		b.leave(r, took)
	case err == nil:
		b.cfg.Observer.Batch(n, took)
		b.learn(r, r.load, took, now)
	}
	b.container.done(r, err)
}

func abandon(items []*queue.Item, why error) {
	for _, it := range items {
		it.Refuse(rpc.StatusContainer, why.Error())
	}
}

// learn takes in that so much took so long. What began before the size last changed says nothing about the present
// one: of queries side by side each would change it once more.
func (b *Batcher) learn(r *run, of queue.Load, took time.Duration, now time.Time) {
	if !b.cfg.Profile.Observe(of, took, now) || r.start.Before(b.changed) {
		return
	}
	amount := b.cfg.Profile.Line().Amount(of)
	b.cfg.Sizer.Observe(max(1, int(math.Round(amount))), took, r.target, r.full)
	if size := int64(b.cfg.Sizer.Size()); b.size.Swap(size) != size {
		b.changed = now
	}
}

// stall is how long a batch of so many usual inputs may run beyond its last deadline.
func (b *Batcher) stall(amount float64) time.Duration {
	took := b.cfg.Profile.Line().Took(amount)
	switch {
	case b.cfg.Stall > 0:
		return b.cfg.Stall
	case took == 0:
		return firstStall
	}
	return max(leastStall, stallFactor*took)
}

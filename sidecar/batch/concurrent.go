package batch

import (
	"errors"
	"sync"
	"time"

	"github.com/topsail-serving/topsail/rpc"
	"github.com/topsail-serving/topsail/sidecar/queue"
)

// ErrCancelled is the cause of the end of a query that is not wanted any more.
var ErrCancelled = errors.New("cancelled by the gateway")

// beside are the queries that a container runs side by side. Its lock is not the container's, since admission looks at it
// with the queue locked, which the container does with its own.
type beside struct {
	mu      sync.Mutex // guards the following
	running map[*run]struct{}
	held    time.Duration // how long a query keeps its place, a moving mean
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

// join puts a query beside those that run. The container is locked.
func (b *Batcher) join(r *run) {
	it := r.batch.Items[0]
	b.beside.mu.Lock()
	b.beside.running[r] = struct{}{}
	n := len(b.beside.running)
	b.beside.mu.Unlock()
	r.full = n >= b.Size()
	r.overdue = time.AfterFunc(time.Until(r.stallAt), r.cancel)
	it.First = func(status rpc.Status) {
		if it.Ask.Bits&rpc.AskParts != 0 {
			r.overdue.Stop() // from here on the gateway decides what is too late
		}
		if status == rpc.StatusOK {
			b.firstPart(r, n, time.Now())
		}
	}
}

// firstPart takes in that the first part of an answer came while n queries ran.
func (b *Batcher) firstPart(r *run, n int, now time.Time) {
	b.container.mu.Lock()
	defer b.container.mu.Unlock()
	b.learn(r, queue.Load{N: n}, now.Sub(r.start), now)
	go b.container.next() // more may run by now; what calls this is in the middle of an answer
}

// leave takes a query, which took so long, from those that run.
func (b *Batcher) leave(r *run, took time.Duration) {
	r.overdue.Stop()
	b.cfg.Ran(took, b.Size())
	b.beside.mu.Lock()
	defer b.beside.mu.Unlock()
	delete(b.beside.running, r)
	if b.beside.held == 0 {
		b.beside.held = took
	}
	b.beside.held = time.Duration(heldDecay*float64(b.beside.held) + (1-heldDecay)*float64(took))
}

// cancel ends a query, once it has been sent.
func (r *run) cancel() {
	c := r.batcher.container
	c.mu.Lock()
	r.cancelled = true
	giveUp := r.giveUp
	c.mu.Unlock()
	if giveUp != nil {
		giveUp()
	}
}

// Cancel ends the queries that run and match. Only a container that runs them side by side does
// so.
func (b *Batcher) Cancel(match func(*queue.Item) bool) {
	if b.cfg.Ran == nil {
		return
	}
	var matching []*run
	b.beside.mu.Lock()
	for r := range b.beside.running {
		if match(r.batch.Items[0]) {
			matching = append(matching, r)
		}
	}
	b.beside.mu.Unlock()
	for _, r := range matching {
		r.cancel()
	}
}

// besideBusy says whether no place is free, and when one may be.
func (b *Batcher) besideBusy() (left time.Duration, busy bool) {
	b.beside.mu.Lock()
	defer b.beside.mu.Unlock()
	size := b.Size()
	if len(b.beside.running) < size {
		return 0, false
	}
	return b.beside.held / time.Duration(size), true
}

// Concurrent says whether the container runs queries side by side.
func (b *Batcher) Concurrent() bool { return b.cfg.Ran != nil }

// Running is how many queries run side by side; 0 of a container that takes batches.
func (b *Batcher) Running() int {
	b.beside.mu.Lock()
	defer b.beside.mu.Unlock()
	return len(b.beside.running)
}

package predict

import (
	"sync"
	"sync/atomic"
	"time"

	"topsail/gateway/cache"
	"topsail/gateway/route"
	"topsail/gateway/usage"
	"topsail/serving"
)

const (
	// firstFew is how many held questions go to each new replica at first. Each
	// output that comes lets two more go, so that their number doubles.
	firstFew = 4
	// refusedPause is how long nothing is sent to an only replica that has just
	// refused, unless it says earlier how it is doing.
	refusedPause = 10 * time.Millisecond
	// orphanAfter is how long after its time a question is given up that was held
	// again when nobody waited for it any more.
	orphanAfter = time.Second
)

// noReplica is how a question ends for which no replica came in time. It is a value
// of its own: who finds a question ended so and has time left asks again.
var noReplica = &serving.Failure{Cause: serving.NoReplica}

// superseded is how a question ends that was held when the version became another one:
// who has time left asks that.
var superseded = &serving.Failure{Cause: serving.NoReplica}

// coldQueue is one definition of a model version as its replicas come and go. While it is cold,
// questions are held in it, and go out by their deadlines at the pace of the replicas.
type coldQueue struct {
	serving.Definition
	table *route.Table
	room  *room
	wakes chan<- *coldQueue // those that want a replica

	latencyEstimate latencyEstimate // of its answers
	quota           quota           // of asking it, while it is short of capacity
	usage           *usage.Counter  // what came of the questions to the version; apart from what is only read
	stages          *usage.Stages   // the same of its stages, if it has some
	hostedModel     hostedModel

	// cold is true while questions are held, or replicas have not answered those that
	// were. It is all that the path of a query looks at while nothing is amiss.
	cold atomic.Bool

	mu      sync.Mutex // guards the following; a call's own lock may be held already
	queued  deadlines
	flights map[*cache.Flight]*call // of held
	sent    int                     // of those that were held, in flight
	outputs int                     // since a replica came, while cold
	pause   time.Time               // nothing is sent before
	asked   bool                    // since the last wake
	waking  bool                    // somebody sees to it
	failed  bool                    // the last wake did
	retired bool                    // the version is another one by now, or gone
}

// group is the ready replicas.
func (b *coldQueue) group() *route.Group { return b.table.Group(b.Definition) }

// hold keeps a question until there is a replica, or ends it if there will be none, or
// says that there is no room. When its time is up it ends with why. refused says that the table has a replica, but it
// is the one that refused the question. c.mu is held.
func (b *coldQueue) hold(c *call, why *serving.Failure, refused bool) bool {
	b.mu.Lock()
	if b.retired {
		b.mu.Unlock()
		c.flight.Land(nil, superseded)
		return true
	}
	defer b.mu.Unlock()
	if !b.room.enter(&b.queued, c.size()) {
		return false
	}
	if refused {
		b.pause = time.Now().Add(refusedPause)
		time.AfterFunc(refusedPause, b.release)
	}
	if b.flights == nil {
		b.flights = map[*cache.Flight]*call{}
	}
	c.until, c.why = c.respond, why
	b.queued.push(c)
	b.flights[c.flight] = c
	b.cold.Store(true)
	b.wake()
	return true
}

// join lets a held question live on for another query that waits for it.
func (b *coldQueue) join(f *cache.Flight, until time.Time) {
	if !b.cold.Load() {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if c := b.flights[f]; c != nil && c.until.Before(until) {
		b.queued.postpone(c, until)
	}
}

// leave is for a query that waits no longer for what lands f. For a held question it
// says why there was no answer, and drops the question unless somebody waits for it
// beyond the given time. For others it returns nil.
func (b *coldQueue) leave(f *cache.Flight, at time.Time) *serving.Failure {
	if !b.cold.Load() {
		return nil
	}
	b.mu.Lock()
	c := b.flights[f]
	if c == nil {
		b.mu.Unlock()
		return nil
	}
	why, last := c.why, !c.until.After(at)
	if last {
		b.drop(c)
	}
	b.mu.Unlock()
	if last {
		f.Land(nil, noReplica)
	}
	return why
}

// drop forgets a held question. b.mu is held.
func (b *coldQueue) drop(c *call) {
	b.queued.remove(c)
	delete(b.flights, c.flight)
	b.room.leave(c.size())
}

// replicasChanged is called when the table says that they may have.
func (b *coldQueue) replicasChanged() {
	if why := b.refused(); why != nil {
		b.giveUp(why)
		return
	}
	if b.passedOn() {
		b.giveUp(superseded)
		return
	}
	b.mu.Lock()
	b.pause = time.Time{}
	if len(b.queued.calls) > 0 {
		b.wake()
	}
	b.mu.Unlock()
	b.release()
}

// release sends as much as goes to the replicas now. No lock of a call may be held.
func (b *coldQueue) release() {
	for c, late := b.next(time.Now()); c != nil; c, late = b.next(time.Now()) {
		if late {
			c.flight.Land(nil, noReplica)
		} else {
			c.resume()
		}
	}
}

// next takes out the question that is to be sent now, if any, or one whose time is up.
func (b *coldQueue) next(now time.Time) (c *call, late bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	replicas := b.group().Len()
	if replicas == 0 {
		b.outputs = 0 // those that come will be new
		return nil, false
	}
	b.asked = false // who asked has one
	b.hostedModel.loaded()
	if len(b.queued.calls) == 0 {
		if b.sent == 0 || b.outputs > 0 {
			b.outputs, b.queued, b.flights = 0, deadlines{}, nil
			b.cold.Store(false)
		}
		return nil, false
	}
	c = b.queued.calls[0]
	late = !now.Before(c.until)
	if !late {
		if now.Before(b.pause) || b.sent >= replicas*firstFew+b.outputs {
			return nil, false
		}
		b.sent++
	}
	b.drop(c)
	return c, late
}

// answered counts an answer, if it was an output, and what is no longer in flight.
func (b *coldQueue) answered(output, wasHeld bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if output {
		b.outputs++
	}
	if wasHeld {
		b.sent--
	}
}

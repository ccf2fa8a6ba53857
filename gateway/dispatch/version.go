package dispatch

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/topsail-serving/topsail/gateway/cache"
	"github.com/topsail-serving/topsail/gateway/route"
	"github.com/topsail-serving/topsail/gateway/usage"
	"github.com/topsail-serving/topsail/serving"
)

const (
	// firstFew is how many queued questions go to each new replica at first. Each output releases
	// two more, so that their number doubles.
	firstFew = 4
	// refusedPause is how long nothing is sent to an only replica that has just
	// refused, unless it says earlier how it is doing.
	refusedPause = 10 * time.Millisecond
	// replaceWithin is how long queries wait for the replicas of a version that is redefined.
	replaceWithin = 30 * time.Second
	// orphanAfter is how long after its time a question is given up that was held
	// again when no query waited for it any more.
	orphanAfter = time.Second
)

// NoReplica is how a question ends for which no replica came in time. It is a value of its own: a
// caller with time left then retries.
var NoReplica = &serving.Failure{Cause: serving.NoReplica}

// Superseded is how a question ends that was held when the version became another one: a caller
// with time left asks that one.
var Superseded = &serving.Failure{Cause: serving.NoReplica}

// Version is one definition of a model version as its replicas come and go. While it is cold,
// questions are held in it, and go out, by the shares of the apps and by deadline, as fast as the replicas answer.
type Version struct {
	serving.Definition
	d *Dispatcher

	latency     latency        // of its answers
	Quota       Quota          // of asking it, while it is short of capacity
	Usage       *usage.Counter // what came of the questions to the version; apart from what is only read
	Stages      *usage.Stages  // the same of its stages, if it has some
	hostedModel hostedModel
	owners      route.Owners    // of affinities
	prefixes    *route.Prefixes // of inputs that replicas were asked about, of apps that route by them
	replaced    time.Time       // until when it is replaced; zero: it takes no other's place

	// cold is true while questions are held, or replicas have not answered those that
	// were. It is all that the path of a query looks at while nothing is amiss.
	cold atomic.Bool

	mu      sync.Mutex // guards the following; a call's own lock may be held already
	queued  held
	flights map[*cache.Flight]*Call // of held
	sent    int                     // of those that were held, in flight
	outputs int                     // since a replica came, while cold
	pause   time.Time               // nothing is sent before
	asked   bool                    // since the last wake
	waking  bool                    // keepAwake has it
	failed  bool                    // the last wake did
	retired bool                    // the version was redefined or deleted
}

// Group is the ready replicas.
func (v *Version) Group() *route.Group { return v.d.table.Group(v.Definition) }

// hold keeps a question until there is a replica, or ends it if there will be none, or
// says that there is no room. When its time is up it ends with why. refused says that the table has a replica, but it
// is the one that refused the question. c.mu is held.
func (v *Version) hold(c *Call, why *serving.Failure, refused bool) bool {
	v.mu.Lock()
	if v.retired {
		v.mu.Unlock()
		c.Flight.Land(nil, Superseded)
		return true
	}
	var displaced []*Call
	defer func() {
		v.mu.Unlock()
		for _, other := range displaced {
			other.Flight.Land(nil, &serving.Failure{Cause: serving.NoReplica})
		}
	}()
	for !v.d.room.enter(v.d.Limits, &v.queued, c.size()) {
		other := v.queued.displaced(c)
		if other == nil {
			return false
		}
		v.drop(other)
		displaced = append(displaced, other)
	}
	if refused {
		v.pause = time.Now().Add(refusedPause)
		time.AfterFunc(refusedPause, v.release)
	}
	if v.flights == nil {
		v.flights = map[*cache.Flight]*Call{}
	}
	c.until, c.why = c.Respond, why
	v.queued.push(c)
	v.flights[c.Flight] = c
	v.cold.Store(true)
	v.wake()
	return true
}

// Join keeps a queued question for another query that waits for it.
func (v *Version) Join(f *cache.Flight, until time.Time) {
	if !v.cold.Load() {
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if c := v.flights[f]; c != nil && c.until.Before(until) {
		v.queued.postpone(c, until)
	}
}

// Leave is for a query that waits no longer for what lands f. For a held question it
// says why there was no answer, and drops the question unless a query waits for it
// beyond the given time. For others it returns nil.
func (v *Version) Leave(f *cache.Flight, at time.Time) *serving.Failure {
	if !v.cold.Load() {
		return nil
	}
	v.mu.Lock()
	c := v.flights[f]
	if c == nil {
		v.mu.Unlock()
		return nil
	}
	why, last := c.why, !c.until.After(at)
	if last {
		v.drop(c)
	}
	v.mu.Unlock()
	if last {
		f.Land(nil, NoReplica)
	}
	return why
}

// drop forgets a held question. v.mu is held.
func (v *Version) drop(c *Call) {
	v.queued.remove(c)
	delete(v.flights, c.Flight)
	v.d.room.leave(c.size())
}

// replicasChanged is called when the table says that they may have.
func (v *Version) replicasChanged() {
	if why := v.refused(); why != nil {
		v.giveUp(why)
		return
	}
	if v.passedOn() {
		v.giveUp(Superseded)
		return
	}
	v.mu.Lock()
	v.pause = time.Time{}
	if v.queued.calls > 0 {
		v.wake()
	}
	v.mu.Unlock()
	v.release()
}

// release sends as much as goes to the replicas now. No lock of a call may be held.
func (v *Version) release() {
	for c, late := v.next(time.Now()); c != nil; c, late = v.next(time.Now()) {
		if late {
			c.Flight.Land(nil, NoReplica)
		} else {
			c.resume()
		}
	}
}

// releaseCold is release while questions are held.
func (v *Version) releaseCold() {
	if v.cold.Load() {
		v.release()
	}
}

// next takes out the question that is to be sent now, if any, or one whose time is up.
func (v *Version) next(now time.Time) (c *Call, late bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	replicas := v.Group().Len()
	if replicas == 0 {
		v.outputs = 0 // those that come will be new
		return nil, false
	}
	v.asked = false // the caller has one
	v.hostedModel.loaded()
	app := v.queued.first()
	if app == nil {
		if v.sent == 0 || v.outputs > 0 {
			v.outputs, v.queued, v.flights = 0, held{}, nil
			v.cold.Store(false)
		}
		return nil, false
	}
	c = app.calls[0]
	late = !now.Before(c.until)
	if !late {
		if now.Before(v.pause) || v.sent >= replicas*firstFew+v.outputs {
			return nil, false
		}
		v.sent++
		v.queued.charge(c)
	}
	v.drop(c)
	return c, late
}

// answered counts an answer, if it was an output, and what is no longer in flight.
func (v *Version) answered(output, wasHeld bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if output {
		v.outputs++
	}
	if wasHeld {
		v.sent--
	}
}

// Cold says whether questions are held, or replicas have not answered those that were.
func (v *Version) Cold() bool { return v.cold.Load() }

// Released is how many of the questions that were held are with a replica.
func (v *Version) Released() int {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.sent
}

// Latency is the median and the 95th percentile of what answers of the version take; 0: not known.
func (v *Version) Latency() (median, p95 time.Duration) { return v.latency.times() }

// Short says whether the version had better not be asked by a query that can do without: an answer would hardly come in
// time, or take the place of a query that cannot.
func (v *Version) Short(class serving.Class, respond, now time.Time) bool {
	budget := respond.Sub(now)
	if median, _ := v.latency.times(); median > budget && !v.latency.probe(now) {
		return true
	}
	return !v.Quota.Allow(class, v.Group().Wait(class.Priority, now), budget, now)
}

package dispatch

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/topsail-serving/topsail/gateway/cache"
	"github.com/topsail-serving/topsail/gateway/route"
	"github.com/topsail-serving/topsail/rpc"
	"github.com/topsail-serving/topsail/serving"
)

// Call gets the answer for a flight: from one replica, or from a second when the
// first fails or is silent for too long. Where there is no replica it is held until
// there is one. It ends the flight exactly once, and lives on when no query waits for
// it, except while it is held.
type Call struct {
	Flight   *cache.Flight // that it lands
	Input    serving.Input
	User     string
	Class    serving.Class // of the query that asks first
	Context  string
	Affinity serving.Affinity
	Prefix   bool           // a replica is preferred that was asked about an input that begins alike
	Deadline time.Time      // when a replica must have answered
	Respond  time.Time      // when the query that asks is answered; it may take an output that comes later
	Extra    *Budget        // of asking a second replica
	Late     *atomic.Uint64 // counts an output that comes after the deadline
	Timed    bool           // the query records where its time went
	Parts    bool           // the flight takes the answer in parts

	version *Version

	mu         sync.Mutex // guards the following; held while asking, so that an answer finds them set
	asked      [2]try
	tries      int8          // questions sent that count, at most two; held again, it starts over
	open       int8          // of those, not yet answered
	refusals   int8          // that did not count
	sent       bool          // at some time
	queuedOnce bool          // after it was sent; there is no second time
	released   bool          // by the cold-start queue, and in flight since
	abandoned  bool          // up by its query: no second replica is asked
	speaker    *route.Target // whose parts the flight has; nil: none have come
	last       *Heard        // nil: the query does not want to know where its time went

	// For the cold-start queue while the call is held, and guarded by it.
	until time.Time        // when no query waits for it any more
	why   *serving.Failure // how it ends then
	place int              // in the heap
}

// try is one replica that was asked.
type try struct {
	target *route.Target
	number uint64 // of its question there; 0: it is cancelled
	at     time.Time
}

// Ask asks the first replica, and says when to hedge (zero: no other replica). A call is asked once.
func (v *Version) Ask(c *Call, now time.Time) (hedgeAt time.Time) {
	c.version = v
	if c.Timed {
		c.last = &Heard{}
	}
	group := v.Group()
	if c.neverServed(group) {
		return time.Time{}
	}
	c.mu.Lock()
	if (group.Len() == 0 || v.cold.Load()) && v.hold(c, NoReplica, false) {
		c.mu.Unlock()
		v.release() // it may be its turn already
		return time.Time{}
	}
	defer c.mu.Unlock()
	target := c.pick(group, nil, now)
	if target == nil { // and no room to wait for one
		c.Flight.Land(nil, &serving.Failure{Cause: serving.NoReplica})
		return time.Time{}
	}
	c.send(target, now)
	if group.Len() > 1 {
		return now.Add(c.Deadline.Sub(now) / 2)
	}
	return time.Time{}
}

// neverServed counts a question to what has no replica, or is held by a host, and ends one that no replica will
// ever answer.
func (c *Call) neverServed(group *route.Group) bool {
	hosted := c.version.Hosted()
	if hosted {
		c.version.d.metrics.hosted(group.Len() > 0)
	}
	if group.Len() > 0 {
		return false
	}
	if !hosted {
		c.Flight.Unserved()
	}
	why := c.version.refused()
	return why != nil && c.Flight.Land(nil, why)
}

// pick picks the replica to ask, other than not.
func (c *Call) pick(group *route.Group, not *route.Target, now time.Time) *route.Target {
	switch {
	case c.Affinity.Key != "":
		return c.version.owners.Pick(group, c.Affinity, c.Respond.Sub(now), not, now)
	case c.Prefix && group.Len() > 1:
		return c.version.prefixes.Pick(group, c.Input.Data, not, now)
	}
	return group.Pick(c.Class.Priority, not, now)
}

// send asks one replica. c.mu is held.
func (c *Call) send(target *route.Target, now time.Time) {
	if !c.sent {
		c.Extra.earn()
		c.sent = true
	}
	ask := rpc.Ask{
		Budget: max(c.Deadline.Sub(now), 0), User: []byte(c.User), Context: []byte(c.Context),
		App: []byte(c.Class.App), Weight: float32(c.Class.Weight), MinShare: float32(c.Class.MinShare), Priority: uint8(c.Class.Priority),
	}
	if c.Parts {
		ask.Bits = rpc.AskParts
	}
	q := &c.asked[c.tries]
	c.tries++
	c.open++
	number, failure := target.Ask(c, &ask, c.Input, now)
	*q = try{target, number, now}
	if failure != nil {
		c.open--
		c.account(false)
		c.failed(target, failure, now)
	}
}

// Answered implements route.Receiver.
func (c *Call) Answered(from *route.Target, a *rpc.Answer, service time.Duration, now time.Time) {
	defer c.version.releaseCold()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.last != nil {
		c.hear(from, service, now)
	}
	c.open--
	c.account(a.Status == rpc.StatusOK)
	if c.speaker != nil {
		c.spoken(from, a, now)
		return
	}
	c.measure(from, a.Status, now)
	out, failure := outcome(a)
	if failure != nil {
		if c.failed(from, failure, now) {
			c.version.Stages.Ended(a.Stages, failure, now)
		}
		return
	}
	if c.Flight.Land(out, nil) {
		c.version.Stages.Ended(a.Stages, nil, now)
		if now.After(c.Deadline) {
			c.Late.Add(1)
		}
		c.cancelOthers(from)
	}
}

// Part implements route.Receiver. The replica whose part comes first is the one that answers.
func (c *Call) Part(from *route.Target, a *rpc.Answer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.Parts || c.speaker != nil && c.speaker != from || a.Status != rpc.StatusOK {
		return
	}
	out, err := a.Output()
	if err != nil {
		return // the whole fails as well
	}
	if c.speaker == nil {
		c.speaker = from
		c.measure(from, a.Status, time.Now())
		c.cancelOthers(from)
	}
	c.Flight.Part(out)
}

// spoken ends an answer that came in parts. No other replica can go on with it.
func (c *Call) spoken(from *route.Target, a *rpc.Answer, now time.Time) {
	if from != c.speaker {
		return
	}
	var out *serving.Output
	var failure *serving.Failure
	if a.Status == rpc.StatusOK && a.Empty() {
		out = &serving.Output{JSON: []byte("null"), Uncollected: true}
	} else {
		out, failure = outcome(a)
	}
	if c.Flight.Land(out, failure) {
		c.version.Stages.Ended(a.Stages, failure, now)
	}
}

// outcome is what an answer says: an output, or why there is none.
func outcome(a *rpc.Answer) (*serving.Output, *serving.Failure) {
	if a.Status != rpc.StatusOK {
		return nil, &serving.Failure{Cause: a.Status.Cause(), Message: string(a.Message)}
	}
	out, err := a.Output()
	if err != nil {
		return nil, &serving.Failure{Cause: blame(err), Message: err.Error()}
	}
	return out, nil
}

// measure learns from an answer how fast the version is, and whether it is short of
// capacity. c.mu is held.
func (c *Call) measure(from *route.Target, status rpc.Status, now time.Time) {
	switch status {
	case rpc.StatusOK:
		for _, q := range c.asked[:c.tries] {
			if q.target == from {
				c.version.latency.note(now.Sub(q.at))
			}
		}
	case rpc.StatusFull:
		c.version.Quota.Refused(now)
		c.version.spread(now)
	case rpc.StatusLate:
		if _, p95 := c.version.latency.times(); c.Deadline.Sub(now) > p95 { // else its time was short, not capacity
			c.version.Quota.Refused(now)
			c.version.spread(now)
		}
	}
}

// blame separates bytes that violate the protocol from an output that no client can get.
func blame(err error) serving.Cause {
	if _, broken := errors.AsType[*rpc.ProtocolError](err); broken {
		return serving.ContainerError
	}
	return serving.ModelError
}

// failed goes to a second replica if that may help, or waits for one, or ends the
// flight when no answer can come any more, and says whether it did the last. c.mu is
// held.
func (c *Call) failed(from *route.Target, why *serving.Failure, now time.Time) (ended bool) {
	switch {
	case why.Cause.FromModel():
		if ended = c.Flight.Land(nil, why); ended {
			c.cancelOthers(from)
		}
	case !c.abandoned && now.Before(c.Deadline) && c.again(from, why.Cause, now):
	case c.open > 0:
	case !c.abandoned && now.Before(c.Deadline) && c.wait(from, why, now):
	default:
		ended = c.Flight.Land(nil, why)
	}
	return ended
}

// maxRefusals is how many refusals of a question by replicas that are stopping do not
// count as tries: several can stop at once, and be asked before their word is there.
const maxRefusals = 4

// again asks another replica, once, within the budget of extra calls. A replica
// that is stopping costs no budget: its refusals are quick and expected.
func (c *Call) again(not *route.Target, cause serving.Cause, now time.Time) bool {
	if cause == serving.Draining && c.open == 0 && c.refusals < maxRefusals {
		c.refusals, c.tries = c.refusals+1, 0 // as if it had not been sent
	}
	if int(c.tries) >= len(c.asked) || cause == serving.MissedSLO {
		return false
	}
	target := c.pick(c.version.Group(), not, now)
	if target == nil {
		return false
	}
	if cause != serving.Draining && !c.Extra.Spend() {
		return false
	}
	c.version.d.metrics.extra.Inc()
	c.send(target, now)
	return true
}

// Hedge asks a second replica because the first has been silent for half of the
// time there was.
func (c *Call) Hedge(now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open == 0 || c.tries != 1 || c.speaker != nil {
		return
	}
	first := c.asked[0]
	if now.Sub(first.at) >= c.Deadline.Sub(first.at)/2 { // else a policy hedges early, which is not a fault
		first.target.Silent(first.at, now)
	}
	c.again(first.target, serving.OK, now)
}

// GiveUp takes back what is in flight: it is not needed any more. What comes all the
// same is cached.
func (c *Call) GiveUp() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.abandoned = true
	c.cancelOthers(nil)
}

// cancelOthers cancels the call at the replica that lost the race. c.mu is held.
func (c *Call) cancelOthers(winner *route.Target) {
	if c.open == 0 {
		return
	}
	for i := range c.asked[:c.tries] {
		if q := &c.asked[i]; q.target != winner && q.number != 0 {
			q.target.Cancel(q.number)
			q.number = 0
		}
	}
}

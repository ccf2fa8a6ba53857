package dispatch

import (
	"time"

	"github.com/topsail-serving/topsail/gateway/route"
	"github.com/topsail-serving/topsail/serving"
)

// wait holds a question whose only replica has gone or is about to, until there is
// one again. What may have killed its replica is held within the budget of extra
// calls.
func (c *Call) wait(gone *route.Target, why *serving.Failure, now time.Time) bool {
	group := c.version.Group()
	if _, _, landed := c.Flight.Result(); landed || c.queuedOnce || group.Pick(0, gone, now) != nil {
		return false
	}
	switch why.Cause {
	case serving.Draining, serving.NoReplica:
	case serving.ContainerError:
		if group.Len() > 0 || !c.Extra.Spend() {
			return false
		}
	default:
		return false
	}
	c.queuedOnce = true
	time.AfterFunc(c.Deadline.Sub(now)+orphanAfter, func() { _ = c.version.Leave(c.Flight, time.Now()) })
	return c.version.hold(c, why, group.Len() > 0)
}

// resume asks a replica after the question was held. It has the time of the query that
// waits longest.
func (c *Call) resume() {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	c.Deadline, c.Respond, c.released, c.tries = c.until, c.until, true, 0
	group := c.version.Group()
	target := group.Pick(c.Class.Priority, nil, now)
	if target == nil { // it has gone again
		c.account(false)
		if !c.version.hold(c, c.why, false) {
			c.Flight.Land(nil, c.why)
		}
		return
	}
	if c.sent {
		c.version.d.metrics.extra.Inc()
	}
	c.send(target, now)
	if group.Len() > 1 {
		time.AfterFunc(c.Deadline.Sub(now)/2, func() { c.Hedge(time.Now()) })
	}
}

// account reports an answer to the cold-start queue, if it counts it. c.mu is held.
func (c *Call) account(output bool) {
	if c.released || c.version.cold.Load() {
		c.version.answered(output, c.released)
		c.released = false
	}
}

// Abandon tells the cold-start queue that an answer is late and no longer expected.
func (c *Call) Abandon() {
	c.mu.Lock()
	released := c.released
	if released {
		c.account(false)
	}
	c.mu.Unlock()
	if released {
		c.version.release()
	}
}

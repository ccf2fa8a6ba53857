package predict

import (
	"time"

	"topsail/gateway/route"
	"topsail/serving"
)

// wait holds a question whose only replica has gone or is about to, until there is
// one again. What may have killed its replica is held within the budget of extra
// calls.
func (c *call) wait(gone *route.Target, why *serving.Failure, now time.Time) bool {
	group := c.coldQueue.group()
	if _, _, landed := c.flight.Result(); landed || c.queuedOnce || group.Pick(gone, now) != nil {
		return false
	}
	switch why.Cause {
	case serving.Draining, serving.NoReplica:
	case serving.ContainerError:
		if group.Len() > 0 || !c.extra.spend() {
			return false
		}
	default:
		return false
	}
	c.queuedOnce = true
	time.AfterFunc(c.deadline.Sub(now)+orphanAfter, func() { _ = c.coldQueue.leave(c.flight, time.Now()) })
	return c.coldQueue.hold(c, why, group.Len() > 0)
}

// resume asks a replica after the question was held. It has the time of whoever
// waits longest.
func (c *call) resume() {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	c.deadline, c.respond, c.released, c.tries = c.until, c.until, true, 0
	group := c.coldQueue.group()
	target := group.Pick(nil, now)
	if target == nil { // it has gone again
		c.account(false)
		if !c.coldQueue.hold(c, c.why, false) {
			c.flight.Land(nil, c.why)
		}
		return
	}
	if c.sent {
		c.p.metrics.extra.Inc()
	}
	c.send(target, now)
	if group.Len() > 1 {
		time.AfterFunc(c.deadline.Sub(now)/2, func() { c.hedge(time.Now()) })
	}
}

// account tells the cold-start queue of an answer, if it has to know. c.mu is held.
func (c *call) account(output bool) {
	if c.released || c.coldQueue.cold.Load() {
		c.coldQueue.answered(output, c.released)
		c.released = false
	}
}

// abandon tells the cold-start queue not to reckon with an answer any more: it is late.
func (c *call) abandon() {
	c.mu.Lock()
	released := c.released
	if released {
		c.account(false)
	}
	c.mu.Unlock()
	if released {
		c.coldQueue.release()
	}
}

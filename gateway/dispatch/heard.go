package dispatch

import (
	"time"

	"github.com/topsail-serving/topsail/gateway/route"
)

// Heard is the last answer to a call before it landed.
type Heard struct {
	Target  *route.Target // nil: none came
	Sent    time.Time
	At      time.Time     // zero: it is not there yet
	Service time.Duration // what the model took; 0: not known
}

// hear notes an answer, unless the call has landed. c.mu is held.
func (c *Call) hear(from *route.Target, service time.Duration, now time.Time) {
	if _, _, landed := c.Flight.Result(); landed {
		return
	}
	for _, q := range c.asked[:c.tries] {
		if q.target == from {
			*c.last = Heard{from, q.at, now, service}
		}
	}
}

// Last is the answer that the call landed with, or else the last question that went
// out, without one.
func (c *Call) Last() Heard {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.last == nil {
		return Heard{}
	}
	if c.last.Target == nil && c.tries > 0 {
		q := c.asked[c.tries-1]
		return Heard{Target: q.target, Sent: q.at}
	}
	return *c.last
}

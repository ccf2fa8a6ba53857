package scale

import (
	"fmt"
	"time"

	"github.com/topsail-serving/topsail/scheduler/window"
)

const (
	// behind is how much more waits in streams than is just on its way: what they answer in that time.
	behind = 10 * time.Second
	// caught is for how long after that nothing is taken away: lags are read every few seconds.
	caught = 10 * time.Second
)

// backlog is the demand of the last 6 s, and beside it what works off the records that wait in the
// time that their streams have, and keeps up with more of them. It has no seconds where nothing waits, or
// nothing asks: more replicas are of no use then.
func (d *draft) backlog() window.Mean {
	b, w := d.Demand.Backlog, d.Demand.Panic
	if b.Records == 0 || w.Rate == 0 && w.InFlight == 0 {
		return window.Mean{}
	}
	more := b.Wanted + max(0, b.Growth)
	if b.Answered > 0 { // a record may need no query of the version, by the policy or the cache
		more *= min(1, d.Demand.Stable.Rate/b.Answered)
	}
	if w.Rate > 0 {
		w.InFlight *= 1 + more/w.Rate
	}
	w.Rate += more
	return w
}

// worksOff sees to it that replicas stay for as long as a backlog is worked off.
func (d *draft) worksOff() {
	if b := d.Demand.Backlog; b.Answered > 0 && b.Records > b.Answered*behind.Seconds() {
		if until := d.Now.Add(caught); until.After(d.state.Keep) {
			d.state.Keep, d.state.Kept = until, ruleBacklog
		}
	}
}

// waits says what waits, for people.
func (d *draft) waits() string {
	b := d.Demand.Backlog
	return fmt.Sprintf("backlog of stream %s: %.0f records, to be worked off in %s", b.Stream, b.Records, brief(b.CatchUp))
}

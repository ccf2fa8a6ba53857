package admission

import (
	"fmt"
	"time"

	"github.com/topsail-serving/topsail/serving"
)

// Charge counts n queries, or pieces of feedback, of a request against the limits of the key
// and of the app: against both or, if one is exceeded, against neither. Its error is a Refusal.
func (c *Control) Charge(who Caller, app *serving.App, n int, now time.Time) error {
	if n == 0 || who.limit == nil && app.Limit == nil {
		return nil
	}
	g := c.rules.Load().gate(app.Name)
	if wait := who.limit.take(now, n); wait > 0 {
		return tooMany(g, wait, fmt.Sprintf("the key %q", who.name), who.limit)
	}
	if wait := g.limit.take(now, n); wait > 0 {
		who.limit.give(n)
		return tooMany(g, wait, fmt.Sprintf("the app %q", app.Name), g.limit)
	}
	return nil
}

// tooMany refuses a request that came too early, and says when to send it again.
func tooMany(g *gate, wait time.Duration, whose string, b *bucket) error {
	g.refused()[Limited].Inc()
	return &Refusal{Limited, fmt.Sprintf("%s has a limit of %.6g queries a second, and %.6g at once, at each gateway: send it again in %d ms",
		whose, b.limit.PerSecond, b.burst, Milliseconds(wait)), wait}
}

// Milliseconds is a wait in whole milliseconds, rounded up.
func Milliseconds(wait time.Duration) int64 {
	return int64((wait + time.Millisecond - 1) / time.Millisecond)
}

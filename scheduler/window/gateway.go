package window

import "time"

const (
	// silence is for how long a gateway may say nothing new while others do. Then it
	// is taken for dead since its last report.
	silence = 5 * time.Second

	// After a jump, by which several seconds come at once, there was an outage on the
	// way of the reports, and each gateway comes back from that in its own time.
	jump = 3 // seconds
	wary = 20 * time.Second
)

// gateway is what is known of one that reports.
type gateway struct {
	seen          [span]int64 // seconds reported
	first, newest int64
	news          time.Time // when it last said something new
	left          bool      // newest was its last
	dead          bool      // nothing after newest is waited for
}

// add notes a report and says whether it is a new one.
func (g *gateway) add(second int64, last bool, now time.Time) bool {
	if g.seen[second%span] == second {
		return false
	}
	g.seen[second%span] = second
	if g.first == 0 || second < g.first {
		g.first = second
	}
	if second > g.newest {
		g.newest, g.news = second, now
	}
	g.left = g.left || last
	return true
}

func (g *gateway) reported(second int64) bool { return g.seen[second%span] == second }

// expected says whether a report of the second is to be waited for.
func (g *gateway) expected(second int64) bool {
	return second >= g.first && (second <= g.newest || !g.dead)
}

// judge finds out which gateways are dead.
func (w *Windows) judge(now time.Time) {
	for _, g := range w.gateways {
		silent := g.newest < w.newest && now.Sub(g.news) >= silence && now.Sub(w.jumped) >= wary
		g.dead = g.left || silent
	}
}

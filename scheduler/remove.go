package scheduler

import (
	"context"
	"time"

	"github.com/topsail-serving/topsail/scheduler/scale"
	"github.com/topsail-serving/topsail/serving"
)

// ruleGone removes the job of a version that is no longer registered.
const ruleGone = "gone"

const (
	guardFrom = 4               // minimum number of jobs for the guard
	guardHold = 5 * time.Minute // for how long it holds
)

// guard stands between a catalog that was emptied by accident and the replicas.
type guard struct {
	since time.Time // zero: there is no need for it
	held  bool
}

// holdRemovals says whether too many jobs would go at once: more than half of
// several, where it is meant if it stays so, or any by the word of a catalog that
// never had anything in it.
func (l *loop) holdRemovals(now time.Time) bool {
	gone := 0
	for _, e := range l.active { // where every entry that is gone is
		if e.gone() {
			gone++
		}
	}
	empty := l.catalog.Revision == 0
	if gone == 0 || !empty && (len(l.jobs) < guardFrom || 2*gone <= len(l.jobs)) {
		l.guard = guard{}
		return false
	}
	if l.guard.since.IsZero() {
		l.guard.since = now
		l.cfg.Log.Error("jobs of versions that are not registered are kept for now; is this the right catalog?", "jobs", len(l.jobs), "of_no_version", gone, "revision", l.catalog.Revision, "kept_for", guardHold)
	}
	l.guard.held = empty || now.Sub(l.guard.since) < guardHold
	return l.guard.held
}

// removeJob removes what is left of a version.
func (l *loop) removeJob(ctx context.Context, e *entry, now time.Time) {
	if l.pending(e) {
		return
	}
	e.load = scale.Load{}
	e.decision = serving.Decision{
		ModelID: e.id, At: now, From: e.job.Count, To: 0,
		Rule: ruleGone, Reason: "the version is no longer registered",
		Leader: l.cfg.Name, Fence: l.term.Fence(),
	}
	change := e.change()
	l.pursue(ctx, e, now, func(ctx context.Context) error { return l.cfg.Fleet.Remove(ctx, e.id, change) })
}

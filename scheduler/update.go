package scheduler

import "time"

// ruleUpdate brings a job up to date that another release made.
const ruleUpdate = "update"

const (
	updateEvery = 30 * time.Second // from one job to the next
	retryUpdate = 10 * time.Minute // the same job, where an update did not last
)

// updates spreads the updates of jobs over time: a release that makes bad jobs must
// not reach all of them.
type updates struct{ last time.Time }

// outdated says whether the job should be brought up to date now. What a client made of the version reaches its replicas at
// once; a release reaches one job after the other, and none while another is not yet through with it.
func (l *loop) outdated(e *entry, now time.Time) bool {
	switch {
	case e.job.Count == 0, !e.updated.IsZero() && now.Sub(e.updated) < retryUpdate:
		return false
	case e.job.Redefined:
		return true
	case !e.job.Outdated, now.Sub(l.updates.last) < updateEvery:
		return false
	}
	for _, other := range l.active {
		if other.job.Blocked != "" || other.busy && other.decision.Rule == ruleUpdate {
			return false
		}
	}
	l.updates.last = now
	return true
}

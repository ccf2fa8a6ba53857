package scheduler

import (
	"time"

	"github.com/topsail-serving/topsail/scheduler/scale"
	"github.com/topsail-serving/topsail/serving"
)

// entry is one version, or a job that is left of one.
type entry struct {
	id      serving.ModelID
	version *serving.Version // nil: no longer in the catalog
	role    scale.Role
	slo     time.Duration // the tightest of the apps that use it; 0: none does
	longest time.Duration // of the same

	job   serving.Job // Index 0: there is none
	ready int
	woken time.Time

	state    scale.State
	decision serving.Decision // the last; its Outcome is empty where nothing was to be done
	load     scale.Load       // that it went by
	recorded serving.Decision // the last that journals got

	busy      bool      // a change is under way
	trustFrom int       // sequence of the first reading that shows what the last change did
	retry     time.Time // no change is asked for until then
	failures  int       // in a row
	blocked   time.Time // since when the job cannot be changed though it should; zero: it can
	alarm     string    // what a person should look at
	updated   time.Time // when its job was last brought up to date with the version as it is; zero: not since that changed
}

// gone says whether the version is no longer registered, and its job is left.
func (e *entry) gone() bool { return e.version == nil && e.job.Index != 0 }

// over says whether nothing is left.
func (e *entry) over() bool { return e.version == nil && e.job.Index == 0 && !e.busy }

// dormant says whether nothing but news can change the decision, so that ticks
// need not look: the version is at zero, and shall be.
func (e *entry) dormant() bool {
	return e.version != nil && e.job.Count == 0 && e.decision.To == 0 && !e.busy && e.version.Pin == nil
}

// calm notes that the job is as it should be, or was changed.
func (e *entry) calm() {
	e.retry, e.failures, e.blocked, e.alarm = time.Time{}, 0, time.Time{}, ""
}

// entry finds or makes the entry of a version.
func (l *loop) entry(id serving.ModelID, now time.Time) *entry {
	e := l.entries[id]
	if e == nil {
		// A cooldown may have begun under the leader before.
		e = &entry{id: id, job: serving.Job{ModelID: id}, state: scale.State{Changed: now}}
		l.entries[id] = e
		l.active[id] = e
	}
	return e
}

func (l *loop) forget(e *entry) {
	delete(l.entries, e.id)
	delete(l.active, e.id)
	l.board.remove(e.id)
}

package scheduler

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/topsail-serving/topsail/scheduler/scale"
	"github.com/topsail-serving/topsail/serving"
)

// Status is how one version is doing, for people.
type Status struct {
	serving.ModelID
	Role     scale.Role // empty: it is no longer registered, and its job goes
	Job      serving.Job
	Ready    int
	Decision serving.Decision // the last; its Outcome is empty where nothing was to be done
	Load     scale.Load       // that it went by
	Blocked  time.Time        // since when a wanted change could not be made; zero: none
	Alarm    string           // what a person should look at; empty: nothing
	Active   bool             // it has or should have a replica or a job, or had or should have had since this scheduler leads
}

// board is what is shown of the loop to others.
type board struct {
	mu       sync.Mutex // guards what follows
	statuses map[serving.ModelID]Status
	heading  heading
}

// heading is what is not about one version.
type heading struct {
	leading bool
	unknown time.Time // since when the demand is not known; zero: it is
	jobs    time.Time // when the jobs were read; zero: never
	held    bool      // jobs are not removed because they are most of all
}

func newBoard() *board { return &board{statuses: map[serving.ModelID]Status{}} }

func (b *board) begin(now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.heading = heading{leading: true, unknown: now, jobs: now}
}

func (b *board) end() {
	b.mu.Lock()
	defer b.mu.Unlock()
	clear(b.statuses)
	b.heading = heading{}
}

func (b *board) put(e *entry) {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := Status{ModelID: e.id, Role: e.role, Job: e.job, Ready: e.ready, Decision: e.decision, Load: e.load, Blocked: e.blocked, Alarm: e.alarm}
	s.Active = b.statuses[e.id].Active || s.Ready > 0 || s.Decision.To > 0 || s.Load.Demand > 0 || s.Job.Problem != "" || s.Alarm != "" || !s.Blocked.IsZero()
	b.statuses[e.id] = s
}

func (b *board) remove(id serving.ModelID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.statuses, id)
}

func (b *board) note(unknown, jobs time.Time, held bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.heading = heading{leading: true, unknown: unknown, jobs: jobs, held: held}
}

func (b *board) head() heading {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.heading
}

func (b *board) get(id serving.ModelID) (Status, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	s, ok := b.statuses[id]
	return s, ok
}

func (b *board) all() []Status {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.SortedFunc(maps.Values(b.statuses), func(x, y Status) int {
		return cmp.Or(cmp.Compare(x.Model, y.Model), cmp.Compare(x.Version, y.Version))
	})
}

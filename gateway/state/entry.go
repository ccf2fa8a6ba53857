package state

import (
	"sync"
	"sync/atomic"

	"github.com/topsail-serving/topsail/gateway/selection"
	"github.com/topsail-serving/topsail/serving"
)

// entry is what the gateway has of one state.
type entry struct {
	key    serving.StateKey
	kept   atomic.Pointer[kept]   // what the store had last; nil: not known yet
	fitted atomic.Pointer[fitted] // the same, for the app as it is now

	due      atomic.Int64 // when it is to be read again, in nanoseconds since the States began
	queued   atomic.Bool  // a loader is going to
	failures atomic.Int32 // readings in a row that failed

	mu         sync.Mutex // guards the following
	jobs       []*job     // that wait to change the state, the oldest first
	committing bool       // a committer has the entry, or will get it
	told       string     // the state's note as it was last logged

	moved []serving.Definition // the models that it was fitted to when it was last stored from here; the committer's
}

// kept is a state as it is in the store.
type kept struct {
	state    *selection.State // nil: there is none
	revision uint64
	bytes    int
}

// fitted is a state that was brought in line with an app.
type fitted struct {
	from *selection.State
	app  *App
	*selection.State
}

// weight is the memory that the entry needs, roughly: a state needs about twice that
// of its text, and once more when it does not fit its app.
func (e *entry) weight() uint32 {
	const overhead = 512
	w := overhead + len(e.key.User) + len(e.key.Context)
	if k := e.kept.Load(); k != nil {
		w += 3 * k.bytes
	}
	return uint32(w)
}

// add queues a job. It says whether the caller has to see to it that a committer gets
// the entry.
func (e *entry) add(j *job) (first bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.jobs = append(e.jobs, j)
	first = !e.committing
	e.committing = true
	return first
}

// take takes the oldest jobs off the queue.
func (e *entry) take() []*job {
	e.mu.Lock()
	defer e.mu.Unlock()
	n := min(len(e.jobs), maxBatch)
	batch := e.jobs[:n:n]
	e.jobs = e.jobs[n:]
	return batch
}

// leave ends committing, unless more jobs have come.
func (e *entry) leave() (more bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.jobs) == 0 {
		e.jobs, e.committing = nil, false
	}
	return e.committing
}

// tell says whether a note is another one than the last time.
func (e *entry) tell(note string) (news bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	news, e.told = note != e.told, note
	return news
}

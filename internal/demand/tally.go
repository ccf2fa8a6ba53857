package demand

import (
	"sync/atomic"
	"time"

	"github.com/topsail-serving/topsail/serving"
)

// forgetAfter is how many takes a closed tally is kept for: questions that began
// before the end may end after it.
const forgetAfter = 60

// Tally counts what is asked of one version in one place. Its methods may be called
// by anyone at any time; those of a nil Tally do nothing.
type Tally struct {
	id      serving.ModelID
	profile func() serving.LatencyLine
	opened  time.Time

	flying                       flying
	arrivals, unserved, defaults atomic.Uint64
	diverted                     atomic.Uint64
	admitted, refused            atomic.Uint64
	batches, inputs              atomic.Uint64
	waited, service              atomic.Uint64 // nanoseconds
	closed                       atomic.Bool

	takes int // since it was closed; the meter's
}

func newTally(id serving.ModelID, profile func() serving.LatencyLine) *Tally {
	return &Tally{id: id, profile: profile, opened: time.Now()}
}

// ID is the version that is counted.
func (t *Tally) ID() serving.ModelID { return t.id }

// Close says that the version is no longer served here. What still ends is counted
// for another minute.
func (t *Tally) Close() {
	if t != nil {
		t.closed.Store(true)
	}
}

func (t *Tally) forgotten() bool {
	if t.closed.Load() {
		t.takes++
	}
	return t.takes > forgetAfter
}

// Diverted counts a question that went on to a model that is ranked after this one: it was asked in vain or, as
// passed says, not at all.
func (t *Tally) Diverted(passed bool) {
	if t == nil {
		return
	}
	t.diverted.Add(1)
	if passed {
		t.arrivals.Add(1)
	}
}

// Admitted counts an input that was taken into a queue.
func (t *Tally) Admitted() {
	if t != nil {
		t.admitted.Add(1)
	}
}

// Refused counts an input that was refused, or dropped from a queue.
func (t *Tally) Refused() {
	if t != nil {
		t.refused.Add(1)
	}
}

// Waited counts the time that an input waited for its batch.
func (t *Tally) Waited(d time.Duration) {
	if t != nil {
		t.waited.Add(uint64(d))
	}
}

// Batch counts a call of a container with n inputs.
func (t *Tally) Batch(n int, took time.Duration) {
	if t == nil {
		return
	}
	t.batches.Add(1)
	t.inputs.Add(uint64(n))
	t.service.Add(uint64(took))
}

// take is what was counted since the last take. One goroutine takes at a time.
func (t *Tally) take() serving.Demand {
	d := serving.Demand{
		ModelID:  t.id,
		Arrivals: taken(&t.arrivals), Unserved: taken(&t.unserved), Defaults: taken(&t.defaults), Diverted: taken(&t.diverted),
		Concurrency: t.flying.take(func() time.Duration { return time.Since(t.opened) }),
		Admitted:    taken(&t.admitted), Refused: taken(&t.refused),
		Batches: taken(&t.batches), Inputs: taken(&t.inputs),
		Waited: time.Duration(taken(&t.waited)), Service: time.Duration(taken(&t.service)),
	}
	if t.profile != nil {
		d.Profile = t.profile()
	}
	return d
}

// taken leaves a count at 0. It writes only where something was counted: most versions are at rest.
func taken(n *atomic.Uint64) uint64 {
	if n.Load() == 0 {
		return 0
	}
	return n.Swap(0)
}

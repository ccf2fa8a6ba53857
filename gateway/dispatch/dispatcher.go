package dispatch

import (
	"sync/atomic"
	"time"

	"github.com/topsail-serving/topsail/gateway/route"
	"github.com/topsail-serving/topsail/gateway/usage"
	"github.com/topsail-serving/topsail/internal/obs"
	"github.com/topsail-serving/topsail/serving"
)

// Dispatcher sends questions to the replicas of model versions.
type Dispatcher struct {
	Limits Limits  // of the questions that are queued for a cold start; set before the first question
	Extra  *Budget // of calls beyond the first of each question

	table    *route.Table
	room     room
	wakes    chan *Version // of versions that are asked and have no replica
	versions atomic.Pointer[map[serving.Definition]*Version]
	replaced atomic.Int64 // until when some version is, in Unix nanoseconds
	metrics  metrics
}

// New makes a dispatcher without versions. It has the table, which does not run yet, say when its
// replicas change.
func New(table *route.Table, r *obs.Registry) *Dispatcher {
	d := &Dispatcher{
		Limits: Limits{Questions: maxQueued, Bytes: maxQueuedBytes}, Extra: NewBudget(extraShare),
		table: table, wakes: make(chan *Version, maxWakes), metrics: newMetrics(r),
	}
	d.versions.Store(&map[serving.Definition]*Version{})
	table.Changed = d.replicasChanged
	return d
}

// Version is a definition of a model version that is in use; nil for others.
func (d *Dispatcher) Version(definition serving.Definition) *Version {
	return (*d.versions.Load())[definition]
}

// All has every definition that is in use. It must not be changed.
func (d *Dispatcher) All() map[serving.Definition]*Version { return *d.versions.Load() }

// Versions has one of each definition of a version in a catalog, those that are in use among
// them; Use brings them into use. What came of a version is counted on when it is another one.
func (d *Dispatcher) Versions(cat *serving.Catalog) map[serving.Definition]*Version {
	all, before := map[serving.Definition]*Version{}, *d.versions.Load()
	older := make(map[serving.ModelID]*Version, len(before))
	for _, b := range before {
		older[b.ModelID] = b
	}
	for _, m := range cat.Models {
		for _, v := range m.Versions {
			for _, definition := range cat.Definitions(v) {
				b := before[definition]
				if b == nil {
					b = d.newVersion(definition, older[v.ModelID])
				}
				b.hostedModel.hosting.Store(hostingOf(cat, v, definition))
				b.hostedModel.inherit(older[v.ModelID])
				older[v.ModelID] = b
				if m.Serving == v.Version {
					b.hostedModel.proven.Store(true)
				}
				all[definition] = b
			}
		}
	}
	return all
}

// newVersion makes one; older is of the same version, if there is one.
func (d *Dispatcher) newVersion(definition serving.Definition, older *Version) *Version {
	v := &Version{Definition: definition, d: d, Usage: &usage.Counter{}, Stages: &usage.Stages{}, prefixes: route.NewPrefixes()}
	if older != nil {
		v.Usage, v.Stages = older.Usage, older.Stages
		d.replace(v, older)
	}
	return v
}

// replace begins the time in which queries wait for the replicas of a version that is redefined, if it had some
// before, or they were waited for. The old ones are not asked any more.
func (d *Dispatcher) replace(v, older *Version) {
	now := time.Now()
	if older.Group().Len() == 0 && !now.Before(older.replaced) {
		return
	}
	v.replaced = now.Add(replaceWithin)
	d.replaced.Store(v.replaced.UnixNano())
}

// Replaced says whether some version is being replaced at a time.
func (d *Dispatcher) Replaced(at time.Time) bool {
	until := d.replaced.Load()
	return until != 0 && at.UnixNano() < until
}

// ReplacedUntil is until when queries wait for the replicas of a version that was redefined, whatever the objective of
// their app is; a time that is over where it was not.
func (v *Version) ReplacedUntil() time.Time { return v.replaced }

// Use brings versions into use, and ends what is queued for those that are no longer.
func (d *Dispatcher) Use(versions map[serving.Definition]*Version) {
	for definition, v := range *d.versions.Swap(&versions) {
		if versions[definition] == nil {
			v.retire()
		}
	}
}

// retire ends what is queued: the version was redefined or deleted, and no replica will come.
func (v *Version) retire() {
	v.mu.Lock()
	v.retired = true
	v.mu.Unlock()
	v.giveUp(Superseded)
}

// Queued is how many questions wait for a replica.
func (d *Dispatcher) Queued() int { return int(d.room.questions.Load()) }

// QueuedBytes is the memory that they take.
func (d *Dispatcher) QueuedBytes() int64 { return d.room.bytes.Load() }

// replicasChanged sends queued questions to new replicas.
func (d *Dispatcher) replicasChanged() {
	for _, v := range *d.versions.Load() {
		if v.cold.Load() {
			v.replicasChanged()
		}
	}
}

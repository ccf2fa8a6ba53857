// Package demand counts what is asked of model versions, and reports it once a
// second.
//
// A process has a Meter. Who serves a version opens a Tally of it and counts there:
// an atomic add or two per question, no lock, no memory. A Reporter takes what was
// counted in each second and hands it to a Sink. Nothing on the path of a query
// waits for the store.
package demand

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/topsail-serving/topsail/serving"
)

// Meter is what one process counts. One Reporter takes from it; without one it
// only grows. A nil Meter counts nothing.
type Meter struct {
	mu       sync.Mutex // guards the following; never locked on the path of a query
	tallies  []*Tally
	backlogs map[string][]serving.Backlog // by stream
}

// NewMeter counts nothing yet.
func NewMeter() *Meter { return &Meter{} }

// Open begins a tally of a version. Several of one version add up. profile, if not
// nil, is asked once a second for the latency of the containers behind this tally;
// its zero means that it is unknown.
func (m *Meter) Open(id serving.ModelID, profile func() serving.LatencyLine) *Tally {
	if m == nil {
		return nil
	}
	t := newTally(id, profile)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.tallies = append(m.tallies, t)
	return t
}

// Backlog says what waits in a stream from now on, by version, and what was answered since it was said
// last; nothing where nothing does.
func (m *Meter) Backlog(stream string, all []serving.Backlog) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.backlogs == nil {
		m.backlogs = map[string][]serving.Backlog{}
	}
	before := m.backlogs[stream]
	for i := range all { // answers that were not taken yet
		for _, b := range before {
			if b.ModelID == all[i].ModelID {
				all[i].Answered += b.Answered
			}
		}
	}
	m.backlogs[stream] = all
	if len(all) == 0 {
		delete(m.backlogs, stream)
	}
}

// takeBacklogs is what waits in streams, and was answered since the last take, in order.
func (m *Meter) takeBacklogs() (all []serving.Backlog) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, stream := range slices.Sorted(maps.Keys(m.backlogs)) {
		all = append(all, m.backlogs[stream]...)
		for i := range m.backlogs[stream] {
			m.backlogs[stream][i].Answered = 0
		}
	}
	return all
}

// take is what was counted since the last take, by version, in order. Versions with
// nothing to say are left out, and tallies that were closed long ago are let go.
func (m *Meter) take() []serving.Demand {
	m.mu.Lock()
	defer m.mu.Unlock()
	var sums map[serving.ModelID]*sum // nil: all is at rest
	m.tallies = slices.DeleteFunc(m.tallies, func(t *Tally) bool {
		if d := t.take(); d != (serving.Demand{ModelID: t.id}) {
			if sums == nil {
				sums = map[serving.ModelID]*sum{}
			}
			if sums[t.id] == nil {
				sums[t.id] = &sum{demand: serving.Demand{ModelID: t.id}}
			}
			sums[t.id].add(&d)
		}
		return t.forgotten()
	})
	var all []serving.Demand
	for _, s := range sums {
		all = append(all, s.result())
	}
	slices.SortFunc(all, func(a, b serving.Demand) int {
		return cmp.Or(cmp.Compare(a.Model, b.Model), cmp.Compare(a.Version, b.Version))
	})
	return all
}

// sum is the demand of one version over all its tallies.
type sum struct {
	demand serving.Demand
	lines  int // profiles that are known, and which demand.Profile is the sum of
}

func (s *sum) add(d *serving.Demand) {
	all := &s.demand
	all.Arrivals += d.Arrivals
	all.Unserved += d.Unserved
	all.Defaults += d.Defaults
	all.Diverted += d.Diverted
	all.Concurrency += d.Concurrency
	all.Admitted += d.Admitted
	all.Refused += d.Refused
	all.Batches += d.Batches
	all.Inputs += d.Inputs
	all.Waited += d.Waited
	all.Service += d.Service
	if d.Profile != (serving.LatencyLine{}) {
		s.lines++
		all.Profile.Base += d.Profile.Base
		all.Profile.PerInput += d.Profile.PerInput
	}
}

// result has the mean profile.
func (s *sum) result() serving.Demand {
	if n := time.Duration(s.lines); n > 1 {
		s.demand.Profile.Base /= n
		s.demand.Profile.PerInput /= n
	}
	return s.demand
}

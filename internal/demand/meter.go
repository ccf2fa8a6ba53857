// Package demand counts what is asked of model versions, and reports it once a
// second.
//
// A process has a Meter. Who serves a version opens a Tally of it and counts there:
// an atomic add or two per question, no lock, no memory. A Reporter takes what was
// counted in each second and hands it to a Sink. Nothing on the path of a query
// waits for whoever stores it.
package demand

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/topsail-serving/topsail/serving"
)

// Meter is what one process counts. One Reporter takes from it; without one it
// only grows. A nil Meter counts nothing.
type Meter struct {
	mu      sync.Mutex // guards tallies; nobody holds it on the path of a query
	tallies []*Tally
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

// take is what was counted since the last take, by version, in order. Versions with
// nothing to say are left out, and tallies that were closed long ago are let go.
func (m *Meter) take() []serving.Demand {
	m.mu.Lock()
	defer m.mu.Unlock()
	sums := map[serving.ModelID]*sum{}
	m.tallies = slices.DeleteFunc(m.tallies, func(t *Tally) bool {
		s := sums[t.id]
		if s == nil {
			s = &sum{demand: serving.Demand{ModelID: t.id}}
			sums[t.id] = s
		}
		s.add(t)
		return t.forgotten()
	})
	var all []serving.Demand
	for _, s := range sums {
		if d := s.result(); d != (serving.Demand{ModelID: d.ModelID}) {
			all = append(all, d)
		}
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

func (s *sum) add(t *Tally) {
	t.take(&s.demand)
	if t.profile == nil {
		return
	}
	if line := t.profile(); line != (serving.LatencyLine{}) {
		s.lines++
		s.demand.Profile.Base += line.Base
		s.demand.Profile.PerInput += line.PerInput
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

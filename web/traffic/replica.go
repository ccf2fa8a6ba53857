package traffic

import (
	"maps"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/topsail-serving/topsail/internal/obs"
	"github.com/topsail-serving/topsail/web/api"
)

// replicaKey is what metrics call a replica of a version.
type replicaKey struct{ model, version, replica string }

// measures are what a sidecar has measured of one replica.
type measures struct {
	reading      // since it started
	ready   bool // it has a container
	queue   int
	wait    time.Duration
	limit   int     // the highest of its containers
	mean    float64 // inputs of a batch, since the look before or, without a batch since, since it started
	served  float64 // answers since it started
	profile map[int]*estimate
	stages  map[string]*stage // nil: the model has none
}

// estimate is the time of a batch at several containers.
type estimate struct{ sum, n float64 }

func newMeasures(at time.Time) *measures {
	return &measures{reading: reading{at: at, sums: &sums{ended: map[string]float64{}}}, profile: map[int]*estimate{}}
}

func (m *measures) readAnswers(s *obs.Series) {
	n := number(s.Value)
	m.served += n
	if n > 0 && len(m.ended) < maxStatuses {
		m.ended[s.Label("status")] += n
	}
}

func (m *measures) readProfile(s *obs.Series) {
	size, err := strconv.Atoi(s.Label("size"))
	if err != nil || size <= 0 {
		return
	}
	e := m.profile[size]
	if e == nil {
		e = &estimate{}
		m.profile[size] = e
	}
	e.sum += number(s.Value)
	e.n++
}

// after works out what came since the look before, which may be nil.
func (m *measures) after(before *measures) {
	if before != nil && m.batches > before.batches && m.inputs >= before.inputs {
		m.mean = (m.inputs - before.inputs) / (m.batches - before.batches)
	} else if m.batches > 0 {
		m.mean = m.inputs / m.batches
	}
	for name, st := range m.stages {
		var earlier *stage
		if before != nil {
			earlier = before.stages[name]
		}
		st.follow(earlier, m.at)
	}
}

// fill puts the measures into a replica.
func (m *measures) fill(r *api.Replica) {
	r.QueueLength, r.Wait, r.BatchLimit, r.Answers = m.queue, m.wait.Microseconds(), m.limit, uint64(m.served)
	r.BatchMean = math.Round(m.mean*100) / 100
	r.Profile = nil
	for _, size := range slices.Sorted(maps.Keys(m.profile)) {
		e := m.profile[size]
		r.Profile = append(r.Profile, api.ProfilePoint{Size: size, Micros: seconds(e.sum / e.n).Microseconds()})
	}
}

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

const (
	queueName   = "topsail_sidecar_queue_length"
	waitName    = "topsail_sidecar_wait_seconds"
	limitName   = "topsail_sidecar_batch_limit"
	sizesName   = "topsail_sidecar_batch_size"
	servedName  = "topsail_sidecar_answers_total"
	profileName = "topsail_sidecar_profile_seconds"
)

// replicaKey is what metrics call a replica of a version.
type replicaKey struct{ model, version, replica string }

// measures are what a sidecar has measured of one replica.
type measures struct {
	reading // since it started
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

// readMeasures finds the replicas in the metrics of a sidecar.
func readMeasures(at time.Time, families []*obs.Family) map[replicaKey]*measures {
	all := map[replicaKey]*measures{}
	for _, f := range families {
		read := reader(f.GetName())
		if read == nil {
			continue
		}
		for _, s := range f.GetMetric() {
			key := replicaKey{label(s, "model"), label(s, "version"), label(s, "replica")}
			if all[key] == nil {
				all[key] = &measures{reading: reading{at: at, sums: &sums{ended: map[string]float64{}}}, profile: map[int]*estimate{}}
			}
			read(all[key], s)
		}
	}
	return all
}

// reader is what reads the samples of a metric; nil for a metric that is not read.
func reader(name string) func(*measures, *obs.Sample) {
	if read := stageReader(name); read != nil {
		return func(m *measures, s *obs.Sample) {
			if st := m.stage(label(s, "stage")); st != nil {
				read(st, s)
			}
		}
	}
	switch name {
	case queueName:
		return func(m *measures, s *obs.Sample) { m.queue = count(s) }
	case waitName:
		return func(m *measures, s *obs.Sample) { m.wait = seconds(s.GetGauge().GetValue()) }
	case limitName:
		return func(m *measures, s *obs.Sample) { m.limit = max(m.limit, count(s)) }
	case servedName:
		return (*measures).readAnswers
	case sizesName:
		return func(m *measures, s *obs.Sample) {
			m.batches, m.inputs = float64(s.GetHistogram().GetSampleCount()), number(s.GetHistogram().GetSampleSum())
		}
	case runName:
		return func(m *measures, s *obs.Sample) { m.run = readTiming(s) }
	case startName:
		return func(m *measures, s *obs.Sample) { m.readStart(s) }
	case profileName:
		return (*measures).readProfile
	}
	return nil
}

// count is a gauge of whole things.
func count(s *obs.Sample) int { return int(min(number(s.GetGauge().GetValue()), math.MaxInt32)) }

func (m *measures) readAnswers(s *obs.Sample) {
	n := number(s.GetCounter().GetValue())
	m.served += n
	if n > 0 && len(m.ended) < maxStatuses {
		m.ended[label(s, "status")] += n
	}
}

func (m *measures) readProfile(s *obs.Sample) {
	size, err := strconv.Atoi(label(s, "size"))
	if err != nil || size <= 0 {
		return
	}
	e := m.profile[size]
	if e == nil {
		e = &estimate{}
		m.profile[size] = e
	}
	e.sum += number(s.GetGauge().GetValue())
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

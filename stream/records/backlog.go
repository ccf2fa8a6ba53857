package records

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/topsail-serving/topsail/serving"
)

// Demand is told what waits in streams; a gateway tells the scheduler.
type Demand interface {
	// Backlog says what waits in a stream from now on, and in what time it is to be worked off.
	Backlog(stream string, catchUp time.Duration, waiting []serving.AppBacklog)
}

const (
	defaultCatchUp = 5 * time.Minute
	// backlogEvery is how often a job says what waits.
	backlogEvery = time.Second
	// mixPast is how much of what was answered counts a second later, when it is told which apps what
	// waits is for.
	mixPast = 0.9
)

// FollowBacklog says once a second what waits in the job's streams, until ctx ends.
func (j *Job) FollowBacklog(ctx context.Context) error {
	if j.demand == nil {
		return nil
	}
	defer j.demand.Backlog(j.name, j.catchUp, nil)
	tick := time.NewTicker(backlogEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			j.demand.Backlog(j.name, j.catchUp, j.handler.mix.take(j.waiting(), j.own))
		case <-ctx.Done():
			return nil
		}
	}
}

// waiting is how many records wait behind those in flight; 0 where that is not known. More replicas
// are of no use to a stream that is suspended.
func (j *Job) waiting() uint64 {
	s, _ := j.Job.Status()
	if s.Lag == nil || s.Suspended != nil {
		return 0
	}
	return uint64(max(0, *s.Lag-int64(s.InFlight)))
}

// mix is which apps the records of a job are for. What waits was not read: it is taken to be for the
// same.
type mix struct {
	mu       sync.Mutex
	answered map[string]uint64  // by app, since the last take
	past     map[string]float64 // the same, each second counting less as it ages
}

func newMix() *mix { return &mix{answered: map[string]uint64{}, past: map[string]float64{}} }

// add counts an answer; there are as many apps as records may name.
func (m *mix) add(app string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.answered[app]++
}

// take is what waits for each app, and was answered since the last take. All is for some apps, if there are any,
// until records were answered.
func (m *mix) take(waiting uint64, otherwise []string) (all []serving.AppBacklog) {
	m.mu.Lock()
	defer m.mu.Unlock()
	some, sum := slices.ContainsFunc(slices.Collect(maps.Values(m.answered)), func(n uint64) bool { return n > 0 }), 0.
	for app, n := range m.answered {
		if some { // else what was known stays
			m.past[app] = m.past[app]*mixPast + float64(n)
		}
		sum += m.past[app]
	}
	if sum == 0 && waiting > 0 && len(otherwise) > 0 {
		for _, app := range otherwise {
			all = append(all, serving.AppBacklog{App: app, Records: waiting})
		}
		return all
	}
	for app, n := range m.answered {
		if b := (serving.AppBacklog{App: app, Records: uint64(float64(waiting) * m.past[app] / sum), Answered: n}); b.Records+b.Answered > 0 {
			all = append(all, b)
		}
		m.answered[app] = 0
	}
	slices.SortFunc(all, func(a, b serving.AppBacklog) int { return strings.Compare(a.App, b.App) })
	return all
}

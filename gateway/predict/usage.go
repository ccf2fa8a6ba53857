package predict

import (
	"github.com/topsail-serving/topsail/gateway/usage"
	"github.com/topsail-serving/topsail/serving"
)

// reported is what was taken of an app's counts, which go on growing.
type reported struct {
	answers, defaults, cached uint64
	nanos                     int64 // whole microseconds of them; what is below is for the next time
}

// TakeUsage is what came of all model versions, apps and stages of apps since it was
// last taken, with the revision of the catalog in use. What came of nothing is left out.
func (p *Predictor) TakeUsage() (revision uint64, counted []serving.Usage) {
	p.mu.Lock() // a count belongs to a catalog
	defer p.mu.Unlock()
	for d, b := range p.dispatch.All() {
		key := serving.UsageKey{ModelID: d.ModelID}
		if u := b.Usage.Take(key); !u.Empty() {
			counted = append(counted, u)
		}
		counted = append(counted, b.Stages.Take(key)...)
	}
	return p.revision, append(counted, p.metrics.takeUsage()...)
}

// takeUsage is what came of all apps and their stages since it was last taken.
func (m *Metrics) takeUsage() (counted []serving.Usage) {
	m.mu.Lock()
	defer m.mu.Unlock()
	add := func(u serving.Usage) {
		if !u.Empty() {
			counted = append(counted, u)
		}
	}
	for name, a := range m.apps {
		add(a.take(serving.UsageKey{App: name}))
		for stage, counter := range a.stages {
			add(counter.Take(serving.UsageKey{App: name, Stage: stage}))
		}
	}
	return counted
}

// take is what came of the app since it was last taken. Metrics.mu is held.
func (a *appMetrics) take(key serving.UsageKey) serving.Usage {
	old := a.reported
	micros := (a.times.sum.Load() - old.nanos) / 1000
	now := reported{cached: a.cached.Load(), nanos: old.nanos + micros*1000}
	for cause := range a.answers {
		n := a.answers[cause].Load()
		now.answers += n
		if serving.Cause(cause) != serving.OK {
			now.defaults += n
		}
	}
	a.reported = now
	u := serving.Usage{
		Key: key, Answers: now.answers - old.answers, Failed: now.defaults - old.defaults,
		Cached: now.cached - old.cached, Micros: uint64(micros), Last: a.fallback.Take(),
	}
	u.Least, u.Most = a.times.take()
	return u
}

// stages are the counters of an app's stages, which they keep from catalog to catalog.
func (m *Metrics) stages(a *appMetrics, p serving.Pipeline) (counters []*usage.Counter) {
	m.mu.Lock()
	defer m.mu.Unlock()
	kept := map[string]*usage.Counter{}
	for _, s := range p {
		c := a.stages[s.Name]
		if c == nil {
			c = &usage.Counter{}
		}
		kept[s.Name] = c
		counters = append(counters, c)
	}
	a.stages = kept
	return counters
}

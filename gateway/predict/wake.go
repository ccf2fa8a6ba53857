package predict

import "github.com/topsail-serving/topsail/serving"

// Wake has replicas started for what an app asks and that has none: of its only model the version
// of a name, unless that is empty. It does not wait for them, and fails as App does.
func (p *Predictor) Wake(name, version string) error {
	a, err := p.app(name)
	if err != nil {
		return err
	}
	for _, l := range a.models {
		v := l.current
		if version != "" {
			v = l.versions[version]
		}
		if v = v.onHost(); v != nil && !v.ready() {
			v.replicas.PassedOver()
		}
	}
	return nil
}

// Inferences are what the queries of an app came to since this gateway has known it. An unknown app has none.
func (p *Predictor) Inferences(name string) serving.Inferences { return p.metrics.inferences(name) }

func (m *Metrics) inferences(name string) (t serving.Inferences) {
	m.mu.Lock()
	a := m.apps[name]
	m.mu.Unlock()
	if a == nil {
		return t
	}
	for cause := range a.answers {
		if n := a.answers[cause].Load(); serving.Cause(cause) == serving.OK {
			t.Succeeded = n
		} else {
			t.Defaults += n
		}
	}
	t.Cached, t.Asked, t.Took = a.hits.Load()+a.joins.Load(), a.misses.Load(), a.times.total()
	return t
}

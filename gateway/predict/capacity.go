package predict

import (
	"time"

	"github.com/topsail-serving/topsail/serving"
)

// Capacity is how many ready replicas answer the queries of an app, and what one of the lowest priority would
// wait there, as they reported lately. Of models that a policy chooses from it is what the
// best one has; of stages, which are asked one after another, what the worst one has.
func (p *Predictor) Capacity(app string) (replicas int, wait time.Duration) {
	a, err := p.app(app)
	if err != nil {
		return 0, 0
	}
	return a.capacity(time.Now())
}

func (a *app) capacity(now time.Time) (replicas int, wait time.Duration) {
	for i := range a.members {
		n, w := 0, time.Duration(0)
		if v, ready := a.members[i].version(a); v != nil && ready {
			group := v.replicas.Group()
			n, w = max(group.Len(), 1), group.Wait(serving.LowestPriority, now) // of one that is not loaded, the host's replica
		}
		switch {
		case a.each && i > 0:
			replicas, wait = min(replicas, n), max(wait, w)
		case n > 0 && (replicas == 0 || w < wait):
			replicas, wait = max(replicas, n), w
		default:
			replicas = max(replicas, n)
		}
	}
	return replicas, wait
}

// Ready says whether a version of an app's only model has a ready replica, or if it is empty, one that
// the app asks; of an app with stages, each of them.
func (p *Predictor) Ready(app, version string) (bool, error) {
	a, err := p.app(app)
	switch {
	case err != nil:
		return false, err
	case version != "":
		if a.each || len(a.models) != 1 {
			return false, nil
		}
		v := a.models[0].versions[version].onHost()
		return v != nil && v.ready(), nil
	}
	replicas, _ := a.capacity(time.Now())
	return replicas > 0, nil
}

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

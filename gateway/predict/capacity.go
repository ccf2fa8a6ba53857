package predict

import "time"

// Capacity is how many ready replicas answer the queries of an app, and what a query would
// wait there, as they reported lately. Of models that a policy chooses from it is what the
// best one has; of stages, which are asked one after another, what the worst one has.
func (p *Predictor) Capacity(app string) (replicas int, wait time.Duration) {
	a, err := p.app(app)
	if err != nil {
		return 0, 0
	}
	now := time.Now()
	if a.stages != nil {
		return a.stages.capacity(a, now)
	}
	for _, l := range a.models {
		if n, w := a.capacity(l, now); n > 0 {
			if replicas == 0 || w < wait {
				wait = w
			}
			replicas = max(replicas, n)
		}
	}
	return replicas, wait
}

// capacity is that of the stage that has the least.
func (s *stages) capacity(a *app, now time.Time) (replicas int, wait time.Duration) {
	for i, l := range s.models {
		n, w := a.capacity(l, now)
		if i == 0 || n < replicas {
			replicas = n
		}
		wait = max(wait, w)
	}
	return replicas, wait
}

// capacity is that of one model, whose replica is the host's where it is not loaded.
func (a *app) capacity(l *linked, now time.Time) (replicas int, wait time.Duration) {
	if l == nil {
		return 0, 0
	}
	v, ready := a.serving(l)
	if v == nil || !ready {
		return 0, 0
	}
	group := v.replicas.Group()
	return max(group.Len(), 1), group.Wait(now)
}

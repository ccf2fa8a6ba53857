package scheduler

import (
	"reflect"
	"time"

	"github.com/topsail-serving/topsail/scheduler/scale"
	"github.com/topsail-serving/topsail/serving"
)

// slos are the tightest and the longest SLO of the apps that use a model.
type slos struct{ tightest, longest time.Duration }

// takeCatalog takes in a new catalog. Versions that it changes are looked at.
func (l *loop) takeCatalog(c *serving.Catalog, now time.Time) {
	l.catalog = c
	clear(l.rising)
	used, pins := slosByModel(c), pinsOf(c)
	for _, m := range c.Models {
		if m.Versions[m.Current] != nil && m.Current != m.Serving {
			l.rising[m.Name] = serving.ModelID{Model: m.Name, Version: m.Current}
		}
		for _, v := range m.Versions {
			if !v.OwnReplicas() {
				continue // those of its host hold it, or others run it
			}
			l.takeVersion(v, roleOf(m, v, pins), used[m.Name], now)
		}
	}
	for id, e := range l.entries {
		if v := c.Version(id); v == nil || !v.OwnReplicas() {
			e.version, e.role = nil, ""
			l.active[id] = e
		}
	}
}

func (l *loop) takeVersion(v *serving.Version, role scale.Role, s slos, now time.Time) {
	e := l.entry(v.ModelID, now)
	same := e.version == v || reflect.DeepEqual(e.version, v)
	if !same {
		e.version, e.updated = v, time.Time{}
		l.lookSoon() // at the job of it
		l.setReady(v.ModelID)
	}
	if same && e.role == role && e.slo == s.tightest && e.longest == s.longest {
		return
	}
	e.role, e.slo, e.longest = role, s.tightest, s.longest
	e.retry, e.failures = time.Time{}, 0 // what was refused may be all right now
	l.active[e.id] = e
}

func roleOf(m *serving.Model, v *serving.Version, pins map[serving.ModelID]bool) scale.Role {
	switch v.Version {
	case m.Current:
		if m.Serving == m.Current {
			return scale.Current
		}
		return scale.Rollout
	case m.Serving:
		return scale.Serving
	}
	if pins[v.ModelID] {
		return scale.Current // of the policy that names it
	}
	return scale.Old
}

// pinsOf are the versions that policies name: canaries, shadows and the like.
func pinsOf(c *serving.Catalog) map[serving.ModelID]bool {
	pins := map[serving.ModelID]bool{}
	for _, a := range c.Apps {
		for _, id := range a.Pins() {
			pins[id] = true
		}
	}
	return pins
}

// slosByModel has those of a host, too: of the apps that use the versions that it holds.
func slosByModel(c *serving.Catalog) map[string]slos {
	used := map[string]slos{}
	use := func(model string, slo time.Duration) {
		s, ok := used[model]
		if !ok {
			s.tightest = slo
		}
		used[model] = slos{min(s.tightest, slo), max(s.longest, slo)}
	}
	for _, a := range c.Apps {
		for _, model := range a.Asked() {
			use(model, a.SLO.Std())
			if host := hostOf(c.Models[model]); host != "" {
				use(host, a.SLO.Std())
			}
		}
	}
	return used
}

// hostOf is the host of a model's current version; empty where that has none.
func hostOf(m *serving.Model) string {
	if m == nil || m.Versions[m.Current] == nil {
		return ""
	}
	return m.Versions[m.Current].HostedBy
}

// behind is how many replicas the version has that serves in e's stead.
func (l *loop) behind(e *entry) int {
	m := l.catalog.Models[e.id.Model]
	if other := l.entries[serving.ModelID{Model: m.Name, Version: m.Serving}]; other != nil {
		return other.job.Count
	}
	return 0
}

// settled says whether the current version of e's model serves, with as many ready
// replicas as it shall have; or there is none.
func (l *loop) settled(e *entry) bool {
	m := l.catalog.Models[e.id.Model]
	if m.Versions[m.Current] == nil {
		return true
	}
	current := l.entries[serving.ModelID{Model: m.Name, Version: m.Current}]
	return m.Serving == m.Current && !current.busy && current.ready >= max(current.job.Count, current.decision.To)
}

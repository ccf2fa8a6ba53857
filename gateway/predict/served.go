package predict

import (
	"slices"
	"sync/atomic"

	"github.com/topsail-serving/topsail/serving"
)

// maxServed bounds the versions that are remembered.
const maxServed = 8

// served remembers which versions of a model took queries, the latest first, so that
// one of them goes on serving while the current one has no ready replica.
type served struct {
	versions  atomic.Pointer[[]string] // immutable
	announced string                   // Model.Serving as it was last seen; guarded by Predictor.mu
}

func newServed() *served {
	s := &served{}
	s.versions.Store(&[]string{})
	return s
}

// learn takes in which version the catalog says took over, perhaps before this
// gateway was there, and which was current before.
func (s *served) learn(m *serving.Model) {
	if m.Serving != "" && m.Serving != s.announced {
		s.note(m.Serving)
	}
	s.announced = m.Serving
	if m.Previous != "" {
		s.noteLast(m.Previous)
	}
}

// noteLast says that a version took queries before all that are known.
func (s *served) noteLast(version string) {
	for {
		old := s.versions.Load()
		if len(*old) == maxServed || slices.Contains(*old, version) {
			return
		}
		all := append(slices.Clone(*old), version)
		if s.versions.CompareAndSwap(old, &all) {
			return
		}
	}
}

// note says that a version takes queries.
func (s *served) note(version string) {
	for {
		old := s.versions.Load()
		if len(*old) > 0 && (*old)[0] == version {
			return
		}
		others := slices.DeleteFunc(slices.Clone(*old), func(v string) bool { return v == version })
		all := append([]string{version}, others[:min(len(others), maxServed-1)]...)
		if s.versions.CompareAndSwap(old, &all) {
			return
		}
	}
}

// serving is the version that takes queries now: the current one when it has a
// ready replica, else the latest that served and has one, else the current one all
// the same, which is not ready then. It is nil for a model without a current version.
func (a *app) serving(l *linked) (v *version, ready bool) {
	v, ready = a.peekServing(l)
	if current := l.current.onHost(); ready && v == current {
		l.served.note(current.Version)
	} else if ready && current != nil {
		current.replicas.PassedOver()
	}
	return v, ready
}

// peekServing is serving, without a query.
func (a *app) peekServing(l *linked) (v *version, ready bool) {
	current := l.current.onHost()
	if current != nil && current.ready() {
		return current, true
	}
	for _, name := range *l.served.versions.Load() {
		if v := l.versions[name].onHost(); v.takes(l.takes) && v.ready() {
			return v, true
		}
	}
	return current, false
}

// insteadOf is the current version, if it has served and a version was asked in its
// stead: it has no ready replica any more.
func (l *linked) insteadOf(version string) (current serving.ModelID, failedOver bool) {
	if l.current == nil || l.current.Version == version || !slices.Contains(*l.served.versions.Load(), l.current.Version) {
		return serving.ModelID{}, false
	}
	return l.current.ModelID, true
}

// FailedOver says of each current version of a model that apps ask, and that has a ready replica or
// has served, whether it has none and one that served before it has.
func (p *Predictor) FailedOver() map[serving.ModelID]bool {
	apps := p.apps.Load()
	if apps == nil {
		return nil
	}
	list := map[serving.ModelID]bool{}
	note := func(a *app, l *linked) {
		if l.current == nil {
			return
		}
		v, ready := a.peekServing(l)
		if !ready {
			return
		}
		_, failedOver := l.insteadOf(v.Version)
		list[l.current.ModelID] = list[l.current.ModelID] || failedOver
	}
	for _, a := range *apps {
		for _, l := range a.models {
			note(a, l)
		}
		if a.decider != nil {
			note(a, a.decider)
		}
	}
	return list
}

// ready says whether the version has a replica, or can have one at once.
func (v *version) ready() bool { return v.replicas.Ready() }

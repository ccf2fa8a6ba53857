package predict

import (
	"slices"
	"sync/atomic"

	"topsail/serving"
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
// gateway was there.
func (s *served) learn(m *serving.Model) {
	if m.Serving != "" && m.Serving != s.announced {
		s.note(m.Serving)
	}
	s.announced = m.Serving
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
	current := l.current.held()
	if current != nil && current.ready() {
		l.served.note(current.Version)
		return current, true
	}
	for _, name := range *l.served.versions.Load() {
		if v := l.versions[name].held(); v != nil && (l.takes == 0 || v.inputType == l.takes) && v.ready() {
			if current != nil {
				current.backlog.passedOver()
			}
			return v, true
		}
	}
	return current, false
}

// ready says whether the version has a replica, or can have one at once.
func (v *version) ready() bool { return v.backlog.ready() }

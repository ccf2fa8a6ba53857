package predict

import "slices"

// Ready says whether a version of an app's only model has a ready replica, or if it is empty, one that
// the app asks; of an app with stages, each of them.
func (p *Predictor) Ready(app, version string) (bool, error) {
	a, err := p.app(app)
	if err != nil {
		return false, err
	}
	switch {
	case version != "":
		return len(a.models) == 1 && a.models[0].versions[version].onHost().isReady(), nil
	case a.stages != nil:
		return !slices.ContainsFunc(a.stages.models, func(l *linked) bool {
			if l == nil {
				return true
			}
			v, ready := a.serving(l)
			return v == nil || !ready
		}), nil
	}
	return slices.ContainsFunc(a.members, func(m member) bool {
		v, ready := m.version(a)
		return v != nil && ready
	}), nil
}

// isReady is ready for a version that may not be there.
func (v *version) isReady() bool { return v != nil && v.ready() }

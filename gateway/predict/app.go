package predict

import (
	"fmt"
	"maps"
	"sync/atomic"
	"time"

	"topsail/gateway/cache"
	"topsail/gateway/route"
	"topsail/gateway/selection"
	"topsail/serving"
)

// app is an App with everything that its queries need, looked up in advance.
type app struct {
	*serving.App
	selector selection.Selector
	models   []*linked // in the order of linking
	fallback []byte    // the default output as JSON
	margin   time.Duration
	metrics  *appMetrics
}

// linked is a model as one app uses it.
type linked struct {
	name     string
	current  *version // nil when none is
	versions map[string]*version
	served   *served
}

// version is a model version as one app uses it.
type version struct {
	serving.ModelID
	inputType   serving.InputType // not the app's for some old versions: they cannot be asked
	inputLength int
	keyer       cache.Keyer
}

// served remembers which version of a model took queries last, so that it goes on
// serving until the current one has a ready replica.
type served struct{ version atomic.Pointer[string] }

// SetCatalog makes the predictor answer for the apps of cat.
func (p *Predictor) SetCatalog(cat *serving.Catalog) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	apps := make(map[string]*app, len(cat.Apps))
	for name, spec := range cat.Apps {
		a, err := p.compile(spec, cat)
		if err != nil {
			return fmt.Errorf("app %q: %w", name, err)
		}
		apps[name] = a
	}
	for name := range *p.apps.Load() {
		if apps[name] == nil {
			p.metrics.forget(name)
		}
	}
	maps.DeleteFunc(p.served, func(model string, _ *served) bool { return cat.Models[model] == nil })
	p.apps.Store(&apps)
	return nil
}

func (p *Predictor) compile(spec *serving.App, cat *serving.Catalog) (*app, error) {
	selector, err := selection.New(spec.Policy)
	if err != nil {
		return nil, err
	}
	a := &app{
		App:      spec,
		selector: selector,
		fallback: serving.AppendText(nil, []byte(spec.DefaultOutput)),
		margin:   min(spec.SLO/20, maxMargin),
		metrics:  p.metrics.app(spec.Name),
	}
	for _, name := range spec.Models {
		if m := cat.Models[name]; m != nil {
			a.models = append(a.models, p.link(a, m))
		}
	}
	return a, nil
}

func (p *Predictor) link(a *app, m *serving.Model) *linked {
	if p.served[m.Name] == nil {
		p.served[m.Name] = &served{}
	}
	l := &linked{name: m.Name, versions: make(map[string]*version, len(m.Versions)), served: p.served[m.Name]}
	for name, v := range m.Versions {
		l.versions[name] = &version{ModelID: v.ModelID, inputType: v.InputType, inputLength: v.InputLength, keyer: cache.NewKeyer(v.ModelID, a.Cache.Round)}
	}
	l.current = l.versions[m.Current]
	return l
}

// serving is the version that takes queries now: the current one when it has a
// ready replica, else the last that had, else the current one all the same. It is
// nil for a model without a current version.
func (a *app) serving(l *linked, table *route.Table) *version {
	last := l.served.version.Load()
	if l.current != nil && table.Group(l.current.ModelID).Len() > 0 {
		if last == nil || *last != l.current.Version {
			l.served.version.Store(&l.current.Version)
		}
		return l.current
	}
	if last != nil {
		if v := l.versions[*last]; v != nil && v.inputType == a.InputType && table.Group(v.ModelID).Len() > 0 {
			return v
		}
	}
	return l.current
}

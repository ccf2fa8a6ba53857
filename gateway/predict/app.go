package predict

import (
	"fmt"
	"maps"
	"time"

	"topsail/gateway/cache"
	"topsail/gateway/selection"
	"topsail/internal/demand"
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
	demand      *demand.Tally
	backlog     *backlog
}

// SetCatalog makes the predictor answer for the apps of cat.
func (p *Predictor) SetCatalog(cat *serving.Catalog) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	backlogs := p.backlogsOf(cat)
	apps := make(map[string]*app, len(cat.Apps))
	for name, spec := range cat.Apps {
		a, err := p.compile(spec, cat, backlogs)
		if err != nil {
			return fmt.Errorf("app %q: %w", name, err)
		}
		apps[name] = a
	}
	if old := p.apps.Load(); old != nil {
		for name := range *old {
			if apps[name] == nil {
				p.metrics.forget(name)
			}
		}
	}
	maps.DeleteFunc(p.served, func(model string, _ *served) bool { return cat.Models[model] == nil })
	p.closeTallies(cat)
	p.backlogs.Store(&backlogs)
	p.apps.Store(&apps)
	return nil
}

func (p *Predictor) compile(spec *serving.App, cat *serving.Catalog, backlogs map[serving.ModelID]*backlog) (*app, error) {
	selector, err := selection.New(spec.Policy)
	if err != nil {
		return nil, err
	}
	a := &app{
		App:      spec,
		selector: selector,
		fallback: serving.AppendText(nil, []byte(spec.DefaultOutput)),
		margin:   min(spec.SLO/20, maxMargin),
		metrics:  p.metrics.app(spec.Name, spec.SLO),
	}
	for _, name := range spec.Models {
		if m := cat.Models[name]; m != nil {
			a.models = append(a.models, p.link(a, m, backlogs))
		}
	}
	return a, nil
}

func (p *Predictor) link(a *app, m *serving.Model, backlogs map[serving.ModelID]*backlog) *linked {
	if p.served[m.Name] == nil {
		p.served[m.Name] = newServed()
	}
	p.served[m.Name].learn(m)
	l := &linked{name: m.Name, versions: make(map[string]*version, len(m.Versions)), served: p.served[m.Name]}
	for name, v := range m.Versions {
		l.versions[name] = &version{
			ModelID: v.ModelID, inputType: v.InputType, inputLength: v.InputLength,
			keyer: cache.NewKeyer(v.ModelID, a.Cache.Round), demand: p.tally(v.ModelID), backlog: backlogs[v.ModelID],
		}
	}
	l.current = l.versions[m.Current]
	return l
}

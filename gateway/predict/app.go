package predict

import (
	"cmp"
	"fmt"
	"maps"
	"time"

	"github.com/topsail-serving/topsail/gateway/dispatch"
	"github.com/topsail-serving/topsail/gateway/selection"
	"github.com/topsail-serving/topsail/gateway/selection/kinds"
	"github.com/topsail-serving/topsail/gateway/state"
	"github.com/topsail-serving/topsail/internal/demand"
	"github.com/topsail-serving/topsail/serving"
)

// app is an App with everything that its queries need, looked up in advance.
type app struct {
	*serving.App
	policy   selection.Policy
	single   bool       // the policy is "single"
	learned  *state.App // what the policy keeps its states for; nil: it keeps none
	planner  planner
	members  []member         // that queries can ask, sorted
	both     []*linked        // whose serving version can be asked beside those in members
	models   []*linked        // in the order of linking, or of stages
	each     bool             // a query asks each of models, which are those of its stages
	decider  *linked          // of a custom policy: the model that decides
	class    serving.Class    // of its queries, if they ask for no lower priority
	extra    *dispatch.Budget // of asking a second replica
	tallies  *tallies         // for a policy that observes; else nil
	fallback []byte           // the default output as JSON
	margin   time.Duration
	metrics  *appMetrics
}

// SetCatalog makes the predictor answer for the apps of cat.
func (p *Predictor) SetCatalog(cat *serving.Catalog) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	versions := p.dispatch.Versions(cat)
	apps := make(map[string]*app, len(cat.Apps))
	for name, spec := range cat.Apps {
		a, err := p.compile(spec, cat, versions)
		if err != nil {
			return fmt.Errorf("app %q: %w", name, err)
		}
		apps[name] = a
	}
	if old := p.apps.Load(); old != nil {
		for name := range *old {
			if apps[name] == nil {
				p.metrics.forget(name)
				delete(p.observed, name)
			}
		}
	}
	for _, a := range apps {
		if a.tallies != nil {
			a.tallies.link(a.all())
		}
	}
	maps.DeleteFunc(p.served, func(model string, _ *served) bool { return cat.Models[model] == nil })
	p.closeTallies(cat)
	p.apps.Store(&apps)
	p.revision = cat.Revision
	p.dispatch.Use(versions)
	return nil
}

func (p *Predictor) compile(spec *serving.App, cat *serving.Catalog, versions map[serving.Definition]*dispatch.Version) (*app, error) {
	a := &app{
		App:      spec,
		single:   spec.Policy.KindName() == serving.PolicySingle,
		class:    serving.Class{App: spec.Name, Priority: spec.Priority, Weight: cmp.Or(spec.Weight, 1), MinShare: spec.MinShare},
		extra:    p.extraOf(spec),
		fallback: serving.AppendText(nil, []byte(spec.DefaultOutput)),
		margin:   min(spec.SLO.Std()/20, maxMargin),
		metrics:  p.metrics.app(spec.Name, spec.SLO.Std()),
	}
	for _, name := range spec.Models {
		if m := cat.Models[name]; m != nil {
			a.models = append(a.models, p.link(a, m, cat, versions))
		}
	}
	if m := cat.Models[spec.Policy.Model]; m != nil && spec.Policy.Kind == serving.PolicyCustom {
		a.decider = p.link(a, m, cat, versions)
	}
	a.planner = choice{}
	if len(spec.Stages) > 0 {
		a.planner, a.each = p.compileStages(a, cat, versions), true
	}
	var err error
	if a.policy, err = kinds.New(spec, decider{p, spec.Name}); err != nil {
		return nil, err
	}
	a.members, a.both = a.membersByOrder()
	if learner, ok := a.policy.(selection.Learner); ok {
		a.learned = state.NewApp(spec.Name, spec.Policy, learner, Learned(spec, cat))
	}
	if _, ok := a.policy.(selection.Observer); ok {
		if p.observed[spec.Name] == nil {
			p.observed[spec.Name] = newTallies(p.urgent)
		}
		a.tallies = p.observed[spec.Name]
	} else {
		delete(p.observed, spec.Name)
	}
	return a, nil
}

// extraOf is the budget of an app's calls beyond the first: the gateway's, or its own
// where its policy names a share, which it keeps from catalog to catalog.
func (p *Predictor) extraOf(spec *serving.App) *dispatch.Budget {
	if spec.Policy.Kind != serving.PolicyHedge || spec.Policy.Share == 0 {
		return p.dispatch.Extra
	}
	if old, err := p.app(spec.Name); err == nil && old.Policy.Kind == serving.PolicyHedge && old.Policy.Share == spec.Policy.Share {
		return old.extra
	}
	return dispatch.NewBudget(spec.Policy.Share)
}

// tally is the count of a version, one for all apps. p.mu is held.
func (p *Predictor) tally(id serving.ModelID) *demand.Tally {
	t, known := p.tallies[id]
	if !known {
		t = p.Demand.Open(id, nil)
		p.tallies[id] = t
	}
	return t
}

// closeTallies drops those of versions that are no longer in the catalog. p.mu is held.
func (p *Predictor) closeTallies(cat *serving.Catalog) {
	for id, t := range p.tallies {
		if m := cat.Models[id.Model]; m == nil || m.Versions[id.Version] == nil {
			t.Close()
			delete(p.tallies, id)
		}
	}
}

package predict

import (
	"cmp"
	"slices"

	"github.com/topsail-serving/topsail/gateway/cache"
	"github.com/topsail-serving/topsail/gateway/dispatch"
	"github.com/topsail-serving/topsail/gateway/selection"
	"github.com/topsail-serving/topsail/internal/demand"
	"github.com/topsail-serving/topsail/serving"
)

// linked is a model as one app uses it.
type linked struct {
	name     string
	takes    serving.InputType // what versions must take to be asked; 0: anything
	current  *version          // nil when none is
	versions map[string]*version
	served   *served
}

// version is a model version as one app uses it.
type version struct {
	serving.Definition
	inputType   serving.InputType // not the app's for some old versions: they cannot be asked
	inputLength int
	signature   *serving.Signature
	misfits     error   // why the app's inputs are not this version's, or its outputs not the app's; nil: they are
	session     bool    // its answers depend on user and context
	cost        float64 // as declared; 0: not
	of          *linked
	keyer       cache.Keyer
	demand      *demand.Tally
	replicas    *dispatch.Version
	metrics     func() *memberMetrics // nil where they would say the same as the app's
	tally       *tally                // nil: the app's policy does not observe
	next        *version              // the same in replicas of the host's next version; nil: there is none
}

// member is one of those that an app's queries can ask: a model, whose
// version is the serving one unless it is pinned.
type member struct {
	*linked
	pinned *version
}

func (p *Predictor) link(a *app, m *serving.Model, cat *serving.Catalog, versions map[serving.Definition]*dispatch.Version) *linked {
	if p.served[m.Name] == nil {
		p.served[m.Name] = newServed()
	}
	p.served[m.Name].learn(m)
	l := &linked{name: m.Name, takes: a.InputType, versions: make(map[string]*version, len(m.Versions)), served: p.served[m.Name]}
	for name, v := range m.Versions {
		definitions := cat.Definitions(v)
		for _, d := range slices.Backward(definitions) {
			one := &version{
				Definition: d, inputType: v.InputType, inputLength: v.InputLength, cost: a.Policy.Costs[m.Name],
				keyer: cache.NewKeyer(d, a.Cache.Round), of: l, demand: p.tally(dispatch.HostOf(cat, v)), replicas: versions[d], next: l.versions[name],
			}
			one.signature, one.session, one.misfits = v.Signature, v.Session, a.Signature.Accepts(v.Signature)
			if a.Policy.KindName() != serving.PolicySingle {
				one.metrics = p.metrics.member(a.Name, v.ModelID)
			}
			l.versions[name] = one
		}
	}
	l.current = l.versions[m.Current]
	return l
}

// onHost is the version as the host's ready replicas serve it: those of the serving version, else
// of the next one. The version may be nil.
func (v *version) onHost() *version {
	if v == nil || v.next == nil || v.replicas.Hosted() || !v.next.replicas.Hosted() {
		return v
	}
	return v.next
}

// membersByOrder are those that the app's queries can ask, sorted as policies want them: its
// models, or the versions of them that the policy names. Those models whose serving
// version can be asked beside versions that are named are in both.
func (a *app) membersByOrder() (members []member, both []*linked) {
	pins := a.Pins()
	for _, l := range a.models {
		pinned := false
		for _, id := range pins {
			if v := l.versions[id.Version]; id.Model == l.name {
				pinned = true
				if v.takes(a.InputType) {
					members = append(members, member{l, v})
				}
			}
		}
		switch {
		case !pinned:
			members = append(members, member{linked: l})
		case meansServing(a.App, l.name):
			both = append(both, l)
		}
	}
	slices.SortFunc(members, func(x, y member) int {
		return cmp.Or(cmp.Compare(x.name, y.name), cmp.Compare(x.pinned.name(), y.pinned.name()))
	})
	members = slices.CompactFunc(members, func(x, y member) bool { return x.linked == y.linked && x.pinned == y.pinned })
	return members, both
}

// meansServing says whether the policy means the serving version of a model, of which
// it names versions.
func meansServing(a *serving.App, model string) bool {
	switch a.Policy.Kind {
	case serving.PolicyVersions:
		return true
	case serving.PolicyShadow:
		if a.Policy.Model == "" && model == a.Models[0] {
			return true
		}
	}
	return slices.Contains(a.Policy.Names(), model)
}

// version is the one that takes queries now; nil when there is none.
func (m *member) version(a *app) (v *version, ready bool) {
	if m.pinned != nil {
		v = m.pinned.onHost()
		return v, v.ready()
	}
	return a.serving(m.linked)
}

// takes says whether the version can be asked by an app that takes inputs of a type; 0 is a stage of
// an app, whose inputs are made to fit.
func (v *version) takes(t serving.InputType) bool {
	return v != nil && (t == 0 || v.inputType == t && v.misfits == nil)
}

// pins says whether the policy names a version.
func (a *app) pins(v *version) bool {
	return slices.ContainsFunc(a.members, func(m member) bool { return m.pinned != nil && m.pinned.ModelID == v.ModelID })
}

func (v *version) name() string {
	if v == nil {
		return ""
	}
	return v.Version
}

// Learned are the model versions of a catalog that an app's policy keeps a state of, as
// they are defined, sorted: those that it names, and of the other linked models those that
// serve.
func Learned(a *serving.App, cat *serving.Catalog) (learned []serving.Definition) {
	pins := a.Pins()
	add := func(id serving.ModelID) bool {
		v := cat.Version(id)
		if v == nil || v.InputType != a.InputType || a.Signature.Accepts(v.Signature) != nil {
			return false
		}
		learned = append(learned, cat.Definitions(v)[0])
		return true
	}
	for _, name := range a.Models {
		pinned := false
		for _, id := range pins {
			if id.Model == name {
				pinned = true
				add(id)
			}
		}
		if m := cat.Models[name]; m != nil && (!pinned || meansServing(a, name)) {
			_ = add(serving.ModelID{Model: name, Version: m.Serving}) || add(serving.ModelID{Model: name, Version: m.Current})
		}
	}
	slices.SortFunc(learned, func(a, b serving.Definition) int { return a.ModelID.Compare(b.ModelID) })
	return slices.Compact(learned)
}

// candidates appends the members that can be asked now, and their versions.
func (a *app) candidates(to []selection.Candidate, versions []*version) ([]selection.Candidate, []*version) {
	for i := range a.members {
		if v, ready := a.members[i].version(a); v != nil {
			to, versions = append(to, a.candidate(v, ready)), append(versions, v)
		}
	}
	for _, l := range a.both {
		if v, ready := a.serving(l); v != nil {
			to, versions = a.insert(to, versions, v, ready)
		}
	}
	return to, versions
}

// insert puts a version into its place, unless it is there.
func (a *app) insert(to []selection.Candidate, versions []*version, v *version, ready bool) ([]selection.Candidate, []*version) {
	at, there := slices.BinarySearchFunc(to, v.ModelID, func(c selection.Candidate, id serving.ModelID) int { return c.ModelID.Compare(id) })
	if there {
		return to, versions
	}
	return slices.Insert(to, at, a.candidate(v, ready)), slices.Insert(versions, at, v)
}

// candidate is a version as policies see it; "single" has no use for times and costs.
func (a *app) candidate(v *version, ready bool) selection.Candidate {
	if a.single {
		return selection.Candidate{ModelID: v.ModelID, Ready: ready}
	}
	median, p95 := v.replicas.Latency()
	cost := v.cost
	if cost == 0 {
		cost = max(median.Seconds()*1000, leastCost)
	}
	return selection.Candidate{ModelID: v.ModelID, Ready: ready, Cost: cost, Median: median, P95: p95}
}

// leastCost is what asking costs that takes no time, or an unknown one; a model that
// takes a millisecond costs 1.
const leastCost = 0.01

// find looks up a version of a model that the app links, or that decides for it, as it can
// be asked now.
func (a *app) find(id serving.ModelID) *version {
	if a.each {
		return nil // it is asked about what those before it put out
	}
	return a.lookUp(id).onHost()
}

// lookUp is a version of a model that the app asks, held by the host that serves.
func (a *app) lookUp(id serving.ModelID) *version {
	for _, l := range a.models {
		if l.name == id.Model {
			return l.versions[id.Version]
		}
	}
	if a.decider != nil && a.decider.name == id.Model {
		return a.decider.versions[id.Version]
	}
	return nil
}

// all are the versions that the app may ask.
func (a *app) all() (versions []*version) {
	models := a.models
	if a.decider != nil {
		models = append(slices.Clip(models), a.decider)
	}
	for _, l := range models {
		for _, v := range l.versions {
			for ; v != nil; v = v.next {
				versions = append(versions, v)
			}
		}
	}
	return versions
}

// defines says whether a version that the app asks is what d says.
func (a *app) defines(d serving.Definition) bool {
	if a.each {
		return false
	}
	for v := a.lookUp(d.ModelID); v != nil; v = v.next {
		if v.Definition == d {
			return true
		}
	}
	return false
}

// successor is the present definition of a version that has been replaced since the app was looked
// up; nil: it was deleted.
func (p *Predictor) successor(app string, id serving.ModelID) *version {
	a, err := p.app(app)
	if err != nil {
		return nil
	}
	return a.lookUp(id).onHost()
}

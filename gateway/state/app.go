package state

import (
	"slices"
	"time"

	"github.com/topsail-serving/topsail/gateway/selection"
	"github.com/topsail-serving/topsail/serving"
)

// App is the policy of one app as the gateway has compiled it. It is immutable.
type App struct {
	name, kind string
	learner    selection.Learner
	models     []serving.Definition // sorted by version
	fresh      *selection.State     // before any feedback
	byVersion  bool                 // the policy chooses between versions, not between models
	perUser    bool
	perContext bool
	keep       time.Duration // what is known of a model that is not linked any more
}

// NewApp compiles a policy that learns. Models are the linked models, each in the
// version that serves; for kind "versions" they are all versions that it names.
func NewApp(name string, spec serving.PolicySpec, learner selection.Learner, models []serving.Definition) *App {
	models = slices.SortedFunc(slices.Values(models), func(a, b serving.Definition) int { return a.ModelID.Compare(b.ModelID) })
	models = slices.Compact(models)
	_, observes := learner.(selection.Observer)
	a := &App{
		name: name, kind: spec.KindName(), learner: learner, models: models,
		byVersion: spec.KindName() == serving.PolicyVersions,
		// What an Observer sees goes into the app's state. A user with a state of
		// his own would never hear of it.
		perUser:    spec.PerUser() && !observes,
		perContext: spec.PerContext() && !observes,
		keep:       spec.Record(),
	}
	a.fresh = a.begin()
	return a
}

// begin is the state before any feedback.
func (a *App) begin() *selection.State {
	ids := make([]serving.ModelID, len(a.models))
	for i, d := range a.models {
		ids[i] = d.ModelID
	}
	s := a.learner.New(ids)
	for _, d := range a.models {
		s = a.mark(s, d)
	}
	return s
}

// mark notes what is known of a model version as known of its definition.
func (a *App) mark(s *selection.State, d serving.Definition) *selection.State {
	at := a.place(s, d.ModelID)
	if at < 0 || s.Models[at].Generation == d.Generation {
		return s
	}
	s = s.Clone()
	s.Models[at].Generation = d.Generation
	return s
}

// Fresh is the state before any feedback.
func (a *App) Fresh() *selection.State { return a.fresh }

// key names the state that a query or a feedback uses.
func (a *App) key(user, context string) serving.StateKey {
	k := serving.StateKey{App: a.name, Kind: a.kind}
	if a.perUser {
		k.User = user
	}
	if a.perContext {
		k.Context = context
	}
	return k
}

// parent names the state with which k's begins when it has none of its own: the
// context's after the user's, and the app's last, which has none.
func parent(k serving.StateKey) (_ serving.StateKey, ok bool) {
	switch {
	case k.User != "":
		k.User = ""
	case k.Context != "":
		k.Context = ""
	default:
		return k, false
	}
	return k, true
}

// place is where the state keeps what it knows of a model, or -1.
func (a *App) place(s *selection.State, id serving.ModelID) int {
	if a.byVersion {
		return s.FindVersion(id)
	}
	return s.Find(id.Model)
}

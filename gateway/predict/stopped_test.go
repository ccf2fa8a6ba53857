package predict

import (
	"maps"
	"testing"

	"github.com/topsail-serving/topsail/gateway/selection"
	"github.com/topsail-serving/topsail/gateway/state"
	"github.com/topsail-serving/topsail/serving"
)

// noting has policies say something of their models.
type noting struct{}

func (noting) Get(a *state.App, _, _ string) *selection.State {
	s := *a.Fresh()
	s.Note = "version 2 was stopped"
	return &s
}

func TestStopped(t *testing.T) {
	bubble(t, func(r *rig) {
		if why := r.p.Stopped(); len(why) != 0 {
			t.Errorf("without a catalog: %v", why)
		}
		one, two := id("m", "1"), id("m", "2")
		trying, learning, single := newApp("trying", "m"), newApp("learning", "m"), newApp("single", "m")
		trying.Policy = serving.PolicySpec{Kind: serving.PolicyVersions, Canary: "2"}
		learning.Policy = serving.PolicySpec{Kind: serving.PolicyExp3}
		r.set(newCatalog([]*serving.App{trying, learning, single}, newModel(one, two)))
		if got, want := r.p.Stopped(), map[string]string{"trying": ""}; !maps.Equal(got, want) {
			t.Errorf("before anything is known: %v, want %v", got, want)
		}
		r.p.states = noting{}
		if got, want := r.p.Stopped(), map[string]string{"trying": "version 2 was stopped"}; !maps.Equal(got, want) {
			t.Errorf("%v, want %v", got, want)
		}
	})
}

package predict

import (
	"reflect"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/gateway/selection"
	"github.com/topsail-serving/topsail/gateway/selection/rollout"
	"github.com/topsail-serving/topsail/gateway/state"
	"github.com/topsail-serving/topsail/serving"
)

// observing has seen answers of the versions that a policy tries.
type observing []selection.Tally

func (o observing) Get(a *state.App, _, _ string) *selection.State {
	v := rollout.NewVersions(serving.PolicySpec{Canary: "2"}, []string{"m"})
	return v.Observe(a.Fresh(), o, time.Unix(1e9, 0))
}

func TestWithdrawn(t *testing.T) {
	bubble(t, func(r *rig) {
		if all := r.p.Withdrawn(); len(all) != 0 {
			t.Errorf("without a catalog: %v", all)
		}
		one, two := id("m", "1"), id("m", "2")
		trying, learning, single := newApp("trying", "m"), newApp("learning", "m"), newApp("single", "m")
		trying.Policy = serving.PolicySpec{Kind: serving.PolicyVersions, Canary: "2"}
		learning.Policy = serving.PolicySpec{Kind: serving.PolicyExp3}
		r.set(newCatalog([]*serving.App{trying, learning, single}, newModel(one, two)))
		for name, seen := range map[string]struct {
			of        observing
			withdrawn bool
		}{
			"before anything is known":  {nil, false},
			"of one that is as good":    {observing{{ModelID: one, Answers: 100}, {ModelID: two, Answers: 100}}, false},
			"of one that fails all day": {observing{{ModelID: one, Answers: 500}, {ModelID: two, Failures: 50}}, true},
		} {
			r.p.states = seen.of
			want := map[string]map[serving.ModelID]bool{"trying": {two: seen.withdrawn}}
			if got := r.p.Withdrawn(); !reflect.DeepEqual(got, want) {
				t.Errorf("%s: %v, want %v", name, got, want)
			}
		}
	})
}

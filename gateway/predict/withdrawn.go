package predict

import (
	"github.com/topsail-serving/topsail/gateway/selection/rollout"
	"github.com/topsail-serving/topsail/serving"
)

// Withdrawn are, for each app whose policy tries versions, those that it tries, and whether it has
// withdrawn them, as far as this gateway knows.
func (p *Predictor) Withdrawn() map[string]map[serving.ModelID]bool {
	apps := p.apps.Load()
	if apps == nil {
		return nil
	}
	all := map[string]map[serving.ModelID]bool{}
	for name, a := range *apps {
		trying, ok := a.policy.(*rollout.Versions)
		if !ok || a.learned == nil {
			continue
		}
		tried := map[serving.ModelID]bool{}
		for _, id := range a.Pins() {
			tried[id] = false
		}
		for _, id := range trying.Withdrawn(p.states.Get(a.learned, "", "")) {
			tried[id] = true
		}
		all[name] = tried
	}
	return all
}

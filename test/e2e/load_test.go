package e2e

import (
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/serving"
)

// Two apps ask three models, two of which cannot keep up: these are left out rather than objectives
// missed, and the apps share what there is of them by their weights.
func TestUnderLoadOptionalModelsAreLeftOut(t *testing.T) {
	const slo = 100 * time.Millisecond
	bubble(t, func(s *story) {
		s.deploy("quick", sum)
		for _, name := range []string{"slow1", "slow2"} {
			v := s.version(name, "1")
			v.Batch = serving.BatchSpec{Strategy: "fixed", MaxSize: 1}
			s.replica(v, model(sum).after(19*time.Millisecond)) // 50 a second
		}
		policy := serving.PolicySpec{Kind: serving.PolicyMean, Weights: map[string]float64{"quick": 2, "slow1": 1, "slow2": 1}}
		for app, weight := range map[string]float64{"gold": 3, "iron": 1} {
			a := s.app(app, policy, "quick", "slow1", "slow2")
			a.SLO, a.Weight = serving.Duration(slo), weight
		}
		e := s.gateway(nil)
		e.flood(3 * time.Second) // until it is known how much there is to share
		asked := map[string]int{}
		for app, answers := range e.flood(4 * time.Second) {
			for _, a := range answers {
				if a.Default || a.Output != 3.0 || a.took > slo || slices.Contains(a.Missing, "quick:1") {
					t.Errorf("%s gets %s after %v, want 3 of the quick model at least, within %v", app, a.text, a.took, slo)
				}
				if !slices.Contains(a.Shed, "slow1:1") {
					asked[app]++
				}
			}
		}
		if gold, iron := asked["gold"], asked["iron"]; gold < 3*iron-10 || gold > 3*iron+10 || gold+iron < 160 || gold+iron > 200 {
			t.Errorf("a slow model was asked %d and %d times, want 3 to 1, and most of the 200 that it can answer", gold, iron)
		}
	})
}

// flood asks each app 125 times a second for a time.
func (e *edge) flood(of time.Duration) map[string][]answer {
	const every = 8 * time.Millisecond
	answers := map[string][]answer{"gold": make([]answer, of/every), "iron": make([]answer, of/every)}
	var running sync.WaitGroup
	for app, list := range answers {
		for i := range list {
			running.Go(func() {
				time.Sleep(time.Duration(i) * every)
				list[i] = e.ask(app, `{"input":[3],"no_cache":true}`)
			})
		}
	}
	running.Wait()
	return answers
}

package bandit

import (
	"testing"

	"github.com/topsail-serving/topsail/gateway/selection"
	"github.com/topsail-serving/topsail/gateway/selection/conformance"
	"github.com/topsail-serving/topsail/serving"
)

// kinds makes each policy.
var kinds = map[string]func(serving.PolicySpec, []string) selection.Learner{
	serving.PolicyEpsilonGreedy: func(s serving.PolicySpec, links []string) selection.Learner { return NewEpsilonGreedy(s, links) },
	serving.PolicyUCB1:          func(s serving.PolicySpec, links []string) selection.Learner { return NewUCB1(s, links) },
	serving.PolicyThompson:      func(s serving.PolicySpec, links []string) selection.Learner { return NewThompson(s, links) },
	serving.PolicyExp3:          func(s serving.PolicySpec, links []string) selection.Learner { return NewExp3(s, links) },
	serving.PolicyLinUCB:        func(s serving.PolicySpec, links []string) selection.Learner { return NewLinUCB(s, links) },
}

func TestConformance(t *testing.T) {
	for kind, make := range kinds {
		for option, spec := range map[string]serving.PolicySpec{
			"by default":           {},
			"forgetful":            {Discount: 0.5, Mixing: 0.5},
			"remembering, by cost": {Discount: 1, Mixing: 1e-9, ByCost: true},
		} {
			t.Run(kind+" "+option, func(t *testing.T) {
				conformance.Run(t, conformance.Case{
					New:       func(links []string) selection.Policy { return make(spec, links) },
					Output:    conformance.Label,
					Uncounted: kind == serving.PolicyThompson,
				})
			})
		}
	}
}

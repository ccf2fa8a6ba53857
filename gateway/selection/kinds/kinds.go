// Package kinds makes the policies that apps name.
package kinds

import (
	"fmt"

	"github.com/topsail-serving/topsail/gateway/selection"
	"github.com/topsail-serving/topsail/gateway/selection/bandit"
	"github.com/topsail-serving/topsail/gateway/selection/custom"
	"github.com/topsail-serving/topsail/gateway/selection/ensemble"
	"github.com/topsail-serving/topsail/gateway/selection/rollout"
	"github.com/topsail-serving/topsail/gateway/selection/speculative"
	"github.com/topsail-serving/topsail/serving"
)

// New makes the policy of an app; a custom one asks its model by way of asker.
func New(app *serving.App, asker custom.Asker) (selection.Policy, error) {
	return of(app, &app.Policy, asker)
}

func of(app *serving.App, spec *serving.PolicySpec, asker custom.Asker) (selection.Policy, error) {
	links, output := app.Models, spec.OutputOf(app.Outputs())
	switch spec.KindName() {
	case serving.PolicySingle:
		return rollout.NewSingle(*spec, links), nil
	case serving.PolicyVersions:
		return rollout.NewVersions(*spec, links), nil
	case serving.PolicyShadow:
		return rollout.NewShadow(*spec, links), nil
	case serving.PolicyEpsilonGreedy:
		return bandit.NewEpsilonGreedy(*spec, links), nil
	case serving.PolicyUCB1:
		return bandit.NewUCB1(*spec, links), nil
	case serving.PolicyThompson:
		return bandit.NewThompson(*spec, links), nil
	case serving.PolicyExp3:
		return bandit.NewExp3(*spec, links), nil
	case serving.PolicyLinUCB:
		return bandit.NewLinUCB(*spec, links), nil
	case serving.PolicyExp4:
		return ensemble.NewExp4(*spec, links, output), nil
	case serving.PolicyVote:
		return ensemble.NewVote(*spec, links, output), nil
	case serving.PolicyMean:
		return ensemble.NewMean(*spec, links, output), nil
	case serving.PolicyMedian:
		return ensemble.NewMedian(*spec, links, output), nil
	case serving.PolicyBest:
		return ensemble.NewBest(*spec, links, output), nil
	case serving.PolicyLogistic:
		return ensemble.NewLogistic(*spec, links, output), nil
	case serving.PolicyStacking:
		return ensemble.NewStacking(*spec, links, output), nil
	case serving.PolicyGuaranteed:
		return speculative.NewGuaranteed(*spec, links), nil
	case serving.PolicyFirstAcceptable:
		return speculative.NewFirstAcceptable(*spec, links), nil
	case serving.PolicyHedge:
		return speculative.NewHedge(*spec, links), nil
	case serving.PolicyCascade:
		return speculative.NewCascade(*spec, links), nil
	case serving.PolicyPrefer:
		return speculative.NewPrefer(*spec, links), nil
	case serving.PolicyCustom:
		fallback, err := fallbackOf(app, asker)
		if err != nil {
			return nil, err
		}
		return custom.New(app.Name, *spec, fallback, asker), nil
	}
	return nil, fmt.Errorf("selection policy %q is unknown: use one of %v", spec.Kind, serving.PolicyKinds())
}

// fallbackOf is what decides in place of a custom policy.
func fallbackOf(app *serving.App, asker custom.Asker) (selection.Policy, error) {
	spec := app.Policy.Fallback
	if spec == nil {
		spec = &serving.PolicySpec{}
	}
	if spec.Learns() {
		return nil, fmt.Errorf("the fallback %q of a custom policy keeps a state: use one that does not", spec.Kind)
	}
	return of(app, spec, asker)
}

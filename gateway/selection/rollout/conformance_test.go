package rollout

import (
	"testing"

	"github.com/topsail-serving/topsail/gateway/selection"
	"github.com/topsail-serving/topsail/gateway/selection/conformance"
	"github.com/topsail-serving/topsail/serving"
)

func TestConformance(t *testing.T) {
	for name, c := range map[string]conformance.Case{
		"single": {Ordered: true, New: func(links []string) selection.Policy {
			return NewSingle(serving.PolicySpec{}, links)
		}},
		"shadow": {Ordered: true, New: func(links []string) selection.Policy {
			return NewShadow(serving.PolicySpec{Kind: serving.PolicyShadow, Share: 0.5}, links)
		}},
		"canary": {Single: true, New: func(links []string) selection.Policy {
			return NewVersions(serving.PolicySpec{Kind: serving.PolicyVersions, Canary: "vm0001", RampSeconds: 60}, links)
		}},
		"weights": {Single: true, New: func(links []string) selection.Policy {
			weights := map[string]float64{"vm0000": 5, "vm0001": 1, "vm0002": 1, "gone": 1}
			return NewVersions(serving.PolicySpec{Kind: serving.PolicyVersions, Weights: weights, Sticky: true}, links)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			c.Output = conformance.Label
			conformance.Run(t, c)
		})
	}
}

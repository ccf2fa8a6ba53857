package speculative

import (
	"testing"

	"github.com/topsail-serving/topsail/gateway/selection"
	"github.com/topsail-serving/topsail/gateway/selection/conformance"
	"github.com/topsail-serving/topsail/serving"
)

func TestConformance(t *testing.T) {
	for name, newPolicy := range map[string]func(links []string) selection.Policy{
		"guaranteed": func(links []string) selection.Policy {
			return NewGuaranteed(serving.PolicySpec{WithinMicros: 10_000}, links)
		},
		"first acceptable": func(links []string) selection.Policy {
			return NewFirstAcceptable(serving.PolicySpec{WithinMicros: 15_000}, links)
		},
		"hedge":   func(links []string) selection.Policy { return NewHedge(serving.PolicySpec{}, links) },
		"cascade": func(links []string) selection.Policy { return NewCascade(serving.PolicySpec{}, links) },
		"prefer":  func(links []string) selection.Policy { return NewPrefer(serving.PolicySpec{}, links) },
		"cascade by cost": func(links []string) selection.Policy {
			return NewCascade(serving.PolicySpec{Costs: map[string]float64{"m0000": 2}}, links)
		},
	} {
		t.Run(name, func(t *testing.T) {
			conformance.Run(t, conformance.Case{New: newPolicy, Output: conformance.Label, Ordered: true})
		})
	}
}

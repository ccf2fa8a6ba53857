package ensemble

import (
	"github.com/topsail-serving/topsail/gateway/selection"
	"github.com/topsail-serving/topsail/serving"
)

// Mean answers the mean of the models' numbers, or of their vectors element by
// element, with declared weights if there are any. It waits for every model, and
// leaves out those that fail or do not come in time.
type Mean struct {
	panel
	takes serving.OutputType
}

// NewMean makes the policy of a spec.
func NewMean(spec serving.PolicySpec, links []string, output serving.OutputType) *Mean {
	return &Mean{panel: newPanel(&spec, links), takes: spec.OutputOf(output)}
}

// Combine implements selection.Policy.
func (m *Mean) Combine(_ *selection.State, plan *selection.Plan, answers []selection.Answer, at selection.Moment) selection.Decision {
	return average(plan, answers, m.takes, at)
}

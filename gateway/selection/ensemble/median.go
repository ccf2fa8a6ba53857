package ensemble

import (
	"slices"

	"github.com/topsail-serving/topsail/gateway/selection"
	"github.com/topsail-serving/topsail/serving"
)

// Median answers the median of the models' numbers, or of their vectors element by
// element: a few models that are far off do not move it. It waits for every model, and
// leaves out those that fail or do not come in time.
type Median struct {
	panel
	takes serving.OutputType
}

// NewMedian makes the policy of a spec.
func NewMedian(spec serving.PolicySpec, links []string, output serving.OutputType) *Median {
	return &Median{panel: newPanel(&spec, links), takes: spec.OutputOf(output)}
}

// Combine implements selection.Policy.
func (m *Median) Combine(_ *selection.State, plan *selection.Plan, answers []selection.Answer, at selection.Moment) selection.Decision {
	why, over := ended(answers, at)
	if !over {
		return selection.Decision{}
	}
	t := gather(plan, answers, m.takes)
	if t.rows() == 0 {
		return failed(plan, answers, m.takes, why)
	}
	column := plan.Scratch[len(t.cells):len(t.cells)] // what is left of the scratch memory
	return made(t.value(m.takes, func(at int) float64 {
		column = column[:0]
		for row := 0; row < len(t.cells); row += t.width {
			column = append(column, t.cells[row+at])
		}
		return median(column)
	}), why)
}

// median is the middle of a list, which it sorts.
func median(list []float64) float64 {
	slices.Sort(list)
	middle := len(list) / 2
	if len(list)%2 == 1 {
		return list[middle]
	}
	return list[middle-1]/2 + list[middle]/2 // halved first: their sum may be too large
}

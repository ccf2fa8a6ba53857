package ensemble

import (
	"cmp"
	"math"

	"github.com/topsail-serving/topsail/gateway/selection"
	"github.com/topsail-serving/topsail/serving"
)

// Stacking answers the weighted mean of the models' numbers or vectors, and learns the
// weights that make it closest to the labels: feedback by a plain reward teaches it
// nothing. It begins with the plain mean.
//
// The weights take exponentiated gradient steps on the squared error (Kivinen and
// Warmuth, 1997), with the error and the models' distances from the answer divided by
// the range of all that was said and the label. So they stay positive and add up to
// one, a step is at most exp(eta) for one number whatever the label, and nothing
// depends on the units of the numbers.
type Stacking struct {
	weighted
	takes serving.OutputType
	eta   float64
}

const (
	defaultStackingEta = 0.2
	stackingMixing     = 0.001 // little: it is for models that change
)

// NewStacking makes the policy of a spec.
func NewStacking(spec serving.PolicySpec, links []string, output serving.OutputType) *Stacking {
	return &Stacking{
		weighted: weighted{newPanel(&spec, links), serving.PolicyStacking, stackingMixing},
		takes:    spec.OutputOf(output),
		eta:      cmp.Or(spec.Eta, defaultStackingEta),
	}
}

// Combine implements selection.Policy.
func (p *Stacking) Combine(_ *selection.State, plan *selection.Plan, answers []selection.Answer, at selection.Moment) selection.Decision {
	return average(plan, answers, p.takes, at)
}

// Train implements selection.Learner.
func (p *Stacking) Train(s *selection.State, f *selection.Feedback) *selection.State {
	n := s.Clone()
	if f.Label == nil {
		return n
	}
	label, ok := appendNumbers(nil, f.Label, p.takes)
	if !ok || len(label) == 0 {
		return n
	}
	p.normalise(n)
	t := table{width: 1 + len(label)}
	var steps []step
	for i := range f.Outcomes {
		o := &f.Outcomes[i]
		at := n.Find(o.Model)
		if at < 0 || o.Output == nil || !p.has(o.Model) {
			continue
		}
		weight := math.Exp(n.Models[at].Weight) / float64(len(n.Models))
		row, ok := appendNumbers([]float64{weight}, o.Output, p.takes)
		if ok && len(row) == t.width {
			t.cells = append(t.cells, row...)
			steps = append(steps, step{at: at})
		}
	}
	for i, y := range label {
		t.descend(1+i, y, p.eta/float64(len(label)), steps)
	}
	p.learn(n, steps)
	return n
}

// descend adds the steps for one column, whose label is y.
func (t *table) descend(column int, y, eta float64, steps []step) {
	low, high := y, y
	for row := range steps {
		x := t.cells[row*t.width+column]
		low, high = min(low, x), max(high, x)
	}
	span := high - low
	if span == 0 || !finite(span) {
		return // all are right, or the numbers are too large to compare
	}
	mean := t.mean(column)
	wrong := (mean - y) / span
	for row := range steps {
		steps[row].by -= eta * wrong * (t.cells[row*t.width+column] - mean) / span
	}
}

package ensemble

import (
	"cmp"

	"github.com/topsail-serving/topsail/gateway/selection"
	"github.com/topsail-serving/topsail/serving"
)

// Exp4 weighs the models by feedback: with each that is judged, a model's weight is
// multiplied by exp(−eta·loss). All that are asked are judged, so that no estimate of
// what was not seen is needed: it is Exp4 (Auer, Cesa-Bianchi, Freund and Schapire,
// 2002) with full information, or Hedge. Labels are voted for with these weights, as
// soon as what is missing can change nothing; of numbers and vectors the answer is the
// weighted mean.
type Exp4 struct {
	weighted
	takes serving.OutputType
	eta   float64
}

// The defaults are such that a vote of models that are nearly as good as the best
// stays a vote, and yet one that turns bad has lost its weight after some 50 pieces of
// feedback: the weights remember about 1/mixing of them.
const (
	defaultExp4Eta    = 0.2
	defaultExp4Mixing = 0.05
)

// NewExp4 makes the policy of a spec.
func NewExp4(spec serving.PolicySpec, links []string, output serving.OutputType) *Exp4 {
	return &Exp4{
		weighted: weighted{newPanel(&spec, links), serving.PolicyExp4, cmp.Or(spec.Mixing, defaultExp4Mixing)},
		takes:    spec.OutputOf(output),
		eta:      cmp.Or(spec.Eta, defaultExp4Eta),
	}
}

// Combine implements selection.Policy.
func (e *Exp4) Combine(_ *selection.State, plan *selection.Plan, answers []selection.Answer, at selection.Moment) selection.Decision {
	if e.takes == serving.OutputNumber || e.takes == serving.OutputVector {
		return average(plan, answers, e.takes, at)
	}
	return plurality(plan, answers, e.takes, at)
}

// Train implements selection.Learner.
func (e *Exp4) Train(s *selection.State, f *selection.Feedback) *selection.State {
	n := s.Clone()
	var steps []step
	for i := range f.Outcomes {
		o := &f.Outcomes[i]
		if at := n.Find(o.Model); at >= 0 && o.Judged && finite(o.Loss) && e.has(o.Model) {
			steps = append(steps, step{at, -e.eta * max(0, min(o.Loss, 1))})
		}
	}
	e.learn(n, steps)
	return n
}

package bandit

import (
	"math"

	"github.com/topsail-serving/topsail/gateway/selection"
	"github.com/topsail-serving/topsail/serving"
)

// UCB1 asks the model that may be the best, doubting what it has not seen lately.
type UCB1 struct {
	arms
	alpha, discount float64
}

// NewUCB1 makes UCB1 (Auer et al., "Finite-time analysis of the multiarmed bandit
// problem", 2002), discounted (Garivier and Moulines, "On upper-confidence bound
// policies for switching bandit problems", 2011). What is left of all that was seen, at
// each loss, is the discount, 0.998 by default: the last thousand or so count. Doubt
// counts alpha times; 1 is the papers' bound, which needs more losses than the discount
// leaves to tell good models apart, and so 0.25 is the default.
func NewUCB1(spec serving.PolicySpec, _ []string) *UCB1 {
	return &UCB1{newArms(serving.PolicyUCB1, &spec), option(spec.Alpha, 0.25), option(spec.Discount, 0.998)}
}

// Select implements selection.Policy.
func (p *UCB1) Select(s *selection.State, _ *selection.Query, candidates []selection.Candidate, plan *selection.Plan) {
	total := 0.0
	for i := range s.Models {
		n, _ := tally(&s.Models[i])
		total += n
	}
	doubt := p.alpha * math.Sqrt(2*math.Log(max(total, 1)))
	p.rankSurely(s, candidates, plan, func(m *selection.ModelState) float64 {
		n, _ := tally(m)
		if n == 0 {
			return math.MaxFloat64 // it is not known
		}
		return gain(m, 1) + doubt/math.Sqrt(n)
	})
}

// Train implements selection.Learner.
func (p *UCB1) Train(s *selection.State, f *selection.Feedback) *selection.State {
	return p.train(s, f, p.discount)
}

// Explain implements selection.Learner.
func (p *UCB1) Explain(s *selection.State) []selection.Standing { return p.standings(s) }

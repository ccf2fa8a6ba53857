package bandit

import (
	"github.com/topsail-serving/topsail/gateway/selection"
	"github.com/topsail-serving/topsail/serving"
)

// EpsilonGreedy asks the model of the least mean loss, and now and then any.
type EpsilonGreedy struct {
	arms
	epsilon, discount float64
}

// NewEpsilonGreedy tries any model for a share epsilon of the queries, 0.1 by default
// (Sutton and Barto, "Reinforcement learning", 2.2). What is left of all that was seen,
// at each loss, is the discount, 0.996 by default: the last few hundred count. So the
// mean of the model in front is of many losses, and that of one that is rarely tried is
// of its last few, which soon say that it has become better. A model that was never
// judged comes first.
func NewEpsilonGreedy(spec serving.PolicySpec, _ []string) *EpsilonGreedy {
	return &EpsilonGreedy{newArms(serving.PolicyEpsilonGreedy, &spec), option(spec.Epsilon, 0.1), option(spec.Discount, 0.996)}
}

// Select implements selection.Policy.
func (p *EpsilonGreedy) Select(s *selection.State, q *selection.Query, candidates []selection.Candidate, plan *selection.Plan) {
	p.rank(s, candidates, plan, func(m *selection.ModelState) float64 { return gain(m, 1) })
	for i := range plan.Asks {
		plan.Asks[i].Probability = p.chance(i == 0, len(plan.Asks))
	}
	lead(plan, q.Rand.Float64())
}

func (p *EpsilonGreedy) chance(best bool, of int) float64 {
	if best {
		return 1 - p.epsilon + p.epsilon/float64(of)
	}
	return p.epsilon / float64(of)
}

// Train implements selection.Learner.
func (p *EpsilonGreedy) Train(s *selection.State, f *selection.Feedback) *selection.State {
	return p.train(s, f, p.discount)
}

// Explain implements selection.Learner.
func (p *EpsilonGreedy) Explain(s *selection.State) []selection.Standing {
	list, best, of := p.standings(s), p.best(s), p.allowed(s)
	for i := range list {
		list[i].Share = 0
		if p.may(s.Models[i].Model) {
			list[i].Share = p.chance(i == best, of)
		}
	}
	return list
}

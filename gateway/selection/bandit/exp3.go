package bandit

import (
	"math"

	"github.com/topsail-serving/topsail/gateway/selection"
	"github.com/topsail-serving/topsail/serving"
)

// Exp3 asks models by weights that their losses shrink, whatever made the losses. The
// weights are logarithms in the entries' Weight; their mean is 1.
type Exp3 struct {
	arms
	gamma, eta, mixing float64
}

// NewExp3 makes Exp3 with the mixing of Exp3.S (Auer et al., "The nonstochastic
// multiarmed bandit problem", 2002). A share gamma of the queries is spread evenly, 0.1
// by default; eta, 0.1 by default, is how fast it learns; the share mixing of the weights,
// 0.0005 by default, is spread evenly at each step.
func NewExp3(spec serving.PolicySpec, _ []string) *Exp3 {
	return &Exp3{newArms(serving.PolicyExp3, &spec), option(spec.Gamma, 0.1), option(spec.Eta, 0.1), option(spec.Mixing, 0.0005)}
}

// Select implements selection.Policy.
func (p *Exp3) Select(s *selection.State, q *selection.Query, candidates []selection.Candidate, plan *selection.Plan) {
	p.rank(s, candidates, plan, logWeight)
	if len(plan.Asks) == 0 {
		return
	}
	highest, total := plan.Asks[0].Probability, 0.0
	for i := range plan.Asks {
		w := math.Exp(plan.Asks[i].Probability - highest)
		plan.Asks[i].Probability = w
		total += w
	}
	for i := range plan.Asks {
		plan.Asks[i].Probability = p.chance(plan.Asks[i].Probability/total, len(plan.Asks))
	}
	lead(plan, q.Rand.Float64())
}

// logWeight is a model's, in the bounds that Train keeps.
func logWeight(m *selection.ModelState) float64 { return min(max(m.Weight, -maxLog), maxLog) }

// maxLog bounds logarithms of weights, whatever is stored.
const maxLog = 1e6

// chance is that of a model whose part of the weights of some models this is.
func (p *Exp3) chance(part float64, of int) float64 {
	return (1-p.gamma)*part + p.gamma/float64(of)
}

// Train implements selection.Learner. A loss counts by how rare it was to see it, and
// against what is usual: a model that cannot be asked for a while neither falls behind
// nor gets ahead.
func (p *Exp3) Train(s *selection.State, f *selection.Feedback) *selection.State {
	next, usual, learned := s.Clone(), usualLoss(s), false
	judged(next, f, func(at int, loss float64, o *selection.Outcome) {
		m := &next.Models[at]
		m.Weight = logWeight(m) - p.eta*(loss-usual)/p.seen(o.Probability, len(s.Models))
		learned = true
	})
	if learned {
		p.mix(next)
	}
	return p.train(next, f, usualLeft)
}

// usualLeft is what is left, at each loss, of what is usual.
const usualLeft = 0.99

// usualLoss is the mean of the losses of late, of all models.
func usualLoss(s *selection.State) float64 {
	n, sum := 0.0, 0.0
	for i := range s.Models {
		count, losses := tally(&s.Models[i])
		n, sum = n+count, sum+losses
	}
	return sum / max(n, 1)
}

// seen is a probability that Select may have given, of so many models.
func (p *Exp3) seen(probability float64, of int) float64 {
	if !(probability > 0) {
		probability = 1 // not known: the loss counts as it is
	}
	return min(max(probability, p.gamma/float64(of)), 1)
}

// mix shares out a part of the weights, so that no model falls too far behind to come
// back, and makes their mean 1 again.
func (p *Exp3) mix(s *selection.State) {
	mean := p.meanWeight(s)
	for i := range s.Models {
		if m := &s.Models[i]; p.may(m.Model) {
			m.Weight = max(-maxLog, math.Log((1-p.mixing)*math.Exp(logWeight(m)-mean)+p.mixing))
		}
	}
}

// AddModel gives a model the mean of the others' weights.
func (p *Exp3) AddModel(s *selection.State, id serving.ModelID) *selection.State {
	next := p.arms.AddModel(s, id)
	if s.FindVersion(id) < 0 {
		next.Models[next.FindVersion(id)].Weight = p.meanWeight(s)
	}
	return next
}

// UpdateVersion halves the distance from the others, in logarithms.
func (p *Exp3) UpdateVersion(s *selection.State, id serving.ModelID) *selection.State {
	next, middle := p.arms.UpdateVersion(s, id), 0.0
	for i := range next.Models {
		middle += logWeight(&next.Models[i]) / float64(len(next.Models))
	}
	m := &next.Models[next.FindVersion(id)]
	m.Weight = (logWeight(m) + middle) / 2
	return next
}

// meanWeight is the logarithm of the mean weight of the models that may be asked.
func (p *Exp3) meanWeight(s *selection.State) float64 {
	highest, total := math.Inf(-1), 0.0
	for i := range s.Models {
		if m := &s.Models[i]; p.may(m.Model) {
			highest = max(highest, logWeight(m))
		}
	}
	for i := range s.Models {
		if m := &s.Models[i]; p.may(m.Model) {
			total += math.Exp(logWeight(m) - highest)
		}
	}
	if total == 0 {
		return 0
	}
	return highest + math.Log(total/float64(p.allowed(s)))
}

// Explain implements selection.Learner. The worth is the logarithm of the weight.
func (p *Exp3) Explain(s *selection.State) []selection.Standing {
	list, mean, of := make([]selection.Standing, len(s.Models)), p.meanWeight(s), p.allowed(s)
	for i := range s.Models {
		m := &s.Models[i]
		list[i].Worth = logWeight(m)
		if p.may(m.Model) {
			list[i].Share = p.chance(math.Exp(list[i].Worth-mean)/float64(of), of)
		}
	}
	return list
}

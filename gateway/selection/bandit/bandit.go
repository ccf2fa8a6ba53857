// Package bandit has the policies that ask one model for each query and learn from
// feedback which: epsilon-greedy, UCB1, Thompson sampling, Exp3 and LinUCB.
//
// All of them ask the model in front at once and keep the others in reserve, ranked:
// when the one that was asked fails and time is left, the next one is asked. A model
// without a replica is left out, unless none has one. A model is worth what it gains,
// which is 1 less its loss; with by_cost, worth is divided by the cost of asking.
//
// The probability of an ask is that of being asked if all before it fail: of the one in
// front, that with which it was drawn; of one in reserve, the sum of those with which it
// or any before it would have been drawn. So a model that stands in for one that always
// fails is not taken for a rare choice.
package bandit

import (
	"cmp"
	"slices"
	"strings"

	"github.com/topsail-serving/topsail/gateway/selection"
	"github.com/topsail-serving/topsail/serving"
)

// arms is what the policies share: which models they may ask, and how these answer.
type arms struct {
	kind   string
	only   []string // the models that may be asked; nil: all
	byCost bool
}

func newArms(kind string, spec *serving.PolicySpec) arms {
	a := arms{kind: kind, byCost: spec.ByCost}
	for _, name := range spec.Models {
		model, _, _ := strings.Cut(name, ":") // the gateway has seen to the version
		a.only = append(a.only, model)
	}
	return a
}

func (a *arms) may(model string) bool { return a.only == nil || slices.Contains(a.only, model) }

// rank plans to ask the candidates by their worth, the best first and alone. It leaves
// their worth where the policy puts their probabilities.
func (a *arms) rank(s *selection.State, candidates []selection.Candidate, plan *selection.Plan, worth func(*selection.ModelState) float64) {
	type arm struct {
		at    int
		worth float64
	}
	var placeMemory [few]int
	var armMemory [few]arm
	places, list := s.Places(placeMemory[:0], candidates), armMemory[:0]
	ready := slices.ContainsFunc(candidates, func(c selection.Candidate) bool { return c.Ready && a.may(c.Model) })
	for i := range candidates {
		c := &candidates[i]
		if places[i] >= 0 && c.Ready == ready && a.may(c.Model) {
			list = append(list, arm{i, a.forCost(worth(&s.Models[places[i]]), c.Cost)})
		}
	}
	slices.SortFunc(list, func(x, y arm) int { return cmp.Or(cmp.Compare(y.worth, x.worth), x.at-y.at) })
	for _, arm := range list {
		plan.Add(arm.at, &candidates[arm.at], arm.worth, 1) // the model that answers is the whole answer
	}
	plan.Alone, plan.Now = true, min(1, len(plan.Asks))
}

// few is up to how many candidates are ranked without the heap.
const few = 64

// rankSurely is rank where chance has no part.
func (a *arms) rankSurely(s *selection.State, candidates []selection.Candidate, plan *selection.Plan, worth func(*selection.ModelState) float64) {
	a.rank(s, candidates, plan, worth)
	for i := range plan.Asks {
		plan.Asks[i].Probability = 1
	}
}

func (a *arms) forCost(worth, cost float64) float64 {
	if !a.byCost || !(cost > 0) || worth < 0 {
		return worth
	}
	return worth / cost
}

// lead draws the model to ask, by the probabilities of the asks, from x in [0, 1). It puts that
// one in front and makes the probabilities those that feedback gets.
func lead(plan *selection.Plan, x float64) {
	if len(plan.Asks) == 0 {
		return
	}
	drawn := len(plan.Asks) - 1
	for i := range drawn {
		if x -= plan.Asks[i].Probability; x < 0 {
			drawn = i
			break
		}
	}
	first := plan.Asks[drawn]
	copy(plan.Asks[1:drawn+1], plan.Asks[:drawn])
	plan.Asks[0] = first
	for i := 1; i < len(plan.Asks); i++ {
		plan.Asks[i].Probability = min(1, plan.Asks[i-1].Probability+plan.Asks[i].Probability)
	}
}

// Combine answers with the first output in the order of the plan, and opens the next
// ask when those before it have failed and time is left.
func (a *arms) Combine(_ *selection.State, plan *selection.Plan, answers []selection.Answer, at selection.Moment) selection.Decision {
	over := at.Final || at.Elapsed >= at.Budget
	v := selection.Verdict{Ended: selection.EndedAll}
	for i := range answers {
		switch answer := &answers[i]; {
		case answer.Output != nil:
			v.Output, v.Model, v.Confidence, v.Failure = answer.Output, plan.Asks[i].ID, selection.Confidence(answer.Output), nil
			return selection.Decision{Verdict: v, Done: true}
		case answer.Failure != nil && v.Failure == nil:
			v.Failure = answer.Failure // the best model's says the most
		case answer.Failure == nil && !over:
			return selection.Decision{Open: i + 1}
		case answer.Failure == nil:
			v.Ended = selection.EndedDeadline
		}
	}
	if len(answers) == 0 {
		v.Failure = &serving.Failure{Cause: serving.NoReplica}
	}
	return selection.Decision{Verdict: v, Done: true}
}

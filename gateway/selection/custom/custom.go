// Package custom lets a model decide: a policy that a user's own container serves over
// the same protocol as any model. It gets strings, each a JSON object that says what is
// wanted of it, and answers with a JSON object; docs/selection.md has them all. When it
// is slow, fails or says nonsense, a built-in policy decides in its place.
package custom

import (
	"context"
	"time"

	"topsail/gateway/selection"
	"topsail/serving"
)

// Asker asks the model that decides.
type Asker interface {
	// Ask returns its answer to one text, until ctx ends.
	Ask(ctx context.Context, model string, text []byte) ([]byte, error)
}

// Policy is a policy that a model decides. Its methods wait for the model, within a
// part of the query's budget.
type Policy struct {
	spec     serving.PolicySpec
	app      string
	fallback selection.Policy
	asker    Asker
}

// New makes the policy of an app; fallback decides when the model does not.
func New(app string, spec serving.PolicySpec, fallback selection.Policy, asker Asker) *Policy {
	return &Policy{spec: spec, app: app, fallback: fallback, asker: asker}
}

const (
	// shareOfBudget is the part of a query's budget that the model has for a decision,
	// where the policy names no time.
	shareOfBudget = 5
	// trainWithin is what it has for learning.
	trainWithin = 2 * time.Second
)

// decided marks plans that the model made, and whose answers it combines.
const decided = 1

// within is how long the model may take for a decision of a query.
func (p *Policy) within(budget time.Duration) time.Duration {
	limit := p.spec.Within()
	if limit == 0 {
		limit = budget / shareOfBudget
	}
	return min(limit, budget/2)
}

// Select implements selection.Policy.
func (p *Policy) Select(s *selection.State, q *selection.Query, candidates []selection.Candidate, plan *selection.Plan) {
	var said selected
	err := p.ask(p.within(q.Budget), p.selectRequest(s, q, candidates), &said)
	if err != nil || !said.plan(candidates, plan) {
		plan.Reset()
		p.fallback.Select(nil, q, candidates, plan)
		plan.Mode = 0
		return
	}
	plan.Mode = decided
	if said.Combine == combineFallback {
		p.narrow(q, candidates, plan)
	}
}

// narrow lets the fallback combine what the model wants asked.
func (p *Policy) narrow(q *selection.Query, candidates []selection.Candidate, plan *selection.Plan) {
	var chosen []selection.Candidate
	var places []int
	for at := range candidates { // in their order
		for _, ask := range plan.Asks {
			if ask.Candidate == at {
				chosen, places = append(chosen, candidates[at]), append(places, at)
			}
		}
	}
	plan.Reset()
	p.fallback.Select(nil, q, chosen, plan)
	for i := range plan.Asks {
		plan.Asks[i].Candidate = places[plan.Asks[i].Candidate]
	}
}

// Combine implements selection.Policy.
func (p *Policy) Combine(s *selection.State, plan *selection.Plan, answers []selection.Answer, at selection.Moment) selection.Decision {
	if plan.Mode != decided {
		return p.fallback.Combine(nil, plan, answers, at)
	}
	limit := p.within(at.Budget)
	last := at.Budget - limit // from then on there is just time for the model's word
	complete := true
	for i := range answers {
		complete = complete && answers[i].Come()
	}
	switch {
	case !complete && !at.Final && at.Elapsed < last:
		return selection.Decision{Open: len(plan.Asks), Again: last}
	case at.Final:
		return p.substitute(plan, answers, at)
	}
	var said combined
	if err := p.ask(min(limit, at.Budget-at.Elapsed), p.combineRequest(s, plan, answers), &said); err == nil {
		if v, ok := said.verdict(plan, answers); ok {
			v.Ended = selection.EndedAll
			if !complete {
				v.Ended = selection.EndedTime
			}
			return selection.Decision{Verdict: v, Done: true}
		}
	}
	at.Final = true
	return p.substitute(plan, answers, at)
}

// substitute lets the fallback combine what has come.
func (p *Policy) substitute(plan *selection.Plan, answers []selection.Answer, at selection.Moment) selection.Decision {
	var own selection.Plan
	var candidates []selection.Candidate
	for _, ask := range plan.Asks {
		candidates = append(candidates, selection.Candidate{ModelID: ask.ID, Ready: true, Cost: 1})
	}
	order := sorted(candidates)
	p.fallback.Select(nil, &selection.Query{Budget: at.Budget}, candidates, &own)
	theirs := make([]selection.Answer, len(own.Asks))
	for i, ask := range own.Asks {
		theirs[i] = answers[order[ask.Candidate]]
	}
	d := p.fallback.Combine(nil, &own, theirs, at)
	if d.Output == nil { // it did not want any of those that have come
		for i := range answers {
			if answers[i].Output != nil {
				d.Verdict = selection.Verdict{Output: answers[i].Output, Model: plan.Asks[i].ID}
				break
			}
		}
	}
	d.Done, d.Ended = true, selection.EndedTime
	return d
}

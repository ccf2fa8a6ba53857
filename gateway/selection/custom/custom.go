// Package custom lets a model decide: a policy that a user's own container serves over
// the same protocol as any model. It gets strings, each a JSON object that says what is
// wanted of it, and answers with a JSON object; docs/selection.md has them all. When it
// is slow, fails or says nonsense, a built-in policy decides in its place.
package custom

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/topsail-serving/topsail/gateway/selection"
	"github.com/topsail-serving/topsail/serving"
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
	resting  atomic.Int64 // until when it is not asked to learn, in unix nanoseconds
}

// New makes the policy of an app; fallback decides when the model does not.
func New(app string, spec serving.PolicySpec, fallback selection.Policy, asker Asker) *Policy {
	return &Policy{spec: spec, app: app, fallback: fallback, asker: asker}
}

const (
	// shareOfBudget is the part of a query's budget that the model has for a decision,
	// where the policy names no time.
	shareOfBudget = 5
	// trainWithin is what it has for learning, and restAfter how long it is not asked to
	// after it could not.
	trainWithin = time.Second
	restAfter   = 5 * time.Second
)

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
	offered := p.offered(candidates)
	asked := p.selectRequest(s, q, candidates, offered)
	err := p.ask(p.within(q.Budget), asked, &said)
	switch {
	case err != nil || !said.plan(candidates, offered, p.spec.Most, plan):
	case said.Combine == "":
		plan.Own = &progress{query: asked.about, watches: said.Answers, open: plan.Now, known: make([]known, len(plan.Asks))}
		return
	case p.narrow(q, candidates, plan):
		return
	}
	plan.Reset()
	p.fallback.Select(nil, q, candidates, plan)
}

// offered are the places of the candidates that may be asked.
func (p *Policy) offered(candidates []selection.Candidate) (places []int) {
	for i := range candidates {
		if p.may(candidates[i].ModelID) {
			places = append(places, i)
		}
	}
	return places
}

func (p *Policy) may(id serving.ModelID) bool {
	for _, name := range p.spec.Models {
		if names(name, id) {
			return true
		}
	}
	return len(p.spec.Models) == 0
}

// narrow restricts the fallback to the models that the deciding model chose. It says whether the
// fallback wants any of them.
func (p *Policy) narrow(q *selection.Query, candidates []selection.Candidate, plan *selection.Plan) bool {
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
	return len(plan.Asks) > 0
}

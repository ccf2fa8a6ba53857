// Package custom lets a model decide: a policy that a user's own container serves over
// the same protocol as any model. It gets strings, each a JSON object that says what is
// wanted of it, and answers with a JSON object; docs/selection.md has them all. When it
// is slow, fails or says nonsense, a built-in policy decides in its place.
package custom

import (
	"context"
	"math/rand/v2"
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

// decided marks plans that the model made, and whose answers it combines. Fallbacks
// have modes of their own, which are not as large.
const decided = 1 << 30

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
	err := p.ask(p.within(q.Budget), p.selectRequest(s, q, candidates, offered), &said)
	switch {
	case err != nil || !said.plan(candidates, offered, p.spec.Most, plan):
	case said.Combine == "":
		plan.Mode = decided
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
	case at.Final:
		return p.substitute(plan, answers, at, selection.EndedDeadline)
	case !complete && at.Elapsed < last:
		return selection.Decision{Open: len(plan.Asks), Again: last}
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
	return p.substitute(plan, answers, at, selection.EndedTime)
}

// substitute has the fallback combine the answers so far, as if no more came.
func (p *Policy) substitute(plan *selection.Plan, answers []selection.Answer, at selection.Moment, ended selection.Ending) selection.Decision {
	var own selection.Plan
	candidates, order := sorted(plan)
	chance := rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64()))
	p.fallback.Select(nil, &selection.Query{Budget: at.Budget, Rand: chance}, candidates, &own)
	theirs := make([]selection.Answer, len(own.Asks))
	for i, ask := range own.Asks {
		theirs[i] = answers[order[ask.Candidate]]
	}
	at.Final = true
	d := p.fallback.Combine(nil, &own, theirs, at)
	if d.Output == nil { // it did not want any of those that have come
		for i := range answers {
			if answers[i].Output != nil {
				d.Verdict = selection.Verdict{Output: answers[i].Output, Model: plan.Asks[i].ID}
				break
			}
		}
	}
	d.Done, d.Ended = true, ended
	return d
}

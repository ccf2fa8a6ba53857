package speculative

import (
	"slices"
	"time"

	"github.com/topsail-serving/topsail/gateway/selection"
	"github.com/topsail-serving/topsail/serving"
)

// Prefer asks the model that is wanted the most, and the next one where that one refuses, fails or is not there: the
// first that can answer in time answers. If none has a replica, all are asked, and the first to answer does.
//
// A model that stays silent does not take the others' time: the next one is asked as late as is enough for it, and
// answers if nothing better has come by the deadline.
type Prefer struct{ lineup lineup }

// NewPrefer makes the policy "prefer": spec.Order from the most wanted to the last resort (by default as linked).
func NewPrefer(spec serving.PolicySpec, links []string) *Prefer {
	spec.Models = spec.Order
	return &Prefer{newLineup(&spec, links)}
}

// Select implements selection.Policy.
func (p *Prefer) Select(_ *selection.State, q *selection.Query, candidates []selection.Candidate, plan *selection.Plan) {
	p.lineup.add(false, candidates, plan)
	plan.Ranked, plan.Now = true, min(1, len(plan.Asks))
	if !slices.ContainsFunc(plan.Asks, func(ask selection.Ask) bool { return candidates[ask.Candidate].Ready }) {
		plan.Now = len(plan.Asks)
	} else {
		for i := range plan.Asks {
			plan.Asks[i].Absent = !candidates[plan.Asks[i].Candidate].Ready
		}
		plan.Alone = true
	}
	// Twice of that is left when it is asked: twice what it rarely exceeds, or where that is more than a quarter of the
	// time, which a lack of processors can make it, what it usually takes and half as much again.
	note(plan, candidates, func(c *selection.Candidate) time.Duration { return max(c.Median*3/4, min(c.P95, q.Budget/8)) })
}

// Combine implements selection.Policy.
func (p *Prefer) Combine(_ *selection.State, plan *selection.Plan, answers []selection.Answer, at selection.Moment) selection.Decision {
	r := race{plan, answers[:opened(plan, answers)], at}
	best := slices.IndexFunc(r.answers, func(a selection.Answer) bool { return a.Output != nil })
	next := len(r.answers)
	if best != none && plan.Now > 1 {
		return r.take(best, selection.EndedAcceptable)
	}
	if best != none || next == len(answers) || at.Final {
		certain := best == none || !slices.ContainsFunc(r.answers[:best], func(a selection.Answer) bool { return !a.Come() })
		return r.decide(best, certain, 0)
	}
	if due := r.due(next); !r.answers[next-1].Come() && at.Elapsed < due {
		return selection.Decision{Open: next, Again: due}
	}
	plan.Scratch[0] = float64(next + 1)
	return selection.Decision{Open: next + 1}
}

package speculative

import (
	"time"

	"github.com/topsail-serving/topsail/gateway/selection"
	"github.com/topsail-serving/topsail/serving"
)

// Prefer asks the model that is wanted the most, and the next one as soon as that one refuses, fails, is not
// there, or is late: has not answered when no more time is left than the next one needs. The first that can
// answer in time answers.
type Prefer struct{ lineup lineup }

// NewPrefer makes the policy "prefer": spec.Order from the most wanted to the last resort (by default as linked).
func NewPrefer(spec serving.PolicySpec, links []string) *Prefer {
	spec.Models = spec.Order
	return &Prefer{newLineup(&spec, links)}
}

// Select implements selection.Policy. If no model has a replica, all are asked at once, and the first that answers
// is taken.
func (p *Prefer) Select(_ *selection.State, q *selection.Query, candidates []selection.Candidate, plan *selection.Plan) {
	p.lineup.add(false, candidates, plan)
	plan.Ranked = true
	ready, until := false, q.Budget
	for i := len(plan.Asks) - 1; i >= 0; i-- {
		ask := &plan.Asks[i]
		c := &candidates[ask.Candidate]
		if ask.Absent = !c.Ready; ask.Absent {
			continue
		}
		if ready {
			ask.Within = until
		}
		until -= spare(c, until)
		ready = true
	}
	plan.Now = min(1, len(plan.Asks))
	if !ready {
		plan.Now = len(plan.Asks)
		for i := range plan.Asks {
			plan.Asks[i].Absent = false
		}
	}
}

// spare is how much of the time that is left is kept for a model: half as much again as it usually takes, and a
// quarter at the most, for what is kept is missing to the models before it.
func spare(c *selection.Candidate, left time.Duration) time.Duration {
	if c.Median == 0 {
		return left / 4
	}
	return min(c.Median*3/2, left/4)
}

// Combine implements selection.Policy.
func (p *Prefer) Combine(_ *selection.State, plan *selection.Plan, answers []selection.Answer, at selection.Moment) selection.Decision {
	r := race{plan, answers, at}
	ended := selection.EndedAll
	for i := range answers {
		a, within := &answers[i], plan.Asks[i].Within
		late := plan.Now > 1 || within > 0 && at.Elapsed >= within
		switch {
		case a.Output != nil && late && ended == selection.EndedAll && r.pending():
			return r.take(i, selection.EndedCertain) // what is pending is ranked after it
		case a.Output != nil:
			return r.take(i, ended)
		case a.Failure != nil:
		case late || at.Final:
			ended = selection.EndedTime
		default:
			return selection.Decision{Open: i + 1, Again: within}
		}
	}
	switch {
	case at.Final && r.pending():
		ended = selection.EndedDeadline
	case r.pending(): // those that are late
		return selection.Decision{Open: len(answers)}
	}
	return r.take(none, ended)
}

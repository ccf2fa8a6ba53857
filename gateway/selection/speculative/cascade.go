package speculative

import (
	"cmp"
	"slices"
	"time"

	"github.com/topsail-serving/topsail/gateway/selection"
	"github.com/topsail-serving/topsail/serving"
)

// Cascade asks a cheap model first, and a more expensive one only when the answer is not
// sure enough, or failed, and what is left of the time is enough for it. The answer of
// the most expensive model stands as it is; while it is waited for, the best answer so
// far is kept, and given at the deadline.
//
// An answer that does not say how sure it is, is not sure enough. A model that stays
// silent does not take the others' time: the next is asked at half of the time that is
// left, or later where that is enough for it.
type Cascade struct {
	lineup lineup
	sure   sureness
	byCost bool
}

// NewCascade makes the policy "cascade": spec.Models from cheap to expensive (by default
// by their costs if spec.Costs has any, else as linked), spec.Confidence as the bar (by
// default 0.8), which is for spec.Qualifier if there is one.
func NewCascade(spec serving.PolicySpec, links []string) *Cascade {
	return &Cascade{
		lineup: newLineup(&spec, links),
		sure:   newSureness(&spec),
		byCost: len(spec.Models) == 0 && len(spec.Costs) > 0,
	}
}

// Select implements selection.Policy.
func (c *Cascade) Select(_ *selection.State, _ *selection.Query, candidates []selection.Candidate, plan *selection.Plan) {
	c.lineup.arrange(candidates, plan)
	if c.byCost {
		sortByCost(candidates, plan.Asks)
	}
	c.lineup.limit(plan)
	plan.Now = min(1, len(plan.Asks))
	note(plan, candidates, func(c *selection.Candidate) time.Duration { return c.Median })
}

// note notes in the plan's scratch how many are opened, and how long each model takes.
func note(plan *selection.Plan, candidates []selection.Candidate, takes func(*selection.Candidate) time.Duration) {
	plan.Scratch = append(plan.Scratch[:0], float64(plan.Now))
	for i := range plan.Asks {
		plan.Scratch = append(plan.Scratch, float64(takes(&candidates[plan.Asks[i].Candidate])))
	}
}

func sortByCost(candidates []selection.Candidate, asks []selection.Ask) {
	for i := range asks {
		asks[i].Weight = candidates[asks[i].Candidate].Cost
	}
	slices.SortStableFunc(asks, func(a, b selection.Ask) int { return cmp.Compare(a.Weight, b.Weight) })
	for i := range asks {
		asks[i].Weight = 1
	}
}

// Combine implements selection.Policy.
func (c *Cascade) Combine(_ *selection.State, plan *selection.Plan, answers []selection.Answer, at selection.Moment) selection.Decision {
	r := race{plan, answers[:opened(plan, answers)], at}
	best, settled := c.best(answers, len(r.answers))
	if settled {
		if best == len(answers)-1 {
			return r.decide(best, true, 0)
		}
		return r.take(best, selection.EndedAcceptable)
	}
	next := len(r.answers)
	if at.Final || next == len(answers) {
		return r.decide(best, false, 0)
	}
	switch due := r.due(next); {
	case r.answers[next-1].Come() && (best == none || r.fits(next)), !r.answers[next-1].Come() && at.Elapsed >= due:
		plan.Scratch[0] = float64(next + 1)
		return selection.Decision{Open: next + 1}
	case !r.pending():
		return r.take(best, selection.EndedTime)
	case at.Elapsed < due:
		return selection.Decision{Open: next, Again: due}
	}
	return selection.Decision{Open: next}
}

// opened is how many have been asked, and once all of them have come, with those right behind
// them that cannot be asked.
func opened(plan *selection.Plan, answers []selection.Answer) int {
	n := min(int(plan.Scratch[0]), len(answers))
	pending := func(a selection.Answer) bool { return !a.Come() }
	if slices.ContainsFunc(answers[:n], pending) {
		return n
	}
	for n < len(answers) && answers[n].Come() {
		n++
	}
	return n
}

// best is the place of the best of the first n answers: the last model's, else the first
// that is sure enough, either of which settles it; else the most expensive one's.
func (c *Cascade) best(answers []selection.Answer, n int) (best int, settled bool) {
	best = none
	for i := range n {
		o := answers[i].Output
		if o == nil {
			continue
		}
		if !settled || i == len(answers)-1 {
			best, settled = i, c.sure.enough(o) || i == len(answers)-1
		}
	}
	return best, settled
}

// fits says whether the time that is left is usually enough for a model.
func (r *race) fits(i int) bool { return r.at.Elapsed+r.takes(i) <= r.at.Budget }

// due is when a model is asked though the one before it is silent: when half of the time
// is left, a quarter for the one after the next, and so on; or later, where twice its
// usual time is less than that.
func (r *race) due(i int) time.Duration {
	due := r.at.Budget - r.at.Budget>>i
	if takes := r.takes(i); takes > 0 {
		due = max(due, r.at.Budget-2*takes)
	}
	return due
}

// takes is how long a model takes, or 0.
func (r *race) takes(i int) time.Duration { return time.Duration(r.plan.Scratch[i+1]) }

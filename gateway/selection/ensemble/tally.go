package ensemble

import (
	"github.com/topsail-serving/topsail/gateway/selection"
	"github.com/topsail-serving/topsail/serving"
)

// tally is the count of the votes that have come. Votes weigh as their asks do.
type tally struct {
	winner  int     // the first-ranked ask of those that gave the leading answer; -1: no vote yet
	votes   float64 // for the leading answer
	second  float64 // for the one behind it
	missing float64 // not given yet
	asked   float64 // all that there could be
}

// slack is what rounding may do to a sum of weights, as a share of it.
const slack = 1e-9

// count counts the votes. Of answers with the same votes the one leads that the
// first-ranked model gave.
func count(plan *selection.Plan, answers []selection.Answer, takes serving.OutputType) tally {
	t := tally{winner: -1}
	plan.Scratch = plan.Scratch[:0]
	for i := range answers {
		w := plan.Asks[i].Weight
		t.asked += w
		if !answers[i].Come() {
			t.missing += w
		}
		plan.Scratch = append(plan.Scratch, 0)
	}
	for i := range answers {
		if o := answers[i].Output; o != nil && fits(o, takes, plan) {
			plan.Scratch[first(plan.Scratch, answers, i)] += plan.Asks[i].Weight
		}
	}
	for i, votes := range plan.Scratch {
		switch {
		case votes > t.votes:
			t.winner, t.votes, t.second = i, votes, t.votes
		case votes > t.second:
			t.second = votes
		}
	}
	return t
}

// first is the first-ranked of those that have voted with what an answer says: votes
// are counted at its place.
func first(votes []float64, answers []selection.Answer, at int) int {
	for i, v := range votes[:at] {
		if v > 0 && selection.Same(answers[i].Output, answers[at].Output) {
			return i
		}
	}
	return at
}

// certain says whether no missing vote could change the leader.
func (t *tally) certain() bool {
	return t.winner >= 0 && t.votes-t.second-t.missing > slack*t.asked
}

// reached says whether the leading answer has a share of all votes.
func (t *tally) reached(agreement float64) bool {
	return t.winner >= 0 && t.votes >= (agreement-slack)*t.asked
}

// reachable says whether any answer could still have a share of all votes.
func (t *tally) reachable(agreement float64) bool {
	return t.votes+t.missing >= (agreement-slack)*t.asked
}

// verdict is the leading answer. Its confidence is the share of the votes that agree,
// where those that are missing do not.
func (t *tally) verdict(answers []selection.Answer, why selection.Ending) selection.Decision {
	return selection.Decision{Done: true, Verdict: selection.Verdict{
		Output: answers[t.winner].Output, Confidence: min(t.votes/t.asked, 1), Ended: why,
	}}
}

// plurality is the decision for the answer with the most votes: as soon as no other
// can win.
func plurality(plan *selection.Plan, answers []selection.Answer, takes serving.OutputType, at selection.Moment) selection.Decision {
	why, over := ended(answers, at)
	t := count(plan, answers, takes)
	switch {
	case !over && t.certain():
		return t.verdict(answers, selection.EndedCertain)
	case !over:
		return selection.Decision{}
	case t.winner < 0:
		return failed(plan, answers, takes, why)
	}
	return t.verdict(answers, why)
}

package ensemble

import (
	"fmt"
	"time"

	"github.com/topsail-serving/topsail/gateway/selection"
	"github.com/topsail-serving/topsail/serving"
)

// Vote answers what most of the models say, with declared weights if there are any.
// With an agreement level it answers what that share of those asked say, as soon as
// they do, and fails when they cannot any more: a model that is silent or fails agrees
// with none. With a time limit it never waits for more than that if it has any vote,
// and then, agreement or not, the most votes win.
type Vote struct {
	panel
	takes     serving.OutputType
	agreement float64
	within    time.Duration
}

// NewVote makes the policy of a spec.
func NewVote(spec serving.PolicySpec, links []string, output serving.OutputType) *Vote {
	return &Vote{panel: newPanel(&spec, links), takes: spec.OutputOf(output), agreement: spec.Agreement, within: spec.Within()}
}

// Combine implements selection.Policy.
func (v *Vote) Combine(_ *selection.State, plan *selection.Plan, answers []selection.Answer, at selection.Moment) selection.Decision {
	t := count(plan, answers, v.takes)
	why, over := ended(answers, at)
	switch {
	case over && t.winner < 0:
		return failed(plan, answers, v.takes, why)
	case over:
	case v.settled(&t):
		why = selection.EndedCertain
	case v.agreement > 0 && t.reached(v.agreement):
		why = selection.EndedAcceptable // of half of the votes or less: another answer may have as many
	case v.within > 0 && at.Elapsed >= v.within && t.winner >= 0:
		why = selection.EndedTime
	case at.Elapsed < v.within:
		return selection.Decision{Again: v.within}
	default:
		return selection.Decision{}
	}
	if v.strict() && !t.reached(v.agreement) {
		return selection.Decision{Done: true, Verdict: selection.Verdict{Failure: v.disagreement(&t, plan, answers), Ended: why}}
	}
	return t.verdict(answers, why)
}

// settled says whether nothing that is missing could change the answer.
func (v *Vote) settled(t *tally) bool {
	if v.strict() && !t.reached(v.agreement) {
		return !t.reachable(v.agreement)
	}
	return t.certain()
}

// strict says whether there is no answer without the agreement.
func (v *Vote) strict() bool { return v.agreement > 0 && v.within == 0 }

func (v *Vote) disagreement(t *tally, plan *selection.Plan, answers []selection.Answer) *serving.Failure {
	agree := 0
	for i := range answers {
		if o := answers[i].Output; t.winner >= 0 && o != nil && selection.Same(o, answers[t.winner].Output) {
			agree++
		}
	}
	return &serving.Failure{Cause: serving.ModelError, Message: fmt.Sprintf(
		"no consensus: %d of %d agree, a share of %.2f, and the app needs %.2f", agree, len(plan.Asks), t.votes/t.asked, v.agreement)}
}

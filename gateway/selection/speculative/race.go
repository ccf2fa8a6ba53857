package speculative

import (
	"time"

	"github.com/topsail-serving/topsail/gateway/selection"
	"github.com/topsail-serving/topsail/serving"
)

// none is the place of no answer.
const none = -1

// race is a query that is under way, with the answers of all that have been asked.
type race struct {
	plan    *selection.Plan
	answers []selection.Answer
	at      selection.Moment
}

// pending says whether something may still come.
func (r *race) pending() bool {
	for i := range r.answers {
		if !r.answers[i].Come() {
			return true
		}
	}
	return false
}

// decide takes the best answer so far if that is certain to stay the best, or if time is
// up: the policy's own limit (0: none), after which the first that comes is taken, or
// the deadline.
func (r *race) decide(best int, certain bool, within time.Duration) selection.Decision {
	late := within > 0 && r.at.Elapsed >= within
	switch {
	case !r.pending():
		return r.take(best, selection.EndedAll)
	case best != none && certain:
		return r.take(best, selection.EndedCertain)
	case best != none && late:
		return r.take(best, selection.EndedTime)
	case r.at.Final:
		return r.take(best, selection.EndedDeadline)
	case late:
		return selection.Decision{}
	}
	return selection.Decision{Again: within}
}

// take answers with one of the outputs. If there is none, it is a failure only when all have
// failed: that of the first, which matters the most.
func (r *race) take(i int, ended selection.Ending) selection.Decision {
	d := selection.Decision{Done: true, Verdict: selection.Verdict{Ended: ended}}
	switch {
	case len(r.answers) == 0:
		d.Failure = &serving.Failure{Cause: serving.NoReplica}
	case i != none:
		d.Output, d.Model, d.Confidence = r.answers[i].Output, r.plan.Asks[i].ID, selection.Confidence(r.answers[i].Output)
	case !r.pending():
		d.Failure, d.Model = r.answers[0].Failure, r.plan.Asks[0].ID
	}
	return d
}

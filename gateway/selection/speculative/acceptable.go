package speculative

import (
	"time"

	"github.com/topsail-serving/topsail/gateway/selection"
	"github.com/topsail-serving/topsail/serving"
)

// FirstAcceptable asks all models at once and answers with the first that is sure
// enough. When all have come or time is up, it is the surest of those there; of equals,
// and of those that do not say how sure they are, the first in order.
type FirstAcceptable struct {
	lineup lineup
	sure   sureness
	within time.Duration
}

// NewFirstAcceptable makes the policy "first_acceptable": spec.Models in order of
// importance (by default as linked), spec.Confidence as the bar (by default 0.8), which
// is for spec.Qualifier if there is one, and spec.WithinMicros until it decides (by
// default the deadline). With nothing there by then, the first answer that comes is taken.
func NewFirstAcceptable(spec serving.PolicySpec, links []string) *FirstAcceptable {
	return &FirstAcceptable{lineup: newLineup(&spec, links), sure: newSureness(&spec), within: spec.Within()}
}

// Select implements selection.Policy.
func (f *FirstAcceptable) Select(_ *selection.State, _ *selection.Query, candidates []selection.Candidate, plan *selection.Plan) {
	f.lineup.arrange(candidates, plan)
	f.lineup.limit(plan)
}

// Combine implements selection.Policy.
func (f *FirstAcceptable) Combine(_ *selection.State, plan *selection.Plan, answers []selection.Answer, at selection.Moment) selection.Decision {
	r := race{plan, answers, at}
	best, surest := none, 0.0
	for i := range answers {
		o := answers[i].Output
		if o == nil {
			continue
		}
		x := f.sure.of(o)
		if x >= f.sure.bar {
			return r.take(i, selection.EndedAcceptable)
		}
		if best == none || x > surest {
			best, surest = i, x
		}
	}
	return r.decide(best, false, f.within)
}

package speculative

import (
	"slices"
	"time"

	"github.com/topsail-serving/topsail/gateway/selection"
	"github.com/topsail-serving/topsail/serving"
)

// Guaranteed asks all models at once, the first of which is fast and bounds the time of
// the answer; the later ones are better, the last the best. It answers with the best as
// soon as that is there or no better one can come, and when time is up with the best of
// what has come.
type Guaranteed struct {
	lineup lineup
	within time.Duration
}

// NewGuaranteed makes the policy "guaranteed": spec.Models from fast to good (by default
// as linked), and spec.WithinMicros until it decides (by default the deadline). With
// nothing there by then, the first answer that comes is taken.
func NewGuaranteed(spec serving.PolicySpec, links []string) *Guaranteed {
	return &Guaranteed{lineup: newLineup(&spec, links), within: spec.Within()}
}

// Select implements selection.Policy. The fast one is the most important, and never left
// out under load; then come the others, the best before those that are worse.
func (g *Guaranteed) Select(_ *selection.State, _ *selection.Query, candidates []selection.Candidate, plan *selection.Plan) {
	g.lineup.arrange(candidates, plan)
	if len(plan.Asks) > 1 {
		slices.Reverse(plan.Asks[1:])
	}
	g.lineup.limit(plan)
}

// Combine implements selection.Policy.
func (g *Guaranteed) Combine(_ *selection.State, plan *selection.Plan, answers []selection.Answer, at selection.Moment) selection.Decision {
	r := race{plan, answers, at}
	best, certain := none, true
	for i := range answers {
		a := &answers[(i+1)%len(answers)] // from the best to the fast one
		if a.Output != nil {
			best = (i + 1) % len(answers)
			break
		}
		certain = certain && a.Failure != nil
	}
	return r.decide(best, certain, g.within)
}

package speculative

import (
	"time"

	"github.com/topsail-serving/topsail/gateway/selection"
	"github.com/topsail-serving/topsail/gateway/selection/rollout"
	"github.com/topsail-serving/topsail/serving"
)

// Hedge asks one model, and a second replica of it when the first takes longer than
// nearly all answers do. How many queries may be asked twice is the gateway's to enforce,
// by spec.Share.
type Hedge struct {
	rollout.Single
	within time.Duration
}

// NewHedge makes the policy "hedge": spec.Model (by default the first linked one that is
// ready), and spec.WithinMicros until the second replica is asked: by default the 95th
// percentile of the model's recent answers, or what the gateway thinks right as long as
// that is not known.
func NewHedge(spec serving.PolicySpec, links []string) *Hedge {
	return &Hedge{Single: *rollout.NewSingle(spec, links), within: spec.Within()}
}

// Select implements selection.Policy.
func (h *Hedge) Select(s *selection.State, q *selection.Query, candidates []selection.Candidate, plan *selection.Plan) {
	h.Single.Select(s, q, candidates, plan)
	for i := range plan.Asks {
		ask := &plan.Asks[i]
		ask.HedgeAfter = h.within
		if h.within == 0 {
			ask.HedgeAfter = candidates[ask.Candidate].P95
		}
	}
}

package predict

import (
	"time"

	"github.com/topsail-serving/topsail/gateway/selection"
	"github.com/topsail-serving/topsail/serving"
)

// left is what stands for the answer of a model that is not asked to save capacity.
var left = &serving.Failure{Cause: serving.RefusedFull, Message: "not called: capacity or time is short"}

// spare says whether the query can do without an ask: there may be an answer of
// one before it in the plan.
func (q *query) spare(i int) bool {
	if q.patient {
		return false
	}
	for j := range i {
		if q.answers[j].Failure == nil && !q.plan.Asks[j].Shadow {
			return true
		}
	}
	return false
}

// shed leaves out an ask that is spare, if its model is short of capacity or of time.
func (q *query) shed(i int) bool {
	try := &q.attempts[i]
	if !try.version.replicas.Short(q.class(), q.respond, time.Now()) {
		return false
	}
	try.shed, q.answers[i].Failure = true, left
	try.version.metrics().shed.Inc()
	return true
}

// trim takes those that were left out off the end of the plan, so that the policy need
// not know of them.
func (q *query) trim() {
	if q.opened < len(q.attempts) {
		return // the policy counts on its reserve
	}
	for i := len(q.attempts) - 1; i > 0 && q.attempts[i].shed; i-- {
		q.left = append(q.left, q.attempts[i].version)
		q.attempts[i], q.answers[i] = attempt{}, selection.Answer{}
		q.attempts, q.answers, q.plan.Asks = q.attempts[:i], q.answers[:i], q.plan.Asks[:i]
		q.opened, q.plan.Now = i, i
	}
}

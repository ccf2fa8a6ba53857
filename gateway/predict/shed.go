package predict

import (
	"time"

	"topsail/gateway/selection"
	"topsail/serving"
)

// left is what stands for the answer of a model that is not asked to save capacity.
var left = &serving.Failure{Cause: serving.RefusedFull, Message: "not asked: capacity or time is short"}

// spare says whether the query can do without an ask: there may be an answer of
// somebody before it in the plan.
func (w *work) spare(i int) bool {
	if w.patient {
		return false
	}
	for j := range i {
		if w.answers[j].Failure == nil && !w.plan.Asks[j].Shadow {
			return true
		}
	}
	return false
}

// shed leaves out an ask that is spare, if its model is short of capacity or of time.
func (w *work) shed(i int) bool {
	p := &w.parts[i]
	if !p.version.coldQueue.short(w.app, w.respond, time.Now()) {
		return false
	}
	p.shed, w.answers[i].Failure = true, left
	p.version.metrics().shed.Inc()
	return true
}

// short says whether the version had better not be asked by an app that can do without:
// an answer would hardly come in time, or take the place of somebody who cannot.
func (b *coldQueue) short(a *app, respond, now time.Time) bool {
	budget := respond.Sub(now)
	if median, _ := b.latencyEstimate.times(); median > budget && !b.latencyEstimate.probe(now) {
		return true
	}
	return !b.quota.allow(a, b.group().Wait(now), budget, now)
}

// trim takes those that were left out off the end of the plan, so that the policy need
// not know of them.
func (w *work) trim() {
	if w.opened < len(w.parts) {
		return // the policy counts on its reserve
	}
	for i := len(w.parts) - 1; i > 0 && w.parts[i].shed; i-- {
		w.left = append(w.left, w.parts[i].version)
		w.parts[i], w.answers[i] = part{}, selection.Answer{}
		w.parts, w.answers, w.plan.Asks = w.parts[:i], w.answers[:i], w.plan.Asks[:i]
		w.opened, w.plan.Now = i, i
	}
}

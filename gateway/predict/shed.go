package predict

import (
	"time"

	"topsail/serving"
)

// left is what stands for the answer of a model that is not asked to save capacity.
var left = &serving.Failure{Cause: serving.RefusedFull, Message: "not asked: capacity or time is short"}

// shedAsks leaves out what can be done without, from the end of the plan, while their
// models are short of capacity or of time.
func (w *work) shedAsks() {
	if w.patient {
		return
	}
	for i := w.plan.Now - 1; i > 0 && i == len(w.parts)-1 && w.short(i); i-- {
		w.app.metrics.shed(w.parts[i].version)
		w.left = append(w.left, w.parts[i].version)
		w.plan.Asks, w.answers = w.plan.Asks[:i], w.answers[:i]
		w.parts, w.plan.Now = w.parts[:i], i
	}
}

// sheds leaves out an ask that is not the plan's last, if it can be done without.
func (w *work) sheds(i int) bool {
	if i == 0 || w.patient || !w.short(i) {
		return false
	}
	w.parts[i].shed = true
	w.app.metrics.shed(w.parts[i].version)
	w.answers[i].Failure = left
	return true
}

// short says whether the i-th ask had better be left out.
func (w *work) short(i int) bool {
	p, now := &w.parts[i], time.Now()
	budget := w.respond.Sub(now)
	if median, _ := p.version.backlog.pace.times(); median > budget {
		return true
	}
	return !p.version.backlog.ration.allow(w.app, p.version.backlog.group().Wait(now), budget, now)
}

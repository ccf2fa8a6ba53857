package predict

import (
	"time"

	"topsail/serving"
)

// Recorder keeps the records of answers for feedback to come.
type Recorder interface {
	// Wants says whether there is room for one more record; learns says that a policy
	// learns from it.
	Wants(learns bool) bool
	// Keep takes a record, and does not block.
	Keep(r *serving.Record)
}

// remember leaves a record of the answer, for feedback to come.
func (p *Predictor) remember(w *work, a *serving.Prediction) {
	if p.Records == nil || !p.Records.Wants(w.app.learned != nil) {
		return
	}
	now := time.Now()
	r := &serving.Record{
		QueryID: a.QueryID, App: w.app.Name, User: w.q.User, Context: w.q.Context,
		InputType: w.q.Input.Type, Input: w.q.Input.Data, At: now, Expires: now.Add(w.app.Policy.Record()),
		Asked: make([]serving.RecordedAsk, 0, w.opened),
	}
	if !a.Default {
		r.Output = a.Output
	}
	for i := range w.parts[:w.opened] {
		if w.app.stages != nil && (a.Default || w.parts[i].stage != len(w.slots)-1) {
			continue // feedback is about the last stage, whose output the answer is
		}
		v := w.parts[i].version
		ask := serving.RecordedAsk{ModelID: v.ModelID, Generation: v.Generation, Probability: w.plan.Asks[i].Probability, Shadow: w.plan.Asks[i].Shadow}
		if out := w.answers[i].Output; out != nil && len(out.JSON) <= serving.MaxRecordedOutput {
			ask.Output = out.JSON
		}
		if !w.parts[i].shed {
			r.Asked = append(r.Asked, ask)
		}
	}
	p.Records.Keep(r)
}

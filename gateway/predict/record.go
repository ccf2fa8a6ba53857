package predict

import (
	"time"

	"github.com/topsail-serving/topsail/serving"
)

// Recorder keeps the records of answers for feedback to come.
type Recorder interface {
	// Wants says whether there is room for one more record; learns says that a policy
	// learns from it.
	Wants(learns bool) bool
	// Keep takes a record, and does not block.
	Keep(r *serving.Record)
}

// record leaves a record of the answer, for feedback to come, with the attempts from one up to another.
func (q *query) record(a *serving.Prediction, from, to int) {
	records := q.p.Records
	if records == nil || !records.Wants(q.app.learned != nil) {
		return
	}
	now := time.Now()
	r := &serving.Record{
		QueryID: a.QueryID, App: q.app.Name, User: q.User, Context: q.Context,
		InputType: q.Input.Type, Input: q.Input.Data, At: now, Expires: now.Add(q.app.Policy.Record()),
		Asked: make([]serving.RecordedAsk, 0, to-from),
	}
	if !a.Default {
		r.Output = a.Output
	}
	for i := from; i < to; i++ {
		if q.attempts[i].shed {
			continue
		}
		v := q.attempts[i].version
		ask := serving.RecordedAsk{ModelID: v.ModelID, Generation: v.Generation, Probability: q.plan.Asks[i].Probability, Shadow: q.plan.Asks[i].Shadow}
		if out := q.answers[i].Output; out != nil && len(out.JSON) <= serving.MaxRecordedOutput {
			ask.Output = out.JSON
		}
		r.Asked = append(r.Asked, ask)
	}
	records.Keep(r)
}

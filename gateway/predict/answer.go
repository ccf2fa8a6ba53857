package predict

import (
	"cmp"
	"slices"
	"time"

	"github.com/topsail-serving/topsail/gateway/selection"
	"github.com/topsail-serving/topsail/serving"
)

// tooLate is why there is a default where no model answered in time.
var tooLate = &serving.Failure{Cause: serving.MissedSLO}

// answer makes the prediction of the verdict in a, which is empty, counts it and remembers it.
func (q *query) answer(id int64, a *serving.Prediction) {
	a.QueryID, a.Model = id, q.verdict.Model
	failure := q.verdict.Failure
	if out := q.verdict.Output; out != nil {
		if q.verdict.Model == (serving.ModelID{}) { // it is of several
			out = nameOutput(out, q.app.Signature.OutputTensors())
		}
		a.Output, a.Full, a.Confidence, a.Qualifiers = out.JSON, out, out.Confidence, out.Qualifiers
	} else {
		if failure == nil || failure == left { // a model was asked, and silent
			failure = tooLate
		}
		a.Output, a.Default, a.Cause, a.Explanation = q.app.fallback, true, failure.Cause, failure.Explain()
	}
	if q.Version == "" {
		q.failover(a)
	}
	counts := !q.patient && q.Counts(a)
	q.planner.finish(q, a, counts)
	if counts {
		received := q.Received
		if q.parts.given() { // what counts is the time to the first part
			received = received.Add(time.Since(q.parts.first))
		}
		q.app.metrics.answered(a, q.class().Priority, failure, received)
	}
	if q.Timing != nil {
		q.Timing.Combined = time.Now()
	}
}

// nameOutput gives an output that a policy has put together the name that the app has for its only one.
func nameOutput(out *serving.Output, tensors []serving.Tensor) *serving.Output {
	if len(tensors) != 1 || out.Values != nil {
		return out
	}
	v := out.Value
	v.Name = tensors[0].Name
	with, err := serving.NewOutputs([]serving.Value{v})
	if err != nil {
		return out
	}
	with.Confidence = out.Confidence
	return with
}

// failover says which current versions have no ready replica any more, so that those
// before them were asked.
func (q *query) failover(a *serving.Prediction) {
	for i := range q.attempts[:q.opened] {
		v := q.attempts[i].version
		if v == nil {
			continue
		}
		if current, is := v.of.insteadOf(v.Version); is && !q.app.pins(v) {
			a.Failover = append(a.Failover, current)
		}
	}
}

// fromCache says whether no replica was asked for what the answer is made of: the output
// of one model, or of all that came.
func (q *query) fromCache() (cached bool) {
	if q.opened == 1 {
		return q.attempts[0].cached
	}
	one := q.verdict.Model != serving.ModelID{}
	for i := range q.attempts[:q.opened] {
		try, ask := &q.attempts[i], &q.plan.Asks[i]
		if q.answers[i].Output == nil || ask.Shadow || one && ask.ID != q.verdict.Model {
			continue
		}
		if cached = try.cached; !cached {
			return false
		}
	}
	return cached
}

// missed says whether the answer was made without an attempt that was wanted in it: not a
// shadow, nor one that could not have changed it.
func (q *query) missed(i int) bool {
	if q.plan.Asks[i].Shadow || q.answers[i].Output != nil {
		return false
	}
	enough := q.verdict.Ended == selection.EndedCertain || q.verdict.Ended == selection.EndedAcceptable
	return q.answers[i].Failure != nil || !enough
}

// name says which models were wanted for the answer and are not in it.
func (q *query) name(a *serving.Prediction) {
	for i := range q.attempts[:q.opened] {
		try := &q.attempts[i]
		if !q.missed(i) {
			continue
		}
		a.Missing = append(a.Missing, try.version.ModelID)
		if try.shed {
			a.Shed = append(a.Shed, try.version.ModelID)
		}
	}
	for i := range q.candidates { // models that were not ready, and could not be asked
		if c := &q.candidates[i]; !c.Ready && q.app.Policy.Wants(c.Model) && !q.asks(i) {
			a.Missing = append(a.Missing, c.ModelID)
		}
	}
	for _, v := range q.left {
		a.Missing, a.Shed = append(a.Missing, v.ModelID), append(a.Shed, v.ModelID)
	}
}

// rank says which model answered, and why none that is ranked before it did. Those that would have been asked had
// they a replica are woken.
func (q *query) rank(a *serving.Prediction) {
	a.Ranked = true
	for i := range q.attempts {
		if q.answers[i].Output != nil {
			return
		}
		why := cmp.Or(q.answers[i].Failure, tooLate)
		a.PassedOver = append(a.PassedOver, serving.PassedOver{ModelID: q.plan.Asks[i].ID, Why: why.Cause})
		if q.plan.Asks[i].Absent {
			q.attempts[i].version.replicas.PassedOver()
		}
	}
}

// asks says whether a candidate is in the plan, or was.
func (q *query) asks(candidate int) bool {
	return slices.Contains(q.left, q.versions[candidate]) ||
		slices.ContainsFunc(q.plan.Asks, func(ask selection.Ask) bool { return ask.Candidate == candidate })
}

// count counts what each model had to do with the answer.
func (q *query) count() {
	q.app.metrics.ended(q.verdict.Ended)
	for i := range q.attempts[:q.opened] {
		try, answer := &q.attempts[i], &q.answers[i]
		m := try.version.metrics()
		switch {
		case q.plan.Asks[i].Shadow:
			q.compareLater(try, answer)
		case answer.Output != nil:
			m.answered.Inc()
			if q.verdict.Output != nil && selection.Same(answer.Output, q.verdict.Output) {
				m.agreed.Inc()
			}
		}
		q.tally(i)
		if i+1 < q.opened && answer.Output == nil {
			q.divert(i)
		}
	}
}

// divert counts that the query went on to the model that is ranked after one: demand that this one could not serve.
func (q *query) divert(i int) {
	if asked := q.attempts[i].call != nil; q.plan.Ranked && (asked || q.plan.Asks[i].Absent) {
		q.attempts[i].version.demand.Diverted(!asked)
	}
}

// compareLater compares the output of a shadow with the answer when it has come.
func (q *query) compareLater(try *attempt, answer *selection.Answer) {
	m, with := try.version.metrics(), q.verdict.Output
	compare := func(out *serving.Output, _ *serving.Failure) {
		if out == nil {
			return
		}
		m.answered.Inc()
		if with != nil && selection.Same(out, with) {
			m.agreed.Inc()
		}
	}
	if answer.Come() || try.flight == nil {
		compare(answer.Output, answer.Failure)
		return
	}
	try.flight.Then(compare)
}

// tally reports to a policy that observes how the call of one version went.
func (q *query) tally(i int) {
	try, answer := &q.attempts[i], &q.answers[i]
	t := try.version.tally
	if t == nil || try.shed || q.Version != "" {
		return
	}
	switch {
	case answer.Output != nil:
		t.answers.Add(1)
	case !q.missed(i):
	case answer.Failure == nil || answer.Failure.Cause == serving.MissedSLO || answer.Failure.Cause == serving.RefusedLate:
		t.failed(&t.missed)
	default:
		t.failed(&t.failures)
	}
}

// explain says how the answer came about.
func (q *query) explain() *serving.Explanation {
	e := &serving.Explanation{
		Policy: q.app.Policy.KindName(), Ended: string(q.verdict.Ended), Confidence: q.verdict.Confidence,
		Elapsed: time.Since(q.Received), Budget: q.budget, Priority: q.class().Priority,
	}
	for i := range q.attempts {
		e.Models = append(e.Models, q.explainAttempt(i))
	}
	for _, v := range q.left {
		e.Models = append(e.Models, serving.ExplainedModel{ModelID: v.ModelID, Shed: true})
	}
	return e
}

func (q *query) explainAttempt(i int) serving.ExplainedModel {
	try, ask, answer := &q.attempts[i], &q.plan.Asks[i], &q.answers[i]
	m := serving.ExplainedModel{
		Asked: i < q.opened && !try.shed && !ask.Absent, Shed: try.shed, Shadow: ask.Shadow,
		Cached: try.cached, Took: try.took, Probability: ask.Probability, Weight: ask.Weight,
	}
	if try.app != nil {
		m.App = try.app.name
	} else {
		m.Generation = try.version.Generation
	}
	if try.app == nil || answer.Output != nil {
		m.ModelID = try.id()
	}
	if answer.Output != nil {
		m.Output, m.Confidence = answer.Output.JSON, answer.Output.Confidence
	}
	if answer.Failure != nil {
		m.Failure = answer.Failure.Detail()
	}
	return m
}

// time says where the time went of the attempt that decided the answer, which is made now.
func (q *query) time() {
	i, t, now := q.deciding(), q.Timing, time.Now()
	if i < 0 {
		return
	}
	try := &q.attempts[i]
	t.Model, t.Selected, t.Looked, t.Cache = try.version.ModelID, try.asked, try.asked.Add(try.looked), q.cacheNote(try)
	if try.flight == nil {
		return
	}
	t.Heard = now
	if q.answers[i].Come() && try.took > 0 {
		t.Heard = try.asked.Add(try.took)
	}
	if try.call == nil {
		return
	}
	switch h := try.call.Last(); {
	case h.Target == nil: // it was held to the end
	case h.At.IsZero():
		t.Sent, t.Replica = h.Sent, h.Target.Replica()
	default:
		t.Sent, t.Heard, t.Service, t.Replica = h.Sent, h.At, h.Service, h.Target.Replica()
	}
}

// deciding is the attempt that the answer is made of; of several the one that came last,
// and without any the first that was asked. It is -1 where none was.
func (q *query) deciding() int {
	decided, latest := -1, time.Time{}
	for i := range q.attempts[:q.opened] {
		try := &q.attempts[i]
		if try.shed || q.plan.Asks[i].Shadow || try.asked.IsZero() {
			continue
		}
		var came time.Time
		if q.answers[i].Output != nil {
			came = try.asked.Add(try.took)
			if q.plan.Asks[i].ID == q.verdict.Model {
				return i
			}
		}
		if decided < 0 || came.After(latest) {
			decided, latest = i, came
		}
	}
	return decided
}

// cacheNote says what the cache had to do with an attempt.
func (q *query) cacheNote(try *attempt) string {
	switch {
	case q.NoCache || q.app.Cache.Off:
		return "off"
	case try.flight == nil:
		return "hit"
	case try.call == nil:
		return "joined"
	}
	return "missed"
}

// Recorder keeps the records of answers for feedback to come.
type Recorder interface {
	// Wants says whether there is room for one more record, of an input of so many bytes; learns says that a policy
	// learns from it.
	Wants(learns bool, input int) bool
	// Keep takes a record, and does not block.
	Keep(r *serving.Record)
}

// record leaves a record of the answer, for feedback to come, with the attempts from one up to another.
func (q *query) record(a *serving.Prediction, from, to int) {
	records := q.p.Records
	if records == nil || !records.Wants(q.app.learned != nil, len(q.Input.Data)) {
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
		if q.attempts[i].shed || q.plan.Asks[i].Absent {
			continue
		}
		if one := q.attempts[i].app; one != nil {
			r.Inner = &serving.RecordedInner{App: one.name, QueryID: one.answer.QueryID}
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

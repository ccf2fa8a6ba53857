package predict

import (
	"slices"
	"time"

	"github.com/topsail-serving/topsail/gateway/selection"
	"github.com/topsail-serving/topsail/serving"
)

// answer makes the prediction of the verdict, counts it and remembers it.
func (q *query) answer() serving.Prediction { return q.answerAs(q.p.ids.Next()) }

// answerAs is answer for a query that has an id.
func (q *query) answerAs(id int64) serving.Prediction {
	a := serving.Prediction{QueryID: id, Model: q.verdict.Model}
	failure := q.verdict.Failure
	if q.verdict.Output != nil {
		a.Output, a.Full, a.Cached = q.verdict.Output.JSON, q.verdict.Output, q.fromCache()
		a.Confidence, a.Qualifiers = q.verdict.Output.Confidence, q.verdict.Output.Qualifiers
	} else {
		if failure == nil || failure == left { // a model was asked, and silent
			failure = tooLate
		}
		a.Output, a.Default, a.Cause, a.Explanation = q.app.fallback, true, failure.Cause, failure.Explain()
	}
	if len(q.candidates) > 1 && q.Version == "" {
		q.name(&a)
	}
	if q.app.stages != nil && a.Default && a.Model != (serving.ModelID{}) {
		a.Missing = []serving.ModelID{a.Model}
	}
	if q.Version == "" {
		q.failover(&a)
	}
	if q.Explain {
		a.Explained = q.explain()
	}
	if !q.patient && q.Counts(&a) {
		q.count(&a, failure)
		q.p.remember(q, &a)
	}
	if q.timing != nil {
		q.time(time.Now())
	}
	return a
}

// tooLate is why there is a default where no model answered in time.
var tooLate = &serving.Failure{Cause: serving.MissedSLO}

// fromCache says whether no replica was asked for what the answer is made of: the output
// of one model, or of all that came.
func (q *query) fromCache() (cached bool) {
	if q.app.stages != nil {
		return !slices.ContainsFunc(q.attempts, func(try attempt) bool { return !try.cached })
	}
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

// asks says whether a candidate is in the plan, or was.
func (q *query) asks(candidate int) bool {
	return slices.Contains(q.left, q.versions[candidate]) ||
		slices.ContainsFunc(q.plan.Asks, func(ask selection.Ask) bool { return ask.Candidate == candidate })
}

// count counts the answer, and what each model had to do with it. Of a default, failure
// is why.
func (q *query) count(a *serving.Prediction, failure *serving.Failure) {
	received := q.Received
	if q.parts.given() { // what counts is the time to the first part
		received = received.Add(time.Since(q.parts.first))
	}
	q.app.metrics.answered(a, failure, received)
	switch {
	case q.app.stages != nil:
		q.countStages(time.Now())
		return
	case q.app.single:
		return
	}
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
	if q.app.stages != nil {
		return q.explainStages()
	}
	e := &serving.Explanation{
		Policy: q.app.Policy.KindName(), Ended: string(q.verdict.Ended), Confidence: q.verdict.Confidence,
		Elapsed: time.Since(q.Received), Budget: q.budget,
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
		ModelID: try.version.ModelID, Generation: try.version.Generation, Asked: i < q.opened && !try.shed, Shed: try.shed, Shadow: ask.Shadow,
		Cached: try.cached, Took: try.took, Probability: ask.Probability, Weight: ask.Weight,
	}
	if answer.Output != nil {
		m.Output, m.Confidence = answer.Output.JSON, answer.Output.Confidence
	}
	if answer.Failure != nil {
		m.Failure = answer.Failure.Explain()
	}
	return m
}

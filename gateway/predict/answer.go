package predict

import (
	"slices"
	"time"

	"topsail/gateway/selection"
	"topsail/serving"
)

// answer makes the prediction of the verdict, counts it and remembers it.
func (w *work) answer() serving.Prediction {
	a := serving.Prediction{QueryID: w.p.ids.Next(), Model: w.verdict.Model}
	failure := w.verdict.Failure
	if w.verdict.Output != nil {
		a.Output, a.Cached = w.verdict.Output.JSON, w.fromCache()
		a.Confidence, a.Qualifiers = w.verdict.Output.Confidence, w.verdict.Output.Qualifiers
	} else {
		if failure == nil || failure == left { // somebody was asked, and silent
			failure = tooLate
		}
		a.Output, a.Default, a.Cause, a.Explanation = w.app.fallback, true, failure.Cause, failure.Explain()
	}
	if len(w.candidates) > 1 && w.q.Version == "" {
		w.name(&a)
	}
	if w.app.stages != nil && a.Default && a.Model != (serving.ModelID{}) {
		a.Missing = []serving.ModelID{a.Model}
	}
	if w.q.Version == "" {
		w.failover(&a)
	}
	if w.q.Explain {
		a.Explained = w.explain()
	}
	if !w.patient && w.q.Counts(&a) {
		w.count(&a, failure)
		w.p.remember(w, &a)
	}
	if w.timing != nil {
		w.time(time.Now())
	}
	return a
}

// tooLate is why there is a default where nobody said anything in time.
var tooLate = &serving.Failure{Cause: serving.MissedSLO}

// fromCache says whether no replica was asked for what the answer is made of: the output
// of one model, or of all that came.
func (w *work) fromCache() (cached bool) {
	if w.app.stages != nil {
		return !slices.ContainsFunc(w.parts, func(p part) bool { return !p.cached })
	}
	if w.opened == 1 {
		return w.parts[0].cached
	}
	one := w.verdict.Model != serving.ModelID{}
	for i := range w.parts[:w.opened] {
		p, ask := &w.parts[i], &w.plan.Asks[i]
		if w.answers[i].Output == nil || ask.Shadow || one && ask.ID != w.verdict.Model {
			continue
		}
		if cached = p.cached; !cached {
			return false
		}
	}
	return cached
}

// missed says whether the answer was made without a part that was wanted in it: not a
// shadow, nor one that could not have changed it.
func (w *work) missed(i int) bool {
	if w.plan.Asks[i].Shadow || w.answers[i].Output != nil {
		return false
	}
	enough := w.verdict.Ended == selection.EndedCertain || w.verdict.Ended == selection.EndedAcceptable
	return w.answers[i].Failure != nil || !enough
}

// name says who was wanted for the answer and is not in it.
func (w *work) name(a *serving.Prediction) {
	for i := range w.parts[:w.opened] {
		p := &w.parts[i]
		if !w.missed(i) {
			continue
		}
		a.Missing = append(a.Missing, p.version.ModelID)
		if p.shed {
			a.Shed = append(a.Shed, p.version.ModelID)
		}
	}
	for i := range w.candidates { // those who are not there, and could not be asked
		if c := &w.candidates[i]; !c.Ready && w.app.Policy.Wants(c.Model) && !w.asks(i) {
			a.Missing = append(a.Missing, c.ModelID)
		}
	}
	for _, v := range w.left {
		a.Missing, a.Shed = append(a.Missing, v.ModelID), append(a.Shed, v.ModelID)
	}
}

// failover says which current versions have no ready replica any more, so that those
// before them were asked.
func (w *work) failover(a *serving.Prediction) {
	for i := range w.parts[:w.opened] {
		v := w.parts[i].version
		if v == nil {
			continue
		}
		if current, is := v.of.insteadOf(v.Version); is && !w.app.pins(v) {
			a.Failover = append(a.Failover, current)
		}
	}
}

// asks says whether a candidate is in the plan, or was.
func (w *work) asks(candidate int) bool {
	return slices.Contains(w.left, w.versions[candidate]) ||
		slices.ContainsFunc(w.plan.Asks, func(ask selection.Ask) bool { return ask.Candidate == candidate })
}

// count counts the answer, and what each model had to do with it. Of a default, failure
// is why.
func (w *work) count(a *serving.Prediction, failure *serving.Failure) {
	w.app.metrics.answered(a, failure, w.q.Received)
	switch {
	case w.app.stages != nil:
		w.countStages(time.Now())
		return
	case w.app.single:
		return
	}
	w.app.metrics.ended(w.verdict.Ended)
	for i := range w.parts[:w.opened] {
		p, answer := &w.parts[i], &w.answers[i]
		m := p.version.metrics()
		switch {
		case w.plan.Asks[i].Shadow:
			w.compareLater(p, answer)
		case answer.Output != nil:
			m.answered.Inc()
			if w.verdict.Output != nil && selection.Same(answer.Output, w.verdict.Output) {
				m.agreed.Inc()
			}
		}
		w.tally(i)
	}
}

// compareLater compares the output of a shadow with the answer when it has come.
func (w *work) compareLater(p *part, answer *selection.Answer) {
	m, with := p.version.metrics(), w.verdict.Output
	compare := func(out *serving.Output, _ *serving.Failure) {
		if out == nil {
			return
		}
		m.answered.Inc()
		if with != nil && selection.Same(out, with) {
			m.agreed.Inc()
		}
	}
	if answer.Come() || p.flight == nil {
		compare(answer.Output, answer.Failure)
		return
	}
	p.flight.Then(compare)
}

// tally tells a policy that observes how asking one version went.
func (w *work) tally(i int) {
	p, answer := &w.parts[i], &w.answers[i]
	if w.app.tallies == nil || p.shed || w.q.Version != "" {
		return
	}
	var t selection.Tally
	switch {
	case answer.Output != nil:
		t.Answers = 1
	case !w.missed(i):
		return
	case answer.Failure == nil || answer.Failure.Cause == serving.MissedSLO || answer.Failure.Cause == serving.RefusedLate:
		t.Missed = 1
	default:
		t.Failures = 1
	}
	w.app.tallies.add(p.version.Definition, t)
}

// explain says how the answer came about.
func (w *work) explain() *serving.Explanation {
	if w.app.stages != nil {
		return w.explainStages()
	}
	e := &serving.Explanation{
		Policy: w.app.Policy.KindName(), Ended: string(w.verdict.Ended), Confidence: w.verdict.Confidence,
		Elapsed: time.Since(w.q.Received), Budget: w.budget,
	}
	for i := range w.parts {
		e.Models = append(e.Models, w.explainPart(i))
	}
	for _, v := range w.left {
		e.Models = append(e.Models, serving.ExplainedModel{ModelID: v.ModelID, Shed: true})
	}
	return e
}

func (w *work) explainPart(i int) serving.ExplainedModel {
	p, ask, answer := &w.parts[i], &w.plan.Asks[i], &w.answers[i]
	m := serving.ExplainedModel{
		ModelID: p.version.ModelID, Generation: p.version.Generation, Asked: i < w.opened && !p.shed, Shed: p.shed, Shadow: ask.Shadow,
		Cached: p.cached, Took: p.took, Probability: ask.Probability, Weight: ask.Weight,
	}
	if answer.Output != nil {
		m.Output, m.Confidence = answer.Output.JSON, answer.Output.Confidence
	}
	if answer.Failure != nil {
		m.Failure = answer.Failure.Explain()
	}
	return m
}

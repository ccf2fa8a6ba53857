package predict

import (
	"fmt"
	"time"

	"topsail/gateway/selection"
	"topsail/gateway/usage"
	"topsail/serving"
)

// stages are an app's models that are asked one after another, or side by side, each with what the
// ones before it have put out. A query of such an app asks a stage as soon as its inputs are there.
type stages struct {
	serving.Pipeline
	models  []*linked        // by stage; nil: there is no such model
	sources [][]int          // by stage: whose outputs it takes; below 0 is the query's input
	usage   []*usage.Counter // by stage
}

func (p *Predictor) compileStages(a *app, cat *serving.Catalog, coldQueues map[serving.Definition]*coldQueue) *stages {
	if len(a.Stages) == 0 {
		return nil
	}
	s := &stages{Pipeline: a.Stages, usage: p.metrics.stages(a.metrics, a.Stages)}
	index := map[string]int{serving.QueryInput: -1}
	for i, stage := range a.Stages {
		var l *linked
		if m := cat.Models[stage.Model]; m != nil {
			l = p.link(a, m, cat, coldQueues)
			l.takes = 0
		}
		s.models = append(s.models, l)
		var sources []int
		for _, from := range a.Stages.Sources(i) {
			sources = append(sources, index[from])
		}
		s.sources = append(s.sources, sources)
		index[stage.Name] = i
	}
	return s
}

// cold says whether a stage has no replica to ask.
func (s *stages) cold(a *app) bool {
	for _, l := range s.models {
		if l == nil {
			continue
		}
		if v, ready := a.serving(l); v != nil && !ready {
			return true
		}
	}
	return false
}

// beginStages gives a query of an app with stages its time.
func (w *work) beginStages() error {
	if w.q.Version != "" {
		return &serving.QueryError{Cause: "Requested version: " + w.q.Version + ", and application " + w.app.Name + " asks several models"}
	}
	w.begun, w.watched = time.Now(), true
	for range w.app.stages.models {
		w.slots = append(w.slots, -1)
	}
	if !w.patient && w.app.ColdStart > w.app.SLO && w.app.stages.cold(w.app) {
		w.allow(w.app.ColdStart.Std())
	}
	return nil
}

// stepStages looks at what has come, asks the stages whose inputs are there, and says whether the
// query has its verdict: the output of the last stage, or the first failure.
func (w *work) stepStages(now time.Time) bool {
	for {
		w.collect(now)
		final := !now.Before(w.respond)
		for i := range w.parts {
			if p, a := &w.parts[i], &w.answers[i]; p.flight != nil && !a.Come() && !now.Before(p.respond) {
				if a.Failure = p.leave(now); a.Failure == nil {
					a.Failure = tooLate
				}
			}
			if w.answers[i].Failure != nil {
				w.fail(i)
				return true
			}
		}
		if last := w.slots[len(w.slots)-1]; last >= 0 && w.answers[last].Output != nil {
			w.verdict = selection.Verdict{Output: w.answers[last].Output, Model: w.parts[last].version.ModelID, Ended: selection.EndedAll}
			w.done = true
			return true
		}
		if final {
			w.verdict, w.done = selection.Verdict{Failure: tooLate}, true
			return true
		}
		if !w.openStages(now) {
			w.hedge(now)
			return false
		}
	}
}

// fail ends the query with the failure of a part.
func (w *work) fail(i int) {
	p, a := &w.parts[i], &w.answers[i]
	a.Failure = &serving.Failure{Cause: a.Failure.Cause, Message: "stage " + w.app.stages.Pipeline[p.stage].Name + ": " + a.Failure.Error()}
	w.verdict, w.done = selection.Verdict{Failure: a.Failure}, true
	if p.version != nil {
		w.verdict.Model = p.version.ModelID
	}
}

// openStages asks the stages whose inputs have come, and says whether there were any.
func (w *work) openStages(now time.Time) (opened bool) {
	for i, sources := range w.app.stages.sources {
		if w.slots[i] < 0 && w.have(sources) {
			w.openStage(i, now)
			opened = true
		}
	}
	return opened
}

// have says whether the outputs of stages have come.
func (w *work) have(sources []int) bool {
	for _, from := range sources {
		if from >= 0 && (w.slots[from] < 0 || w.answers[w.slots[from]].Output == nil) {
			return false
		}
	}
	return true
}

// openStage asks the model of a stage.
func (w *work) openStage(i int, now time.Time) {
	w.slots[i] = len(w.parts)
	w.parts, w.answers = append(w.parts, part{stage: i}), append(w.answers, selection.Answer{})
	w.plan.Asks = append(w.plan.Asks, selection.Ask{Probability: 1})
	w.opened++
	w.answers[w.slots[i]].Failure = w.askStage(w.slots[i], now)
}

// askStage asks the model of a part's stage, or says why it cannot.
func (w *work) askStage(part int, now time.Time) *serving.Failure {
	p, s := &w.parts[part], w.app.stages
	l := s.models[p.stage]
	if l == nil {
		return failure(serving.NoReplica, "there is no model %s", s.Pipeline[p.stage].Model)
	}
	if p.version, _ = w.app.serving(l); p.version == nil {
		return failure(serving.NoReplica, "no version of model %s is current", l.name)
	}
	in, err := w.inputOf(p.stage, p.version.inputType)
	if err != nil {
		return failure(serving.ModelError, "model %s: %v", l.name, err)
	}
	if misfit := p.version.misfit(in.Len()); misfit != nil {
		return misfit
	}
	within := w.within(p.stage, now)
	if within <= 0 {
		return failure(serving.MissedSLO, "there is no time left for it")
	}
	p.input, p.respond = in, now.Add(within)
	w.askPart(part, false)
	return w.answers[part].Failure
}

func failure(cause serving.Cause, format string, args ...any) *serving.Failure {
	return &serving.Failure{Cause: cause, Message: fmt.Sprintf(format, args...)}
}

// inputOf is what a stage's model is asked.
func (w *work) inputOf(stage int, t serving.InputType) (serving.Input, error) {
	sources := w.app.stages.sources[stage]
	values := make([]serving.Value, len(sources))
	for slot, from := range sources {
		if from >= 0 {
			values[slot] = w.answers[w.slots[from]].Output.Value
		} else {
			values[slot] = w.q.Input.Value()
		}
	}
	if len(values) == 1 {
		return serving.NewInput(t, values[0])
	}
	return serving.JoinInput(t, w.app.stages.Sources(stage), values)
}

// within is the time for a stage: what is left but for the stages behind it. It is half of what
// is left at the least, for those behind may have become quicker, which only asking them shows.
func (w *work) within(stage int, now time.Time) time.Duration {
	left := w.respond.Sub(now)
	return max(left-w.app.stages.behind(w.app, stage), left/2)
}

// behind is what the stages behind one usually take, on the longest way, and what is
// kept for them.
func (s *stages) behind(a *app, stage int) time.Duration {
	usual := make([]time.Duration, len(s.Pipeline)) // behind each stage
	for j := len(s.Pipeline) - 1; j > stage; j-- {
		took := usual[j]
		if l := s.models[j]; l != nil {
			if v, _ := a.serving(l); v != nil {
				median, _ := v.coldQueue.latencyEstimate.times()
				took += median
			}
		}
		for _, from := range s.sources[j] {
			if from >= 0 {
				usual[from] = max(usual[from], took)
			}
		}
	}
	return usual[stage]
}

// countStages counts what came of each stage that was asked.
func (w *work) countStages(now time.Time) {
	for i := range w.parts {
		p, a, counter := &w.parts[i], &w.answers[i], w.app.stages.usage[w.parts[i].stage]
		switch {
		case a.Failure != nil:
			counter.Ended(a.Failure, now, p.took)
		case p.cached && a.Output != nil:
			counter.Cached()
		case a.Output != nil:
			counter.Ended(nil, now, p.took)
		}
	}
}

// explainStages says how the answer came about, stage by stage.
func (w *work) explainStages() *serving.Explanation {
	e := &serving.Explanation{Policy: "stages", Ended: "all", Elapsed: time.Since(w.q.Received), Budget: w.budget}
	for _, i := range w.slots {
		if i < 0 || w.parts[i].version == nil {
			continue // the query ended before it came to this one
		}
		m := w.explainPart(i)
		m.Probability = 0
		if why := w.answers[i].Failure; why != nil {
			m.Failure, e.Ended = why.Error(), "failed"
		}
		e.Models = append(e.Models, m)
	}
	return e
}

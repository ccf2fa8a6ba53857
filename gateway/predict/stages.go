package predict

import (
	"fmt"
	"slices"
	"time"

	"github.com/topsail-serving/topsail/gateway/dispatch"
	"github.com/topsail-serving/topsail/gateway/selection"
	"github.com/topsail-serving/topsail/gateway/usage"
	"github.com/topsail-serving/topsail/serving"
)

// stages are an app's models, and other apps, that are asked one after another, or side by side, each with what the
// ones before it have put out. A query of such an app asks a stage as soon as its inputs are there.
type stages struct {
	serving.Pipeline
	models  []*linked        // by stage; one that does not exist has no version, nor has that of an app
	sources [][]int          // by stage: whose outputs it takes; below 0 is the query's input
	usage   []*usage.Counter // by stage
}

func (p *Predictor) compileStages(a *app, cat *serving.Catalog, versions map[serving.Definition]*dispatch.Version) *stages {
	s := &stages{Pipeline: a.Stages, usage: p.metrics.stages(a.metrics, a.Stages)}
	index := map[string]int{serving.QueryInput: -1}
	for i, stage := range a.Stages {
		l := &linked{name: stage.Model, served: newServed()}
		if m := cat.Models[stage.Model]; m != nil {
			l = p.link(a, m, cat, versions)
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
	a.models = s.models
	return s
}

// coldStart gives the query the time to wait for a stage that has no replica to ask.
func (s *stages) coldStart(q *query) {
	limit := q.app.SLO.Std()
	for _, l := range s.models {
		if v, ready := q.app.serving(l); v != nil && !ready {
			limit = max(limit, q.app.ColdStart.Std(), v.replicas.ReplacedUntil().Sub(q.Received))
		}
	}
	q.allow(limit)
}

func (s *stages) begin(q *query) error {
	if q.Version != "" {
		return &serving.QueryError{Cause: "Requested version: " + q.Version + ", and application " + q.app.Name + " calls several models"}
	}
	if q.Candidates != nil {
		return &serving.QueryError{Cause: "candidate_models are given, and application " + q.app.Name + " has stages, each of which is asked"}
	}
	q.begun, q.watched = time.Now(), true
	for range s.models {
		q.slots = append(q.slots, -1)
	}
	if q.mayWait() {
		s.coldStart(q)
	}
	return nil
}

// step asks the stages whose inputs are there. The verdict is the output of the last stage, or the first
// failure.
func (s *stages) step(q *query, now time.Time) bool {
	for {
		q.collect(now)
		final := !now.Before(q.respond)
		for i := range q.attempts {
			if try, a := &q.attempts[i], &q.answers[i]; try.flight != nil && !a.Come() && !now.Before(try.respond) {
				if a.Failure = try.leave(now); a.Failure == nil {
					a.Failure = tooLate
				}
			}
			if q.answers[i].Failure != nil {
				s.fail(q, i)
				return true
			}
		}
		if last := q.slots[len(q.slots)-1]; last >= 0 && q.answers[last].Output != nil {
			q.verdict = selection.Verdict{Output: q.answers[last].Output, Model: q.attempts[last].id(), Ended: selection.EndedAll}
			q.done = true
			return true
		}
		if final {
			q.verdict, q.done = selection.Verdict{Failure: tooLate}, true
			return true
		}
		if !s.open(q, now) {
			q.hedge(now)
			return false
		}
	}
}

// fail ends the query with the failure of an attempt.
func (s *stages) fail(q *query, i int) {
	try, a := &q.attempts[i], &q.answers[i]
	a.Failure = &serving.Failure{Cause: a.Failure.Cause, Message: "stage " + s.Pipeline[try.stage].Name + ": " + a.Failure.Error()}
	q.verdict, q.done = selection.Verdict{Failure: a.Failure}, true
	if try.version != nil {
		q.verdict.Model = try.version.ModelID
	}
}

// open asks the stages whose inputs have come, and says whether there were any.
func (s *stages) open(q *query, now time.Time) (opened bool) {
	for i, sources := range s.sources {
		if q.slots[i] < 0 && q.have(sources) {
			s.openStage(q, i, now)
			opened = true
		}
	}
	return opened
}

// have says whether the outputs of stages have come.
func (q *query) have(sources []int) bool {
	for _, from := range sources {
		if from >= 0 && (q.slots[from] < 0 || q.answers[q.slots[from]].Output == nil) {
			return false
		}
	}
	return true
}

// openStage asks the model of a stage.
func (s *stages) openStage(q *query, i int, now time.Time) {
	q.slots[i] = len(q.attempts)
	q.attempts, q.answers = append(q.attempts, attempt{stage: i}), append(q.answers, selection.Answer{})
	q.plan.Asks = append(q.plan.Asks, selection.Ask{Probability: 1})
	q.opened++
	q.answers[q.slots[i]].Failure = s.ask(q, q.slots[i], now)
}

// ask asks the model of an attempt's stage, or says why it cannot.
func (s *stages) ask(q *query, i int, now time.Time) *serving.Failure {
	try := &q.attempts[i]
	if s.Pipeline[try.stage].App != "" {
		return s.askApp(q, i, now)
	}
	l := s.models[try.stage]
	if try.version, _ = q.app.serving(l); try.version == nil && l.versions == nil {
		return failure(serving.NoReplica, "model %s does not exist", l.name)
	} else if try.version == nil {
		return failure(serving.NoReplica, "no version of model %s is current", l.name)
	}
	in, err := s.inputOf(q, try.stage, try.version.inputType, try.version.signature.InputTensors())
	if err != nil {
		return failure(serving.ModelError, "model %s: %v", l.name, err)
	}
	if misfit := try.version.misfit(in.Len()); misfit != nil {
		return misfit
	}
	within := s.within(q, try.stage, now)
	if within <= 0 {
		return failure(serving.MissedSLO, "no time is left for it")
	}
	try.input, try.respond = in, now.Add(within)
	q.attempt(i, false)
	return q.answers[i].Failure
}

func failure(cause serving.Cause, format string, args ...any) *serving.Failure {
	return &serving.Failure{Cause: cause, Message: fmt.Sprintf(format, args...)}
}

// within is the time for a stage: what is left but for the stages behind it. It is half of what
// is left at the least, for those behind may have become quicker, which only asking them shows.
func (s *stages) within(q *query, stage int, now time.Time) time.Duration {
	left := q.respond.Sub(now)
	return max(left-s.behind(q, stage), left/2)
}

// behind is what the stages behind one usually take, on the longest way, and what is
// kept for them.
func (s *stages) behind(q *query, stage int) time.Duration {
	usual := make([]time.Duration, len(s.Pipeline)) // behind each stage
	for j := len(s.Pipeline) - 1; j > stage; j-- {
		took := usual[j]
		if v, _ := q.app.serving(s.models[j]); v != nil {
			median, _ := v.replicas.Latency()
			took += median
		} else if inner, err := q.p.app(s.Pipeline[j].App); err == nil {
			took += inner.metrics.usual()
		}
		for _, from := range s.sources[j] {
			if from >= 0 {
				usual[from] = max(usual[from], took)
			}
		}
	}
	return usual[stage]
}

func (s *stages) finish(q *query, a *serving.Prediction, counts bool) {
	a.Cached = !a.Default && !slices.ContainsFunc(q.attempts, func(try attempt) bool { return !try.cached })
	if a.Default && a.Model != (serving.ModelID{}) {
		a.Missing = []serving.ModelID{a.Model}
	}
	if q.Explain {
		a.Explained = q.explainStages()
	}
	if counts {
		s.count(q, time.Now())
		if a.Default {
			q.record(a, 0, 0)
		} else { // feedback is about the last stage, whose output the answer is
			last := q.slots[len(q.slots)-1]
			q.record(a, last, last+1)
		}
	}
	if q.Timing != nil {
		q.Timing.Heard, q.Timing.Model = time.Now(), q.verdict.Model
	}
}

// count counts what came of each stage that was asked.
func (s *stages) count(q *query, now time.Time) {
	for i := range q.attempts {
		try, a, counter := &q.attempts[i], &q.answers[i], s.usage[q.attempts[i].stage]
		switch {
		case a.Failure != nil:
			counter.Ended(a.Failure, now, try.took)
		case try.cached && a.Output != nil:
			counter.Cached()
		case a.Output != nil:
			counter.Ended(nil, now, try.took)
		}
	}
}

// explainStages says how the answer came about, stage by stage.
func (q *query) explainStages() *serving.Explanation {
	e := &serving.Explanation{Policy: "stages", Ended: "all", Elapsed: time.Since(q.Received), Budget: q.budget, Priority: q.class().Priority}
	for _, i := range q.slots {
		if i < 0 || q.attempts[i].version == nil && q.attempts[i].app == nil {
			continue // the query ended before it came to this one
		}
		m := q.explainAttempt(i)
		m.Probability = 0
		if why := q.answers[i].Failure; why != nil {
			m.Failure, e.Ended = why.Error(), "failed"
		}
		e.Models = append(e.Models, m)
	}
	return e
}

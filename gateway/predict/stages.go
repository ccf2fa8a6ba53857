package predict

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"topsail/gateway/timing"
	"topsail/gateway/usage"
	"topsail/serving"
)

// stages are an app's models that are asked one after another, or side by side, each
// with what the ones before it have put out.
type stages struct {
	serving.Pipeline
	models  []*linked        // by stage
	sources [][]string       // by stage: whose outputs it takes
	usage   []*usage.Counter // by stage
}

func (p *Predictor) compileStages(a *app, cat *serving.Catalog, coldQueues map[serving.Definition]*coldQueue) *stages {
	if len(a.Stages) == 0 {
		return nil
	}
	s := &stages{Pipeline: a.Stages}
	for i, stage := range a.Stages {
		var l *linked
		if m := cat.Models[stage.Model]; m != nil {
			l = p.link(a, m, cat, coldQueues)
			l.takes = 0
		}
		s.models = append(s.models, l)
		s.sources = append(s.sources, a.Stages.Sources(i))
	}
	s.usage = p.metrics.stages(a.metrics, a.Stages)
	return s
}

// walk is one query on its way through an app's stages.
type walk struct {
	p       *Predictor
	app     *app
	q       *serving.Query
	respond time.Time // when its answer must leave
	visits  []visit   // by stage
}

// visit is one stage of a walk. Who closes done has written the rest.
type visit struct {
	done chan struct{}
	serving.Definition
	output  *serving.Output
	failure *serving.Failure
	cached  bool
	took    time.Duration // until it had its output
}

// predictStages answers a query of an app with stages; with patience one to learn
// from, which has so much time.
func (p *Predictor) predictStages(ctx context.Context, a *app, q *serving.Query, patience time.Duration, t *timing.Timing) (serving.Prediction, error) {
	if err := a.stages.takes(a, q); err != nil {
		return serving.Prediction{}, err
	}
	if q.Received.IsZero() {
		q.Received = time.Now()
	}
	w := &walk{p: p, app: a, q: q, visits: make([]visit, len(a.stages.Pipeline))}
	w.allow(patience)
	begun := time.Now()
	if err := w.run(ctx); err != nil {
		return serving.Prediction{}, err
	}
	answer := w.answer()
	if patience == 0 && q.Counts(&answer) {
		w.count(&answer)
		w.remember(&answer)
	}
	if t != nil {
		t.Selected, t.Heard, t.Combined, t.Model = begun, time.Now(), time.Now(), answer.Model
	}
	return answer, nil
}

// takes says why a query cannot be asked, or nil.
func (s *stages) takes(a *app, q *serving.Query) error {
	switch {
	case q.Input.Type != a.InputType:
		return &serving.QueryError{Cause: "Input of type " + q.Input.Type.String() + ", and application " + a.Name + " takes " + a.InputType.String()}
	case q.Version != "":
		return &serving.QueryError{Cause: "Requested version: " + q.Version + ", and application " + a.Name + " asks several models"}
	}
	return nil
}

// allow gives the query its time: the objective's, or where a model waits for its first
// replica that for a cold start, or the client's own if that is shorter.
func (w *walk) allow(patience time.Duration) {
	limit := w.app.SLO.Std()
	if w.app.ColdStart.Std() > limit && w.cold() {
		limit = w.app.ColdStart.Std()
	}
	if w.q.Timeout > 0 {
		limit = min(limit, w.q.Timeout)
	}
	limit -= min(w.app.margin, limit/20)
	if patience > 0 {
		limit = patience
	}
	w.respond = w.q.Received.Add(limit)
}

// cold says whether a stage has no replica to ask.
func (w *walk) cold() bool {
	for _, l := range w.app.stages.models {
		if l == nil {
			continue
		}
		if v, ready := w.app.serving(l); v != nil && !ready {
			return true
		}
	}
	return false
}

// run walks every stage as soon as those before it have put out. The first one that
// fails ends the walk. It fails only when ctx has ended.
func (w *walk) run(ctx context.Context) error {
	walking, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var group errgroup.Group
	for i := range w.visits {
		w.visits[i].done = make(chan struct{})
	}
	for i := range w.visits {
		group.Go(func() error {
			defer close(w.visits[i].done)
			if err := w.await(walking, i); err != nil {
				return nil // the walk has ended elsewhere
			}
			began := time.Now()
			w.visit(walking, i)
			w.visits[i].took = time.Since(began)
			if w.visits[i].failure != nil {
				stop(w.visits[i].failure)
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	return context.Cause(ctx)
}

// await waits for those that a stage takes from.
func (w *walk) await(ctx context.Context, i int) error {
	for _, from := range w.app.stages.sources[i] {
		if j := w.app.stages.index(from); j >= 0 {
			select {
			case <-w.visits[j].done:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}
	return ctx.Err()
}

// index is the place of a stage; below 0: it is the query's input.
func (s *stages) index(name string) int {
	for i := range s.Pipeline {
		if s.Pipeline[i].Name == name {
			return i
		}
	}
	return -1
}

// visit asks the model of a stage.
func (w *walk) visit(ctx context.Context, i int) {
	s := &w.visits[i]
	l := w.app.stages.models[i]
	fail := func(cause serving.Cause, format string, args ...any) {
		s.failure = &serving.Failure{Cause: cause, Message: "stage " + w.app.stages.Pipeline[i].Name + ": " + fmt.Sprintf(format, args...)}
	}
	if l == nil {
		fail(serving.NoReplica, "there is no model %s", w.app.stages.Pipeline[i].Model)
		return
	}
	v, _ := w.app.serving(l)
	if v == nil {
		fail(serving.NoReplica, "no version of model %s is current", l.name)
		return
	}
	s.Definition = v.Definition
	in, err := w.input(i, v.inputType)
	if err != nil {
		fail(serving.ModelError, "model %s: %v", l.name, err)
		return
	}
	own := *w.q
	own.Input, own.Version = in, ""
	within := w.within(i)
	if within <= 0 {
		fail(serving.MissedSLO, "there is no time left for it")
		return
	}
	out, cached, err := w.p.outputOf(ctx, w.app, &own, v, within)
	failure, failed := errors.AsType[*serving.Failure](err)
	switch {
	case err == nil:
		s.output, s.cached = out, cached
	case ctx.Err() != nil: // the walk has ended elsewhere
	case failed:
		fail(failure.Cause, "%v", failure)
	default: // an input that the model cannot take
		fail(serving.ModelError, "%v", err)
	}
}

// input is what a stage's model is asked.
func (w *walk) input(i int, t serving.InputType) (serving.Input, error) {
	sources := w.app.stages.sources[i]
	values := make([]serving.Value, len(sources))
	for slot, from := range sources {
		if j := w.app.stages.index(from); j >= 0 {
			values[slot] = w.visits[j].output.Value
		} else {
			values[slot] = w.q.Input.Value()
		}
	}
	if len(values) == 1 {
		return serving.NewInput(t, values[0])
	}
	return serving.JoinInput(t, sources, values)
}

// within is the time for a stage: what is left but for the stages behind it. It is half of what
// is left at the least, for those behind may have become quicker, which only asking them shows.
func (w *walk) within(i int) time.Duration {
	left := time.Until(w.respond)
	return max(left-w.behind(i), left/2)
}

// behind is what the stages behind one usually take, on the longest way, and what is
// kept for them.
func (w *walk) behind(i int) (longest time.Duration) {
	s := w.app.stages
	usual := make([]time.Duration, len(s.Pipeline)) // behind each stage
	for j := len(s.Pipeline) - 1; j > i; j-- {
		took := usual[j]
		if l := s.models[j]; l != nil {
			if v, _ := w.app.serving(l); v != nil {
				median, _ := v.coldQueue.latencyEstimate.times()
				took += median
			}
		}
		for _, from := range s.sources[j] {
			if k := s.index(from); k >= 0 {
				usual[k] = max(usual[k], took)
			}
		}
	}
	return usual[i]
}

// answer makes the prediction: the last stage's output, or the default with what ended
// the walk first.
func (w *walk) answer() serving.Prediction {
	last := &w.visits[len(w.visits)-1]
	a := serving.Prediction{QueryID: w.p.ids.Next(), Model: last.ModelID}
	if last.output != nil {
		a.Output, a.Cached = last.output.JSON, w.fromCache()
		a.Confidence, a.Qualifiers = last.output.Confidence, last.output.Qualifiers
	} else {
		failed := w.failed()
		a.Output, a.Default, a.Cause, a.Explanation = w.app.fallback, true, failed.failure.Cause, failed.failure.Explain()
		a.Model = failed.ModelID
		if failed.ModelID != (serving.ModelID{}) {
			a.Missing = []serving.ModelID{failed.ModelID}
		}
	}
	for i, l := range w.app.stages.models {
		if l == nil || w.visits[i].ModelID == (serving.ModelID{}) {
			continue
		}
		if current, is := l.insteadOf(w.visits[i].Version); is {
			a.Failover = append(a.Failover, current)
		}
	}
	if w.q.Explain {
		a.Explained = w.explain()
	}
	return a
}

// failed is the stage that ended the walk.
func (w *walk) failed() *visit {
	for i := range w.visits {
		if w.visits[i].failure != nil {
			return &w.visits[i]
		}
	}
	return &visit{failure: tooLate}
}

// count counts the answer, and what came of each stage that was asked.
func (w *walk) count(a *serving.Prediction) {
	var why *serving.Failure
	if a.Default {
		why = w.failed().failure
	}
	w.app.metrics.answered(a, why, w.q.Received)
	now := time.Now()
	for i := range w.visits {
		s, counter := &w.visits[i], w.app.stages.usage[i]
		switch {
		case s.failure != nil:
			counter.Ended(s.failure, now, s.took)
		case s.cached:
			counter.Cached()
		case s.output != nil:
			counter.Ended(nil, now, s.took)
		}
	}
}

func (w *walk) fromCache() bool {
	for i := range w.visits {
		if !w.visits[i].cached {
			return false
		}
	}
	return true
}

func (w *walk) explain() *serving.Explanation {
	e := &serving.Explanation{Policy: "stages", Ended: "all", Elapsed: time.Since(w.q.Received), Budget: w.respond.Sub(w.q.Received)}
	for i := range w.visits {
		s := &w.visits[i]
		if s.ModelID == (serving.ModelID{}) {
			continue // the query ended before it came to this one
		}
		m := serving.ExplainedModel{ModelID: s.ModelID, Asked: true, Cached: s.cached, Took: s.took}
		if s.output != nil {
			m.Output, m.Confidence = s.output.JSON, s.output.Confidence
		}
		if s.failure != nil {
			m.Failure, e.Ended = s.failure.Error(), "failed"
		}
		e.Models = append(e.Models, m)
	}
	return e
}

// remember leaves a record of the answer, for feedback to come: on the last stage,
// whose output it is.
func (w *walk) remember(a *serving.Prediction) {
	if w.p.Records == nil || !w.p.Records.Wants(false) {
		return
	}
	now := time.Now()
	r := &serving.Record{
		QueryID: a.QueryID, App: w.app.Name, User: w.q.User, Context: w.q.Context,
		InputType: w.q.Input.Type, Input: w.q.Input.Data, At: now, Expires: now.Add(w.app.Policy.Record()),
	}
	if !a.Default {
		r.Output = a.Output
		ask := serving.RecordedAsk{ModelID: a.Model, Generation: w.visits[len(w.visits)-1].Generation, Probability: 1}
		if len(a.Output) <= serving.MaxRecordedOutput {
			ask.Output = a.Output
		}
		r.Asked = []serving.RecordedAsk{ask}
	}
	w.p.Records.Keep(r)
}

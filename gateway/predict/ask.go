package predict

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/topsail-serving/topsail/gateway/selection"
	"github.com/topsail-serving/topsail/gateway/state"
	"github.com/topsail-serving/topsail/rpc"
	"github.com/topsail-serving/topsail/serving"
)

// DryRun predicts as for a query, without its deadline and without leaving a trace:
// to learn from. It waits for every model that the policy asks, for patience at the most,
// behind queries that have less time. The prediction has its explanation. It fails as
// Predict does.
func (p *Predictor) DryRun(ctx context.Context, q *serving.Query, patience time.Duration) (serving.Prediction, error) {
	r, own := p.request(1), *q
	defer p.release(r)
	own.Explain, own.Timeout = true, 0
	one := &r.queries[0]
	if err := one.begin(p, &own, r.wake, patience); err != nil {
		return serving.Prediction{}, err
	}
	if err := r.await(ctx); err != nil {
		return serving.Prediction{}, err
	}
	var a serving.Prediction
	one.answer(p.ids.Next(), &a)
	return a, nil
}

// Output is what one version says of a query's input, within so much time: from the
// cache, which cached tells, or asked. The version's model must be linked to the app,
// or decide for it. It fails with a *serving.QueryError for a version that cannot be
// asked this, a *serving.Failure where there is no output, or a context that has ended.
func (p *Predictor) Output(ctx context.Context, q *serving.Query, id serving.ModelID, within time.Duration) (out *serving.Output, cached bool, err error) {
	a, err := p.app(q.App)
	if err != nil {
		return nil, false, err
	}
	v := a.find(id)
	switch {
	case v == nil:
		return nil, false, &serving.QueryError{Cause: "model " + id.String() + " does not belong to application " + a.Name}
	case v.inputType != q.Input.Type:
		return nil, false, &serving.QueryError{Cause: "Input of type " + q.Input.Type.String() + ", and model " + id.String() + " takes " + v.inputType.String()}
	}
	r, own := p.request(1), *q
	defer p.release(r)
	one := &r.queries[0]
	own.Received = time.Now()
	one.take(p, a, &own, r.wake, max(within, 1))
	one.planner = choice{only: v}
	if err := one.planner.begin(one); err != nil {
		return nil, false, err
	}
	if err := r.await(ctx); err != nil {
		return nil, false, err
	}
	if one.verdict.Output == nil {
		failure := one.verdict.Failure
		if failure == nil {
			failure = &serving.Failure{Cause: serving.MissedSLO}
		}
		return nil, false, failure
	}
	return one.verdict.Output, one.fromCache(), nil
}

// Serving is the version of a model that an app's queries go to now, or that decides
// for it; ok is false when there is none.
func (p *Predictor) Serving(app, model string) (id serving.ModelID, ok bool) {
	a, err := p.app(app)
	if err != nil {
		return serving.ModelID{}, false
	}
	for _, l := range append(slices.Clip(a.models), a.decider) {
		if l != nil && l.name == model {
			if v, _ := a.serving(l); v != nil {
				return v.ModelID, true
			}
		}
	}
	return serving.ModelID{}, false
}

// Defines says whether a version that an app asks is what d says.
func (p *Predictor) Defines(app string, d serving.Definition) bool {
	a, err := p.app(app)
	return err == nil && a.defines(d)
}

// Definition is what a version that an app asks is now; of what it does not ask, no
// definition of any version.
func (p *Predictor) Definition(app string, id serving.ModelID) (d serving.Definition) {
	if a, err := p.app(app); err == nil {
		if v := a.find(id); v != nil {
			d = v.Definition
		}
	}
	return d
}

// Learning is what the states of an app's policy belong to; nil when it keeps none.
func (p *Predictor) Learning(app string) *state.App {
	a, err := p.app(app)
	if err != nil {
		return nil
	}
	return a.learned
}

// Forward sends a label on to the containers of the models that were asked, and says to
// how many.
func (p *Predictor) Forward(app string, f *selection.Feedback) (sent int) {
	a, err := p.app(app)
	if err != nil || f.Input.Type == 0 {
		return 0
	}
	one := rpc.Feedback{
		Input: rpc.AppendInput(nil, f.Input),
		Label: rpc.AppendPayload(nil, f.Label.Value), User: []byte(f.User), QueryID: uint64(f.QueryID),
	}
	for i := range f.Outcomes {
		if v := a.find(f.Outcomes[i].ModelID); v != nil {
			sent += v.replicas.Group().Feedback(one)
		}
	}
	return sent
}

// decider asks the model that decides for an app with a custom policy.
type decider struct {
	p   *Predictor
	app string
}

// Ask implements custom.Asker.
func (d decider) Ask(ctx context.Context, model string, text []byte) ([]byte, error) {
	id, ok := d.p.Serving(d.app, model)
	if !ok {
		return nil, fmt.Errorf("model %q, which decides for app %q, has no version that can be called", model, d.app)
	}
	within := time.Second
	if at, limited := ctx.Deadline(); limited {
		within = time.Until(at)
	}
	out, _, err := d.p.Output(ctx, &serving.Query{App: d.app, Input: serving.Input{Type: serving.Strings, Data: text}, NoCache: true}, id, within)
	if err != nil {
		return nil, err
	}
	if out.Value.DType == serving.String || out.Value.DType == serving.JSON {
		return out.Value.Data, nil
	}
	return out.JSON, nil
}

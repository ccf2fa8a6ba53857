package feedback

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/topsail-serving/topsail/gateway/selection"
	"github.com/topsail-serving/topsail/internal/retry"
	"github.com/topsail-serving/topsail/serving"
)

// joined is feedback with the predictions that it is about. It owns its memory: a state
// may still be learning from it when no caller waits for that any more.
type joined struct {
	feedback  selection.Feedback
	user      string
	context   string
	answer    *serving.Output // what the client got; nil: the default
	source    serving.FeedbackSource
	recorded  bool                   // there is a record
	duplicate bool                   // which has had its feedback, or the mark has
	mark      *serving.Record        // of its sender's id; nil: it has none
	inner     *serving.RecordedInner // nil: no other app had a part in it
}

// query is the id of the answer that it is about; 0: there was none.
func (one *joined) query() int64 {
	if isMark(one.feedback.QueryID) {
		return 0
	}
	return one.feedback.QueryID
}

// join finds the record that the feedback means, or predicts again.
func (j *Joiner) join(ctx context.Context, app *serving.App, f *serving.Feedback) (*joined, error) {
	own := *f
	own.Input.Data = slices.Clone(f.Input.Data)
	var mark *serving.Record
	if f.ID != "" {
		mark = markOf(app, f.ID, time.Now())
		if known, err := j.known(ctx, mark); known || err != nil {
			return &joined{user: f.User, context: f.Context, source: serving.FromRecord, mark: mark, duplicate: true}, err
		}
	}
	record, err := j.find(ctx, app, &own)
	if err != nil {
		return nil, err
	}
	var one *joined
	if record != nil {
		one = j.recall(ctx, app, record, own.Input)
	} else if one, err = j.dryRun(ctx, app, &own); err != nil {
		return nil, err
	}
	if one.mark = mark; mark != nil && !one.recorded {
		one.feedback.QueryID = mark.QueryID // by which states know it
	}
	return one, one.judge(app, f)
}

// latest is the longest pause before another look for a record: a store or a gateway
// under load may take longer than soon.
const latest = 4 * soon

// find is the record that the feedback means; nil when its input has none.
func (j *Joiner) find(ctx context.Context, app *serving.App, f *serving.Feedback) (*serving.Record, error) {
	j.recorder.Flush(ctx) // it may be of an answer that has just left
	record, err := j.lookUp(ctx, app, f)
	for wait := soon; errors.Is(err, serving.ErrNoRecord) && f.QueryID != 0 && wait <= latest; wait *= 2 {
		if !retry.Sleep(ctx, wait) { // another gateway may be about to store it
			return nil, context.Cause(ctx)
		}
		record, err = j.lookUp(ctx, app, f)
	}
	switch {
	case err == nil:
		return record, mismatch(record, f)
	case f.QueryID == 0:
		return nil, nil // the input is enough, also while the store is unavailable
	case !errors.Is(err, serving.ErrNoRecord):
		return nil, fmt.Errorf("%w: look up the record of query %d: %w", serving.ErrUnavailable, f.QueryID, err)
	case f.Input.Type == 0:
		return nil, &serving.QueryError{Cause: fmt.Sprintf("Unknown query_id: %d: application %s has no record of this answer, or no longer has it: send the input", f.QueryID, app.Name)}
	}
	return nil, nil
}

func (j *Joiner) lookUp(ctx context.Context, app *serving.App, f *serving.Feedback) (*serving.Record, error) {
	if f.QueryID != 0 {
		return j.recorder.store.RecordOf(ctx, app.Name, f.QueryID)
	}
	return j.recorder.store.NewestRecord(ctx, app.Name, f.User, f.Context, serving.HashInput(f.Input))
}

// mismatch refuses feedback that says something else of the query than its record.
func mismatch(r *serving.Record, f *serving.Feedback) error {
	switch {
	case f.User != "" && f.User != r.User:
		return &serving.QueryError{Cause: fmt.Sprintf("Query %d belongs to another uid", r.QueryID)}
	case f.Input.Type != 0 && serving.HashInput(f.Input) != r.InputHash:
		return &serving.QueryError{Cause: fmt.Sprintf("Query %d had another input", r.QueryID)}
	}
	return nil
}

// recall takes the predictions from a record.
func (j *Joiner) recall(ctx context.Context, app *serving.App, r *serving.Record, input serving.Input) *joined {
	if input.Type == 0 && r.Input != nil {
		input = serving.Input{Type: r.InputType, Data: r.Input}
	}
	one := &joined{
		user: r.User, context: r.Context, answer: parse(r.Output), source: serving.FromRecord, recorded: true, duplicate: r.Learned, inner: r.Inner,
		feedback: selection.Feedback{QueryID: r.QueryID, User: r.User, Input: input},
	}
	for _, ask := range r.Asked {
		o := selection.Outcome{ModelID: ask.ModelID, Probability: ask.Probability}
		if j.predictor.Defines(app.Name, ask.Definition()) { // else it says nothing of the present version
			o.Output, o.Generation = parse(ask.Output), ask.Generation
		}
		one.feedback.Outcomes = append(one.feedback.Outcomes, o)
	}
	if !one.duplicate && input.Type != 0 && j.predictor.Learning(app.Name) != nil {
		j.complete(ctx, app, one)
	}
	return one
}

// complete looks in the cache for what models had not said in time, and asks them again.
// Those that stay silent are not judged.
func (j *Joiner) complete(ctx context.Context, app *serving.App, one *joined) {
	var asking sync.WaitGroup
	for i := range one.feedback.Outcomes {
		if o := &one.feedback.Outcomes[i]; o.Output == nil {
			asking.Go(func() {
				q := serving.Query{App: app.Name, Input: one.feedback.Input, User: one.user}
				o.Generation = j.predictor.Definition(app.Name, o.ModelID).Generation
				o.Output, _, _ = j.predictor.Output(ctx, &q, o.ModelID, patience)
			})
		}
	}
	asking.Wait()
}

// dryRun predicts as a query would.
func (j *Joiner) dryRun(ctx context.Context, app *serving.App, f *serving.Feedback) (*joined, error) {
	q := serving.Query{App: app.Name, Input: f.Input, User: f.User, Context: f.Context}
	p, err := j.predictor.DryRun(ctx, &q, patience)
	if err != nil {
		return nil, err
	}
	one := &joined{
		user: f.User, context: f.Context, source: serving.FromCache,
		feedback: selection.Feedback{User: f.User, Input: f.Input},
	}
	if !p.Default {
		one.answer = parse(p.Output)
	}
	for _, m := range p.Explained.Models {
		if !m.Asked || m.App != "" {
			continue
		}
		if !m.Cached {
			one.source = serving.FromModels
		}
		one.feedback.Outcomes = append(one.feedback.Outcomes, selection.Outcome{
			ModelID: m.ModelID, Generation: m.Generation, Probability: m.Probability, Output: parse(m.Output),
		})
	}
	// A policy that does not learn needs no judgement.
	if j.predictor.Learning(app.Name) != nil && len(one.feedback.Outcomes) > 0 && !slices.ContainsFunc(one.feedback.Outcomes, func(o selection.Outcome) bool { return o.Output != nil }) {
		return nil, fmt.Errorf("app %q: %w", app.Name, serving.ErrUnjudged)
	}
	return one, nil
}

// parse makes an output of its JSON; nil of nothing.
func parse(text json.RawMessage) *serving.Output {
	if len(text) == 0 {
		return nil
	}
	out, err := serving.NewOutput(serving.Value{DType: serving.JSON, Data: text})
	if err != nil {
		return nil
	}
	return out
}

package feedback

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"topsail/gateway/selection"
	"topsail/serving"
)

// joined is feedback with the predictions that it is about.
type joined struct {
	feedback  selection.Feedback
	user      string
	context   string
	answer    *serving.Output // what the client got
	source    serving.FeedbackSource
	recorded  bool // there is a record
	duplicate bool // which has had its feedback
}

// join finds the record that the feedback means, or predicts again.
func (j *Joiner) join(ctx context.Context, app *serving.App, f *serving.Feedback) (*joined, error) {
	record, err := j.find(ctx, app, f)
	if err != nil {
		return nil, err
	}
	var one *joined
	if record != nil {
		one, err = j.recall(ctx, app, record, f)
	} else {
		one, err = j.rehearse(ctx, app, f)
	}
	if err != nil {
		return nil, err
	}
	return one, one.judge(app, f)
}

// find is the record that the feedback means; nil when its input has none.
func (j *Joiner) find(ctx context.Context, app *serving.App, f *serving.Feedback) (*serving.Record, error) {
	j.recorder.Flush(ctx) // it may be of an answer that has just left
	for first := true; ; first = false {
		record, err := j.lookUp(ctx, app, f)
		switch {
		case err == nil:
			return record, mismatch(record, f)
		case !errors.Is(err, serving.ErrNoRecord):
			if f.QueryID == 0 {
				return nil, nil // the store is away: the input is enough
			}
			return nil, fmt.Errorf("%w: %w", serving.ErrUnavailable, err)
		case f.QueryID == 0:
			return nil, nil
		case !first && f.Input.Type == 0:
			return nil, &serving.QueryError{Cause: fmt.Sprintf("Unknown query_id: %d: there is no record of such an answer of application %s, or not any more: send the input", f.QueryID, app.Name)}
		case !first:
			return nil, nil
		}
		select { // another gateway may be about to store it
		case <-time.After(soon):
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
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
		return &serving.QueryError{Cause: fmt.Sprintf("Query %d is of another uid", r.QueryID)}
	case f.Input.Type != 0 && serving.HashInput(f.Input) != r.InputHash:
		return &serving.QueryError{Cause: fmt.Sprintf("Query %d had another input", r.QueryID)}
	}
	return nil
}

// recall takes the predictions from a record. What a model had not said in time is
// looked for in the cache, or asked again.
func (j *Joiner) recall(ctx context.Context, app *serving.App, r *serving.Record, f *serving.Feedback) (*joined, error) {
	input := f.Input
	if input.Type == 0 && r.Input != nil {
		input = serving.Input{Type: r.InputType, Data: r.Input}
	}
	one := &joined{user: r.User, context: r.Context, source: serving.FromRecord, recorded: true, duplicate: r.Learned}
	one.feedback = selection.Feedback{QueryID: r.QueryID, User: r.User, Input: input}
	if r.Output != nil {
		one.answer = parse(r.Output)
	}
	for _, ask := range r.Asked {
		o := selection.Outcome{ModelID: ask.ModelID, Probability: ask.Probability, Output: parse(ask.Output)}
		if o.Output == nil && input.Type != 0 && !one.duplicate && j.predictor.Learning(app.Name) != nil {
			q := serving.Query{App: app.Name, Input: input}
			o.Output, _, _ = j.predictor.Output(ctx, &q, ask.ModelID, patience) // without it, it is not judged
		}
		one.feedback.Outcomes = append(one.feedback.Outcomes, o)
	}
	return one, nil
}

// rehearse predicts as a query would.
func (j *Joiner) rehearse(ctx context.Context, app *serving.App, f *serving.Feedback) (*joined, error) {
	input := serving.Input{Type: f.Input.Type, Data: slices.Clone(f.Input.Data)}
	q := serving.Query{App: app.Name, Input: input, User: f.User, Context: f.Context}
	p, err := j.predictor.Rehearse(ctx, &q, patience)
	if err != nil {
		return nil, err
	}
	one := &joined{user: f.User, context: f.Context, source: serving.FromCache}
	one.feedback = selection.Feedback{User: f.User, Input: input}
	if !p.Default {
		one.answer = parse(p.Output)
	}
	for _, m := range p.Explained.Models {
		if !m.Asked {
			continue
		}
		if !m.Cached {
			one.source = serving.FromModels
		}
		one.feedback.Outcomes = append(one.feedback.Outcomes, selection.Outcome{ModelID: m.ModelID, Probability: m.Probability, Output: parse(m.Output)})
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

package feedback

import (
	"cmp"
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"

	"github.com/topsail-serving/topsail/gateway/state"
	"github.com/topsail-serving/topsail/serving"
)

// learnAll has the policy and the containers learn, and says so of each piece.
func (j *Joiner) learnAll(ctx context.Context, app *serving.App, all []*joined) ([]serving.Learned, error) {
	results := j.train(ctx, app, all)
	learned := make([]serving.Learned, len(all))
	errs := make([]error, len(all))
	var finishing errgroup.Group
	finishing.SetLimit(maxJoining)
	for i, one := range all {
		learned[i] = one.learned(&results[i])
		switch {
		case results[i].Err != nil:
			errs[i] = fmt.Errorf("%w: %w", serving.ErrUnavailable, results[i].Err)
			j.metrics.count(app.Name, failed, 1)
		case learned[i].Duplicate:
			j.metrics.count(app.Name, duplicate, 1)
		default:
			finishing.Go(func() error {
				j.finish(ctx, app, one, &learned[i])
				return nil
			})
		}
	}
	_ = finishing.Wait()
	if learning := j.predictor.Learning(app.Name); learning != nil {
		j.metrics.regrets(app.Name, j.states.Get(learning, "", ""))
	}
	return learned, cmp.Or(errs...) // the first: thousands of pieces fail for one reason
}

// train has the app's policy learn what it has not learned yet.
func (j *Joiner) train(ctx context.Context, app *serving.App, all []*joined) []state.Result {
	results := make([]state.Result, len(all))
	learning := j.predictor.Learning(app.Name)
	var items []state.Item
	var places []int
	for i, one := range all {
		if results[i].Duplicate = one.duplicate; !one.duplicate && learning != nil {
			stands := func(d serving.Definition) bool { return j.predictor.Defines(app.Name, d) }
			items = append(items, state.Item{User: one.user, Context: one.context, Feedback: &one.feedback, Stands: stands})
			places = append(places, i)
		}
	}
	if len(items) == 0 {
		return results
	}
	for at, result := range j.states.Train(ctx, learning, items) {
		results[places[at]] = result
	}
	return results
}

// finish marks the record, informs the containers and counts.
func (j *Joiner) finish(ctx context.Context, app *serving.App, one *joined, l *serving.Learned) {
	if one.recorded {
		if err := j.recorder.store.MarkLearned(ctx, app.Name, one.feedback.QueryID); err != nil {
			j.log.Debug("cannot mark a record; the states remember it for a while", "err", err)
		}
	}
	if one.mark != nil {
		if err := j.recorder.store.PutRecords(ctx, []*serving.Record{one.mark}); err != nil {
			j.log.Debug("cannot store a feedback_id; the states remember it for a while", "err", err)
		}
	}
	if one.feedback.Label != nil {
		own := one.feedback
		own.QueryID = one.query()
		l.Forwarded = j.predictor.Forward(app.Name, &own)
	}
	j.metrics.learned(app.Name, &one.feedback)
}

// learned says what became of a piece.
func (one *joined) learned(r *state.Result) serving.Learned {
	l := serving.Learned{
		QueryID: one.query(), Joined: one.source, Duplicate: r.Duplicate, Trained: r.Trained, Loss: one.feedback.Loss,
	}
	for _, o := range one.feedback.Outcomes {
		l.Models = append(l.Models, serving.LearnedModel{ModelID: o.ModelID, Loss: o.Loss, Judged: o.Judged})
	}
	return l
}

package feedback

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"golang.org/x/sync/errgroup"

	"topsail/gateway/predict"
	"topsail/gateway/selection"
	"topsail/gateway/state"
	"topsail/internal/obs"
	"topsail/serving"
)

const (
	// patience is how long feedback waits for models that are asked again, and within
	// is how long it may take altogether where its sender does not say.
	patience = 2 * time.Second
	within   = 10 * time.Second
	// maxJoining is how many pieces of a batch are joined at a time.
	maxJoining = 32
	// soon is when a record of another gateway, which has just answered, is there.
	soon = 3 * flushEvery
)

// Joiner learns from feedback.
type Joiner struct {
	predictor *predict.Predictor
	states    *state.States
	recorder  *Recorder
	metrics   *metrics
	log       *slog.Logger
}

// NewJoiner makes a joiner of one gateway's parts.
func NewJoiner(p *predict.Predictor, states *state.States, recorder *Recorder, log *slog.Logger, r *obs.Registry) *Joiner {
	return &Joiner{predictor: p, states: states, recorder: recorder, metrics: newMetrics(r), log: log}
}

// Feedback takes feedback on one app and says in its order what became of each piece.
// What it has said is stored. A *serving.QueryError refuses the whole list before
// anything is learned; serving.ErrUnavailable says that not all could be stored, and
// then sending it again is harmless for pieces that name or find a query.
func (j *Joiner) Feedback(ctx context.Context, list []serving.Feedback) ([]serving.Learned, error) {
	if len(list) == 0 {
		return nil, nil
	}
	app, err := j.predictor.App(list[0].App)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, limit(list))
	defer cancel()
	all, err := j.joinAll(ctx, app, list)
	if err != nil {
		j.metrics.count(app.Name, refused, len(list))
		return nil, err
	}
	learned, err := j.learnAll(ctx, app, all)
	if err != nil {
		j.metrics.count(app.Name, failed, len(list))
	}
	return learned, err
}

// limit is how long the list may take.
func limit(list []serving.Feedback) time.Duration {
	if t := list[0].Timeout; t > 0 {
		return min(t, within)
	}
	return within
}

// joinAll joins every piece with predictions.
func (j *Joiner) joinAll(ctx context.Context, app *serving.App, list []serving.Feedback) ([]*joined, error) {
	all := make([]*joined, len(list))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(maxJoining)
	for i := range list {
		group.Go(func() (err error) {
			if err = check(app, &list[i]); err == nil {
				all[i], err = j.join(ctx, app, &list[i])
			}
			if refusal, ok := errors.AsType[*serving.QueryError](err); ok && len(list) > 1 {
				return &serving.QueryError{Cause: fmt.Sprintf("feedback_batch[%d]: %s", i, refusal.Cause)}
			}
			return err
		})
	}
	return all, group.Wait()
}

// learnAll has the policy and the containers learn.
func (j *Joiner) learnAll(ctx context.Context, app *serving.App, all []*joined) ([]serving.Learned, error) {
	results := make([]state.Result, len(all))
	if learning := j.predictor.Learning(app.Name); learning != nil {
		results = j.states.Train(ctx, learning, items(all))
	}
	learned := make([]serving.Learned, len(all))
	var wrong error
	for i, one := range all {
		result := &results[i]
		if result.Err != nil {
			wrong = fmt.Errorf("%w: %w", serving.ErrUnavailable, result.Err)
			continue
		}
		if one.duplicate {
			result.Duplicate = true
		}
		learned[i] = one.learned(result)
		j.finish(ctx, app, one, &learned[i])
	}
	return learned, wrong
}

// items are what is to be learned; a piece that is known is learned as what it is, a
// duplicate, which the states know from its id.
func items(all []*joined) []state.Item {
	list := make([]state.Item, len(all))
	for i, one := range all {
		list[i] = state.Item{User: one.user, Context: one.context, Feedback: &one.feedback}
	}
	return list
}

// finish marks the record, tells the containers and counts.
func (j *Joiner) finish(ctx context.Context, app *serving.App, one *joined, l *serving.Learned) {
	if l.Duplicate {
		j.metrics.count(app.Name, duplicate, 1)
		return
	}
	if one.recorded {
		if err := j.recorder.store.MarkLearned(ctx, app.Name, one.feedback.QueryID); err != nil {
			j.log.Debug("cannot mark a record; the states remember it for a while", "err", err)
		}
	}
	if one.feedback.Label != nil {
		l.Forwarded = j.predictor.Forward(app.Name, &one.feedback)
	}
	j.metrics.learned(app.Name, &one.feedback)
	if learning := j.predictor.Learning(app.Name); learning != nil {
		j.metrics.regrets(app.Name, j.states.Get(learning, "", ""))
	}
}

// learned says what became of a piece.
func (one *joined) learned(r *state.Result) serving.Learned {
	l := serving.Learned{
		QueryID: one.feedback.QueryID, Joined: one.source, Duplicate: r.Duplicate, Trained: r.Trained, Loss: one.feedback.Loss,
	}
	for _, o := range one.feedback.Outcomes {
		l.Models = append(l.Models, serving.LearnedModel{ModelID: o.ModelID, Loss: o.Loss, Judged: o.Judged})
	}
	return l
}

// sameAsAnswer says whether an outcome is what the client got.
func sameAsAnswer(o *selection.Outcome, answer *serving.Output) bool {
	return o.Output != nil && answer != nil && selection.Same(o.Output, answer)
}

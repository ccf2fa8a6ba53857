package feedback

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/topsail-serving/topsail/gateway/predict"
	"github.com/topsail-serving/topsail/gateway/state"
	"github.com/topsail-serving/topsail/internal/obs"
	"github.com/topsail-serving/topsail/serving"
)

const (
	// patience is how long feedback waits for models that are called again, and within
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

// Serve takes in which apps there are, for the metrics.
func (j *Joiner) Serve(cat *serving.Catalog) { j.metrics.keep(cat.Apps) }

// Feedback takes feedback on one app and says in its order what became of each piece.
// What it has said is stored. A *serving.QueryError refuses the whole list before
// anything is learned. serving.ErrUnjudged says that there is nothing to judge it by, and
// serving.ErrUnavailable that not all could be stored; then sending it again is harmless for pieces that have an id, or name or find a query.
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
		j.metrics.count(app.Name, outcomeOf(err), len(list))
		return nil, late(err)
	}
	inner, err := j.passOn(ctx, list, all)
	if err != nil {
		j.metrics.count(app.Name, failed, len(list))
		return nil, late(err)
	}
	learned, err := j.learnAll(ctx, app, all)
	for i := range learned {
		learned[i].Models = append(learned[i].Models, inner[i].Models...)
		learned[i].Forwarded += inner[i].Forwarded
	}
	return learned, late(err)
}

// passOn gives feedback to the apps that last stages asked, too, whose policies may learn. It does so before the piece is
// marked: an app learns it once, however often it is sent. One that knows nothing of the query any more learns nothing.
func (j *Joiner) passOn(ctx context.Context, list []serving.Feedback, all []*joined) ([]serving.Learned, error) {
	learned := make([]serving.Learned, len(all))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(maxJoining)
	for i, one := range all {
		if one.inner == nil || one.duplicate {
			continue
		}
		group.Go(func() error {
			f := list[i]
			f.App, f.QueryID, f.ID, f.Input = one.inner.App, one.inner.QueryID, "", serving.Input{}
			got, err := j.Feedback(ctx, []serving.Feedback{f})
			if errors.Is(err, serving.ErrUnavailable) {
				return err
			}
			if err != nil {
				j.log.Debug("feedback is not for the app of a stage", "app", f.App, "err", err)
				return nil
			}
			learned[i] = got[0]
			return nil
		})
	}
	return learned, group.Wait()
}

// outcomeOf is the outcome of feedback that cannot be joined.
func outcomeOf(err error) string {
	if _, refusal := errors.AsType[*serving.QueryError](err); refusal {
		return refused
	}
	return failed
}

// late makes of an end of time what it is for the sender: a reason to try again later.
func late(err error) error {
	if errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, serving.ErrUnavailable) {
		return fmt.Errorf("%w: feedback could not be learned in time: %w", serving.ErrUnavailable, err)
	}
	return err
}

// limit is how long the list may take.
func limit(list []serving.Feedback) time.Duration {
	if t := list[0].Timeout; t > 0 {
		return min(t, within)
	}
	return within
}

// joinAll joins every piece with predictions, once all are known to be in order.
func (j *Joiner) joinAll(ctx context.Context, app *serving.App, list []serving.Feedback) ([]*joined, error) {
	for i := range list {
		if err := check(app, &list[i]); err != nil {
			return nil, about(i, list, err)
		}
	}
	all := make([]*joined, len(list))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(maxJoining)
	for i := range list {
		group.Go(func() (err error) {
			all[i], err = j.join(ctx, app, &list[i])
			return about(i, list, err)
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	markRepeats(all)
	return all, nil
}

// about says which piece of several a refusal is about.
func about(i int, list []serving.Feedback, err error) error {
	if refusal, ok := errors.AsType[*serving.QueryError](err); ok && len(list) > 1 {
		return &serving.QueryError{Cause: fmt.Sprintf("feedback_batch[%d]: %s", i, refusal.Cause)}
	}
	return err
}

// markRepeats marks what is about an answer that an earlier piece is about, or has its id.
func markRepeats(all []*joined) {
	seen := make(map[int64]bool, len(all))
	for _, one := range all {
		ids := []int64{one.feedback.QueryID}
		if one.mark != nil {
			ids = append(ids, one.mark.QueryID)
		}
		one.duplicate = one.duplicate || slices.ContainsFunc(ids, func(id int64) bool { return id != 0 && seen[id] })
		for _, id := range ids {
			seen[id] = true
		}
	}
}

package state

import (
	"context"
	"fmt"
	"slices"

	"github.com/topsail-serving/topsail/gateway/selection"
	"github.com/topsail-serving/topsail/serving"
)

// Item is one piece of feedback to learn from. The feedback is only lent.
type Item struct {
	User     string // may be empty
	Context  string // may be empty
	Feedback *selection.Feedback
	Stands   func(serving.Definition) bool // whether that is in force: what is not is no longer learned; nil: all are
}

// Result is what became of an Item.
type Result struct {
	Trained   []serving.StateScope // the states that have learned it now, as they are stored
	Duplicate bool                 // all had learned it before
	Err       error                // why not all of them have it; to send it again is harmless when it has a query's id
}

// Train learns, and returns when what was learned is stored: in the user's state, then in the
// context's and in the app's, so that users who come later begin with what was learned. A state
// that has learned of a query already does not learn it again. Results are in the order of the
// list.
func (s *States) Train(ctx context.Context, a *App, list []Item) []Result {
	results := make([]Result, len(list))
	keys := make([]serving.StateKey, len(list))
	left := make([]bool, len(list)) // there is a key that has not learned it
	for i, item := range list {
		keys[i] = a.key(item.User, item.Context)
		results[i].Err = check(item.Feedback)
		left[i] = results[i].Err == nil
	}
	// One tier after the other: a user's state that begins with the app's must not
	// find its own feedback there already.
	for range tiers {
		s.trainTier(ctx, a, list, keys, left, results)
	}
	for i := range results {
		results[i].Duplicate = results[i].Err == nil && len(results[i].Trained) == 0
	}
	return results
}

const tiers = 3 // a user's state, a context's, the app's

// trainTier trains one state for each item, and moves on to the parent.
func (s *States) trainTier(ctx context.Context, a *App, list []Item, keys []serving.StateKey, left []bool, results []Result) {
	jobs := make([]*job, len(list))
	for i := range list {
		if left[i] {
			jobs[i] = s.submit(ctx, a, keys[i], learn(&list[i]))
		}
	}
	for i, j := range jobs {
		if j == nil {
			continue
		}
		if err := s.await(ctx, j); err != nil {
			results[i].Err, left[i] = err, false
			continue
		}
		if j.changed {
			results[i].Trained = append(results[i].Trained, serving.StateScope{User: keys[i].User, Context: keys[i].Context})
		}
		keys[i], left[i] = parent(keys[i])
	}
}

// learn is the change that feedback makes.
func learn(item *Item) change {
	return func(a *App, s *selection.State) (*selection.State, error) {
		if s.Learned(item.Feedback.QueryID) {
			return nil, nil
		}
		f := item.standing()
		next := a.learner.Train(s, f)
		if next == nil {
			return nil, fmt.Errorf("%w: the policy of app %q cannot learn now", serving.ErrUnavailable, a.name)
		}
		next = next.Clone() // it may share memory with s
		a.account(next, f)
		next.Remember(f.QueryID)
		return next, nil
	}
}

// standing is the feedback without what it says of definitions that were replaced since it
// was joined: the state is about what is there now.
func (i *Item) standing() *selection.Feedback {
	gone := func(o selection.Outcome) bool { return o.Judged && i.Stands != nil && !i.Stands(o.Definition()) }
	if !slices.ContainsFunc(i.Feedback.Outcomes, gone) {
		return i.Feedback
	}
	f := *i.Feedback
	f.Outcomes = slices.DeleteFunc(slices.Clone(f.Outcomes), gone)
	return &f
}

// account counts what is counted for every kind.
func (a *App) account(s *selection.State, f *selection.Feedback) {
	s.Steps++
	s.Loss += f.Loss
	for i := range f.Outcomes {
		o := &f.Outcomes[i]
		if at := a.place(s, o.ModelID); at >= 0 && o.Judged {
			s.Models[at].Asked++
			s.Models[at].Loss += o.Loss
		}
	}
}

// check refuses invalid losses, from which a state would never recover.
func check(f *selection.Feedback) error {
	if !isLoss(f.Loss) {
		return fmt.Errorf("the loss of an answer is %v: it must be between 0 and 1", f.Loss)
	}
	for i := range f.Outcomes {
		if o := &f.Outcomes[i]; o.Judged && !isLoss(o.Loss) {
			return fmt.Errorf("the loss of model %s is %v: it must be between 0 and 1", o.ModelID, o.Loss)
		}
	}
	return nil
}

func isLoss(x float64) bool { return x >= 0 && x <= 1 }

package custom

import (
	"time"

	"github.com/topsail-serving/topsail/gateway/selection"
	"github.com/topsail-serving/topsail/serving"
)

// New implements selection.Learner.
func (p *Policy) New(models []serving.ModelID) *selection.State {
	return selection.NewState(serving.PolicyCustom, models)
}

// Train implements selection.Learner: the model gets its state and the feedback, and
// says what its state is now. After a failure it is left alone for a while, so that a
// model that does not answer does not hold up other feedback for long.
func (p *Policy) Train(s *selection.State, f *selection.Feedback) *selection.State {
	if time.Now().UnixNano() < p.resting.Load() {
		return nil
	}
	var said trained
	if err := p.ask(trainWithin, p.trainRequest(s, f), &said); err != nil || len(said.State) == 0 || len(said.State) > maxState {
		p.resting.Store(time.Now().Add(restAfter).UnixNano())
		return nil
	}
	next := s.Clone()
	next.Blob = said.State
	return next
}

// AddModel implements selection.Learner.
func (p *Policy) AddModel(s *selection.State, id serving.ModelID) *selection.State {
	next := s.Clone()
	next.Insert(selection.ModelState{ModelID: id})
	return next
}

// UpdateVersion implements selection.Learner.
func (p *Policy) UpdateVersion(s *selection.State, id serving.ModelID) *selection.State {
	next := s.Clone()
	if at := next.Find(id.Model); at >= 0 {
		next.Models[at].ModelID = id
	}
	return next
}

// Explain implements selection.Learner. What the model makes of its state is its own:
// the worth of a model is how seldom it was wrong, and the shares are of what was judged.
func (p *Policy) Explain(s *selection.State) []selection.Standing {
	total := 0.0
	for i := range s.Models {
		total += s.Models[i].Asked
	}
	all := make([]selection.Standing, len(s.Models))
	for i := range s.Models {
		m := &s.Models[i]
		if total == 0 {
			all[i].Share = 1 / float64(len(s.Models))
			continue
		}
		all[i].Share = m.Asked / total
		if m.Asked > 0 {
			all[i].Worth = 1 - m.Loss/m.Asked
		}
	}
	return all
}

package bandit

import (
	"math"

	"github.com/topsail-serving/topsail/gateway/selection"
	"github.com/topsail-serving/topsail/serving"
)

// The entry of a model has in Count how often it was judged and in Sum its losses,
// both discounted.

const (
	// maxCount bounds the weight of the past, whatever is stored.
	maxCount = 1e9
	// joinedCount is how much the place of a model that joins weighs, in pieces of
	// feedback: little, so that it is tried soon.
	joinedCount = 2
	// carriedCount is how much what was learned of the version before weighs at most.
	carriedCount = 50
)

// tally is a model's Count and Sum, in the bounds that make sense.
func tally(m *selection.ModelState) (n, sum float64) {
	n = min(max(m.Count, 0), maxCount)
	return n, min(max(m.Sum, 0), n)
}

// gain is a model's mean gain, or what it is taken for when it is not known.
func gain(m *selection.ModelState, unknown float64) float64 {
	n, sum := tally(m)
	if n == 0 {
		return unknown
	}
	return 1 - sum/n
}

// New is the state before any feedback.
func (a *arms) New(models []serving.ModelID) *selection.State {
	return selection.NewState(a.kind, models)
}

// AddModel starts a model at the mean of the others.
func (a *arms) AddModel(s *selection.State, id serving.ModelID) *selection.State {
	next := s.Clone()
	if s.FindVersion(id) >= 0 {
		return next
	}
	losses, known, most := 0.0, 0.0, 0.0
	for i := range s.Models {
		if n, sum := tally(&s.Models[i]); n > 0 {
			losses, known, most = losses+sum/n, known+1, max(most, n)
		}
	}
	m := selection.ModelState{ModelID: id}
	if known > 0 {
		m.Count = min(most, joinedCount)
		m.Sum = m.Count * losses / known
	}
	next.Insert(m)
	return next
}

// UpdateVersion keeps the mean of the version before, for half as much.
func (a *arms) UpdateVersion(s *selection.State, id serving.ModelID) *selection.State {
	at := s.Find(id.Model)
	if at < 0 {
		return a.AddModel(s, id)
	}
	next := s.Clone()
	m := &next.Models[at]
	m.ModelID = id
	if n, sum := tally(m); n > 0 {
		m.Count = min(n/2, carriedCount)
		m.Sum = m.Count * sum / n
	}
	return next
}

// judged calls learn with each outcome that can be learned from, and the place of its
// model in s.
func judged(s *selection.State, f *selection.Feedback, learn func(at int, loss float64, o *selection.Outcome)) {
	for i := range f.Outcomes {
		o := &f.Outcomes[i]
		if !o.Judged || math.IsNaN(o.Loss) || math.IsInf(o.Loss, 0) {
			continue
		}
		if at := s.FindVersion(o.ModelID); at >= 0 { // of a version before, it says nothing
			learn(at, min(max(o.Loss, 0), 1), o)
		}
	}
}

// train counts the losses, and discounts all earlier ones.
func (a *arms) train(s *selection.State, f *selection.Feedback, left float64) *selection.State {
	next := s.Clone()
	learned := false
	judged(next, f, func(at int, loss float64, _ *selection.Outcome) {
		if !learned {
			fade(next, left)
			learned = true
		}
		count(&next.Models[at], loss, 1)
	})
	return next
}

// count takes a loss into an entry, and leaves a part of what it had.
func count(m *selection.ModelState, loss, left float64) {
	n, sum := tally(m)
	m.Count, m.Sum = n*left+1, sum*left+loss
}

// fade leaves a part of what all entries have.
func fade(s *selection.State, left float64) {
	for i := range s.Models {
		n, sum := tally(&s.Models[i])
		s.Models[i].Count, s.Models[i].Sum = n*left, sum*left
	}
}

// standings explains models by their gain and by how often they were judged lately.
func (a *arms) standings(s *selection.State) []selection.Standing {
	total := 0.0
	for i := range s.Models {
		n, _ := tally(&s.Models[i])
		total += n
	}
	list := make([]selection.Standing, len(s.Models))
	for i := range s.Models {
		n, _ := tally(&s.Models[i])
		list[i] = selection.Standing{Worth: gain(&s.Models[i], 0.5), Share: 1 / float64(len(list))}
		if total > 0 {
			list[i].Share = n / total
		}
	}
	return list
}

// best is the place of the best model that may be asked, or -1.
func (a *arms) best(s *selection.State) int {
	best := -1
	for i := range s.Models {
		if m := &s.Models[i]; a.may(m.Model) && (best < 0 || gain(m, 1) > gain(&s.Models[best], 1)) {
			best = i
		}
	}
	return best
}

// allowed is how many models may be asked.
func (a *arms) allowed(s *selection.State) (n int) {
	for i := range s.Models {
		if a.may(s.Models[i].Model) {
			n++
		}
	}
	return n
}

// option is what a policy's option says, or its default.
func option(given, byDefault float64) float64 {
	if given == 0 {
		return byDefault
	}
	return given
}

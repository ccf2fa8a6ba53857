package ensemble

import (
	"math"
	"slices"

	"github.com/topsail-serving/topsail/gateway/selection"
	"github.com/topsail-serving/topsail/serving"
)

// weighted is what Exp4 and Stacking have in common: a state of one positive weight for
// each model, kept as its logarithm, of which the largest is 0. Weights are multiplied
// by what feedback says, and a part of them is shared out evenly at each step: no model
// falls so low that it could not come back (fixed share: Herbster and Warmuth, 1998).
type weighted struct {
	panel
	kind   string
	mixing float64 // the part of the weights that is shared out at each step
}

// lowest is the least logarithm of a weight: of less, exp would make 0.
const lowest = -500

// New implements selection.Learner: all models weigh the same.
func (w *weighted) New(models []serving.ModelID) *selection.State {
	return selection.NewState(w.kind, models)
}

// Select implements selection.Policy.
func (w *weighted) Select(s *selection.State, _ *selection.Query, candidates []selection.Candidate, plan *selection.Plan) {
	w.addCandidates(candidates, plan)
	weigh(s, candidates, plan)
	top := math.Inf(-1)
	for i := range plan.Asks {
		top = max(top, plan.Asks[i].Weight)
	}
	for i := range plan.Asks {
		plan.Asks[i].Weight = math.Exp(max(plan.Asks[i].Weight-top, lowest))
	}
	w.rank(candidates, plan)
	share(plan)
}

// AddModel implements selection.Learner: the model begins with the mean weight.
func (w *weighted) AddModel(s *selection.State, id serving.ModelID) *selection.State {
	n := s.Clone()
	if n.FindVersion(id) >= 0 {
		return n
	}
	w.normalise(n)
	n.Insert(selection.ModelState{ModelID: id, Weight: math.Log(w.mean(n, math.Exp))})
	w.normalise(n)
	return n
}

// UpdateVersion implements selection.Learner: the logarithm of the model's weight moves
// halfway to the mean of all.
func (w *weighted) UpdateVersion(s *selection.State, id serving.ModelID) *selection.State {
	n, at := renamed(s, id)
	if at < 0 {
		return w.AddModel(s, id)
	}
	if s.FindVersion(id) < 0 {
		w.normalise(n)
		middle := w.mean(n, func(logarithm float64) float64 { return logarithm })
		n.Models[at].Weight = (n.Models[at].Weight + middle) / 2
		w.normalise(n)
	}
	return n
}

// renamed is a copy of a state in which a model's entry has the version of an id, and
// its place; -1 where there is no entry.
func renamed(s *selection.State, id serving.ModelID) (*selection.State, int) {
	n := s.Clone()
	at := n.FindVersion(id)
	if at >= 0 {
		return n, at
	}
	if at = n.Find(id.Model); at < 0 {
		return n, at
	}
	m := n.Models[at]
	m.ModelID = id
	n.Models = slices.Delete(n.Models, at, at+1)
	n.Insert(m)
	return n, n.FindVersion(id)
}

// Explain implements selection.Learner. A model's worth is the logarithm of its weight.
func (w *weighted) Explain(s *selection.State) []selection.Standing {
	n := s.Clone()
	w.normalise(n)
	total := 0.0
	for i := range n.Models {
		if w.has(n.Models[i].Model) {
			total += math.Exp(n.Models[i].Weight)
		}
	}
	list := make([]selection.Standing, len(n.Models))
	for i := range n.Models {
		list[i].Worth = n.Models[i].Weight
		if w.has(n.Models[i].Model) {
			list[i].Share = math.Exp(n.Models[i].Weight) / total
		}
	}
	return list
}

// step is what one model's weight is multiplied by: exp(by).
type step struct {
	at int // its place in the state
	by float64
}

// learn takes the steps of the models that feedback judged, in a state of its own. Together they
// keep the weight that they had, so that a model that was not asked or did not answer neither
// gains nor loses by it (specialists: Freund, Schapire, Singer and Warmuth, 1997).
func (w *weighted) learn(n *selection.State, steps []step) {
	if len(steps) == 0 {
		return
	}
	w.normalise(n)
	before := logSum(n, steps)
	for _, s := range steps {
		n.Models[s.at].Weight += s.by
	}
	lost := before - logSum(n, steps)
	for _, s := range steps {
		n.Models[s.at].Weight += lost
	}
	mean := w.mean(n, math.Exp)
	for i := range n.Models {
		if m := &n.Models[i]; w.has(m.Model) {
			m.Weight = math.Log((1-w.mixing)*math.Exp(m.Weight) + w.mixing*mean)
		}
	}
	w.normalise(n)
}

// logSum is the logarithm of the sum of the weights that have a step.
func logSum(n *selection.State, steps []step) float64 {
	top := math.Inf(-1)
	for _, s := range steps {
		top = max(top, n.Models[s.at].Weight)
	}
	total := 0.0
	for _, s := range steps {
		total += math.Exp(n.Models[s.at].Weight - top)
	}
	return top + math.Log(total)
}

// mean is the mean, over the models that can be asked, of something about the
// logarithm of their weight.
func (w *weighted) mean(n *selection.State, of func(logarithm float64) float64) float64 {
	total, count := 0.0, 0.0
	for i := range n.Models {
		if m := &n.Models[i]; w.has(m.Model) {
			total += of(m.Weight)
			count++
		}
	}
	if count == 0 {
		return of(0)
	}
	return total / count
}

// normalise makes 0 the largest weight of the models that can be asked, and none of
// theirs too small.
func (w *weighted) normalise(n *selection.State) {
	top := math.Inf(-1)
	for i := range n.Models {
		if m := &n.Models[i]; w.has(m.Model) {
			top = max(top, m.Weight)
		}
	}
	for i := range n.Models {
		if m := &n.Models[i]; w.has(m.Model) {
			m.Weight = max(m.Weight-top, lowest)
		}
	}
}

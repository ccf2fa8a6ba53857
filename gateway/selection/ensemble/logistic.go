package ensemble

import (
	"cmp"
	"math"

	"github.com/topsail-serving/topsail/gateway/selection"
	"github.com/topsail-serving/topsail/serving"
)

// Logistic corrects the models' numeric outputs by a logistic regression that each
// user's feedback trains, as the first prototype of Clipper did. The answer is 1 or 0.
// A label above 0.5 counts as 1, any other number as 0; feedback by a plain reward
// teaches it nothing.
//
// An output counts by its distance from its model's running mean, in standard
// deviations, and one that is missing as that mean. Steps are stochastic gradient
// descent with AdaGrad (Duchi, Hazan and Singer, 2011). Before any feedback the answer
// is 1 where the mean of the outputs is above 0.5.
type Logistic struct {
	panel
	eta     float64
	no, yes *serving.Output
}

const defaultLogisticEta = 0.3

// NewLogistic makes the policy of a spec.
func NewLogistic(spec serving.PolicySpec, links []string, _ serving.OutputType) *Logistic {
	return &Logistic{
		panel: newPanel(&spec, links),
		eta:   cmp.Or(spec.Eta, defaultLogisticEta),
		no:    &serving.Output{Value: serving.Number(0), JSON: []byte("0.0")},
		yes:   &serving.Output{Value: serving.Number(1), JSON: []byte("1.0")},
	}
}

// New implements selection.Learner: all models count the same, and twice if they agree.
func (l *Logistic) New(models []serving.ModelID) *selection.State {
	s := selection.NewState(serving.PolicyLogistic, models)
	asked := 0
	for i := range s.Models {
		if l.has(s.Models[i].Model) {
			asked++
		}
	}
	for i := range s.Models {
		if m := &s.Models[i]; l.has(m.Model) {
			m.Weight = 2 / float64(asked)
		}
	}
	return s
}

// Select implements selection.Policy: models rank by how much they count, up or down.
func (l *Logistic) Select(s *selection.State, _ *selection.Query, candidates []selection.Candidate, plan *selection.Plan) {
	l.addCandidates(candidates, plan)
	weigh(s, candidates, plan)
	l.rank(candidates, plan)
}

// Combine implements selection.Policy. What is missing can only count so much: as soon
// as that could not change the answer it does not wait.
func (l *Logistic) Combine(s *selection.State, plan *selection.Plan, answers []selection.Answer, at selection.Moment) selection.Decision {
	score, doubt, usable := intercept(s).weight, 0.0, false
	for i := range answers {
		place := s.Find(plan.Asks[i].ID.Model)
		if place < 0 {
			continue
		}
		t := termOf(&s.Models[place])
		if o := answers[i].Output; o != nil {
			if x, ok := number(o); ok {
				score += t.weight * t.standard(x)
				usable = true
			}
		} else if !answers[i].Come() {
			doubt += math.Abs(t.weight) * farthest
		}
	}
	why, over := ended(answers, at)
	switch {
	case over && !usable:
		return failed(plan, answers, serving.OutputNumber, why)
	case over:
	case usable && math.Abs(score) > doubt*(1+slack):
		why = selection.EndedCertain
	default:
		return selection.Decision{}
	}
	d := selection.Decision{Done: true, Verdict: selection.Verdict{Output: l.no, Confidence: logistic(math.Abs(score)), Ended: why}}
	if score > 0 {
		d.Output = l.yes
	}
	return d
}

// Train implements selection.Learner.
func (l *Logistic) Train(s *selection.State, f *selection.Feedback) *selection.State {
	n := s.Clone()
	if f.Label == nil {
		return n
	}
	label, ok := number(f.Label)
	if !ok {
		return n
	}
	bias := intercept(n)
	score := bias.weight
	for i := range f.Outcomes {
		if at, x, ok := l.input(n, &f.Outcomes[i]); ok {
			t := termOf(&n.Models[at])
			score += t.weight * t.standard(x)
		}
	}
	wrong := logistic(score)
	if label > 0.5 {
		wrong--
	}
	for i := range f.Outcomes {
		if at, x, ok := l.input(n, &f.Outcomes[i]); ok {
			t := termOf(&n.Models[at])
			t.descend(wrong*t.standard(x), l.eta)
			t.see(x)
			t.keep(&n.Models[at])
		}
	}
	bias.descend(wrong, l.eta)
	n.Numbers = []float64{bias.weight, bias.steep}
	return n
}

// input is what an outcome puts into the regression, and the place of its model.
func (l *Logistic) input(s *selection.State, o *selection.Outcome) (at int, x float64, ok bool) {
	at = s.Find(o.Model)
	if at < 0 || o.Output == nil || !l.has(o.Model) {
		return at, 0, false
	}
	x, ok = number(o.Output)
	return at, x, ok
}

// AddModel implements selection.Learner: the model counts as much as the others do on
// average.
func (l *Logistic) AddModel(s *selection.State, id serving.ModelID) *selection.State {
	n := s.Clone()
	if n.FindVersion(id) >= 0 {
		return n
	}
	m := selection.ModelState{ModelID: id, Weight: 2}
	if mean, any := l.mean(n); any {
		m.Weight = mean
	}
	n.Insert(m)
	return n
}

// UpdateVersion implements selection.Learner: the weight moves halfway to the mean, and
// learns as fast as a young one again.
func (l *Logistic) UpdateVersion(s *selection.State, id serving.ModelID) *selection.State {
	n, at := renamed(s, id)
	if at < 0 {
		return l.AddModel(s, id)
	}
	if mean, any := l.mean(n); any && s.FindVersion(id) < 0 {
		t := termOf(&n.Models[at])
		t.weight = t.weight/2 + mean/2
		t.steep /= 4
		t.count = min(t.count, youngCount)
		t.keep(&n.Models[at])
	}
	return n
}

// mean is the mean weight of those that can be asked.
func (l *Logistic) mean(s *selection.State) (mean float64, any bool) {
	count := 0.0
	for i := range s.Models {
		if m := &s.Models[i]; l.has(m.Model) {
			count++
			mean += (termOf(m).weight - mean) / count
		}
	}
	return mean, count > 0
}

// Explain implements selection.Learner. A model's worth is how much it counts, up or
// down.
func (l *Logistic) Explain(s *selection.State) []selection.Standing {
	list := make([]selection.Standing, len(s.Models))
	total, asked := 0.0, 0.0
	for i := range s.Models {
		if m := &s.Models[i]; l.has(m.Model) {
			list[i].Worth = math.Abs(termOf(m).weight)
			total += list[i].Worth
			asked++
		}
	}
	for i := range list {
		switch {
		case total > 0:
			list[i].Share = list[i].Worth / total
		case l.has(s.Models[i].Model):
			list[i].Share = 1 / asked
		}
	}
	return list
}

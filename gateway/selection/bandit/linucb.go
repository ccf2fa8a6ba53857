package bandit

import (
	"math"

	"github.com/topsail-serving/topsail/gateway/selection"
	"github.com/topsail-serving/topsail/serving"
)

// LinUCB asks the model that may gain the most for an input like this. It takes numeric
// inputs. The entry of a model has its ridge regression in Vector: the inverse of A, as
// its lower triangle row by row, and then b; and after it the model's changes. None is that of
// no feedback.
type LinUCB struct {
	arms
	alpha, discount float64
	width           int // of a context
}

// NewLinUCB makes disjoint LinUCB (Li et al., "A contextual-bandit approach to
// personalized news article recommendation", 2010). Doubt counts alpha times, 0.5 by
// default. The context has as many numbers of the input as features says, 16 by default
// and 64 at the most, and a constant. What is gained is minus the loss: then a model of
// which nothing is known is expected to lose nothing, and is tried. A model whose losses
// change begins anew. A discount, which is 1 by default, is what is left of all that was seen
// at each loss (Russac et al., "Weighted linear bandits for non-stationary environments", 2019).
func NewLinUCB(spec serving.PolicySpec, _ []string) *LinUCB {
	features := spec.Features
	if features <= 0 {
		features = defaultFeatures
	}
	return &LinUCB{newArms(serving.PolicyLinUCB, &spec), option(spec.Alpha, 0.5), option(spec.Discount, 1), 1 + min(features, maxFeatures)}
}

// Select implements selection.Policy.
func (p *LinUCB) Select(s *selection.State, q *selection.Query, candidates []selection.Candidate, plan *selection.Plan) {
	var memory [2 * (1 + maxFeatures)]float64
	x, y := memory[:p.width], memory[p.width:2*p.width]
	contextOf(x, q.Input)
	p.rankSurely(s, candidates, plan, func(m *selection.ModelState) float64 {
		r := p.regression(m)
		if r.b == nil {
			return 1 + p.alpha // b is zero, and x has length 1
		}
		r.times(y, x)
		return 1 + dot(y, r.b) + p.alpha*math.Sqrt(max(0, dot(y, x)))
	})
	for i := range s.Models {
		if p.changes(&s.Models[i]).fallen() {
			lookAgainAt(plan, func(a *selection.Ask) bool { return p.changes(&s.Models[s.FindVersion(a.ID)]).fallen() }, q.Rand.Float64())
			return
		}
	}
}

// regression is that of a model; its b is nil when there is none, or one of another
// width.
func (p *LinUCB) regression(m *selection.ModelState) regression {
	triangle := p.width * (p.width + 1) / 2
	if n := len(m.Vector) - triangle - p.width; n != 0 && n != changeNumbers {
		return regression{}
	}
	return regression{m.Vector[:triangle], m.Vector[triangle : triangle+p.width]}
}

// changes are those of a model; nil where there are none.
func (p *LinUCB) changes(m *selection.ModelState) changes {
	if at := p.width*(p.width+1)/2 + p.width; len(m.Vector) == at+changeNumbers {
		return m.Vector[at:]
	}
	return nil
}

// begin is the regression of a model, made if there is none.
func (p *LinUCB) begin(m *selection.ModelState) regression {
	all := p.width*(p.width+1)/2 + p.width + changeNumbers
	if r := p.regression(m); r.b != nil {
		return r
	}
	m.Vector = make([]float64, all)
	for i := range p.width {
		m.Vector[i*(i+1)/2+i] = 1
	}
	return p.regression(m)
}

// Train implements selection.Learner.
func (p *LinUCB) Train(s *selection.State, f *selection.Feedback) *selection.State {
	next, x := s.Clone(), make([]float64, p.width)
	contextOf(x, f.Input)
	learned := false
	judged(next, f, func(at int, loss float64, _ *selection.Outcome) {
		if !learned {
			p.forget(next)
			learned = true
		}
		m := &next.Models[at]
		p.notice(next, at, x, loss)
		count(m, loss, 1)
		p.begin(m).learn(x, -loss)
		if !sound(m.Vector) { // what was stored was no regression
			m.Vector = nil
		}
	})
	return next
}

// notice resets a model whose losses have changed.
func (p *LinUCB) notice(s *selection.State, at int, x []float64, loss float64) {
	m := &s.Models[at]
	r := p.begin(m)
	if known, _ := tally(m); known < changeAfter {
		return
	}
	y := make([]float64, len(x))
	r.times(y, x)
	worse, changed := p.changes(m).take(loss - min(max(-dot(y, r.b), 0), 1))
	switch {
	case changed:
		if worse {
			p.doubt(s)
		}
		p.restart(m, worse)
	case p.best(s) == at:
		p.changes(m).setFallen(false)
	}
}

// restart resets a model.
func (p *LinUCB) restart(m *selection.ModelState, fallen bool) {
	m.Count, m.Sum, m.Vector = 0, 0, nil
	p.begin(m)
	p.changes(m).setFallen(fallen)
}

// doubt reduces the weight of what is known of all models: where one has become worse, another may
// have become better.
func (p *LinUCB) doubt(s *selection.State) {
	const halvings = 4
	fade(s, math.Pow(0.5, halvings))
	for i := range s.Models {
		m := &s.Models[i]
		if p.changes(m).fallen() {
			p.restart(m, true)
		} else if r := p.regression(m); r.b != nil {
			for range halvings {
				r.forget(1)
			}
		}
	}
}

// forget leaves a part of what is known of all models, and so doubts those more that
// have not been asked for long.
func (p *LinUCB) forget(s *selection.State) {
	if p.discount >= 1 {
		return
	}
	fade(s, p.discount)
	for i := range s.Models {
		if r := p.regression(&s.Models[i]); r.b != nil {
			r.forget(1/p.discount - 1)
		}
	}
}

// AddModel starts a model with the mean of the others' expected gains.
func (p *LinUCB) AddModel(s *selection.State, id serving.ModelID) *selection.State {
	next := p.arms.AddModel(s, id)
	if s.FindVersion(id) >= 0 || len(s.Models) == 0 {
		return next
	}
	joined := p.begin(&next.Models[next.FindVersion(id)])
	theta := make([]float64, p.width)
	for i := range s.Models {
		if r := p.regression(&s.Models[i]); r.b != nil {
			r.times(theta, r.b)
			for j := range theta {
				joined.b[j] += theta[j] / float64(len(s.Models))
			}
		}
	}
	return next
}

// UpdateVersion keeps the regression, for half as much.
func (p *LinUCB) UpdateVersion(s *selection.State, id serving.ModelID) *selection.State {
	next := p.arms.UpdateVersion(s, id)
	if m := &next.Models[next.FindVersion(id)]; m.Vector != nil {
		p.begin(m).forget(1)
		clear(p.changes(m))
	}
	return next
}

// Explain implements selection.Learner. It knows no input: the worth is the mean gain.
func (p *LinUCB) Explain(s *selection.State) []selection.Standing { return p.standings(s) }

func sound(v []float64) bool {
	for _, x := range v {
		if math.IsNaN(x) || math.Abs(x) > 1e100 {
			return false
		}
	}
	return true
}

package bandit

import (
	"math"
	"math/rand/v2"

	"github.com/topsail-serving/topsail/gateway/selection"
	"github.com/topsail-serving/topsail/serving"
)

// Thompson asks each model as often as it is likely to be the best.
type Thompson struct {
	arms
	discount float64
}

// NewThompson draws what each model may gain from a beta distribution (Chapelle and Li,
// "An empirical evaluation of Thompson sampling", 2011); a loss between 0 and 1 counts
// as a part of each. What is left of all that was seen, at each loss, is the discount,
// 0.998 by default (Raj and Kalyani, "Taming non-stationary bandits", 2017): the last
// thousand or so count.
func NewThompson(spec serving.PolicySpec, _ []string) *Thompson {
	return &Thompson{newArms(serving.PolicyThompson, &spec), option(spec.Discount, 0.998)}
}

// Select implements selection.Policy.
func (p *Thompson) Select(s *selection.State, q *selection.Query, candidates []selection.Candidate, plan *selection.Plan) {
	p.rank(s, candidates, plan, func(m *selection.ModelState) float64 { return posterior(m, q.Rand) })
	for i := range plan.Asks {
		plan.Asks[i].Probability = 0 // not known: it has no closed form
	}
}

// posterior draws what a model may gain, given what was seen of it.
func posterior(m *selection.ModelState, r *rand.Rand) float64 {
	n, sum := tally(m)
	good, bad := gamma(1+n-sum, r), gamma(1+sum, r)
	return good / (good + bad)
}

// gamma draws from the gamma distribution of a shape of at least 1, by Marsaglia and
// Tsang, "A simple method for generating gamma variables", 2000.
func gamma(shape float64, r *rand.Rand) float64 {
	d := shape - 1.0/3
	c := 1 / math.Sqrt(9*d)
	for {
		x := r.NormFloat64()
		v := 1 + c*x
		if v <= 0 {
			continue
		}
		v *= v * v
		u := 1 - r.Float64() // above 0
		if u < 1-0.0331*x*x*x*x || math.Log(u) < 0.5*x*x+d*(1-v+math.Log(v)) {
			return d * v
		}
	}
}

// Train implements selection.Learner.
func (p *Thompson) Train(s *selection.State, f *selection.Feedback) *selection.State {
	return p.train(s, f, p.discount)
}

// Explain implements selection.Learner. The shares are counted in draws.
func (p *Thompson) Explain(s *selection.State) []selection.Standing {
	list := p.standings(s)
	for i := range list {
		list[i].Share = 0
	}
	if p.allowed(s) == 0 {
		return list
	}
	draws := min(500, max(20, 20_000/len(list))) // to some hundredths, in bounded time
	r := rand.New(rand.NewPCG(1, 1))             // the same state is explained in the same way
	for range draws {
		best, most := 0, -1.0
		for i := range s.Models {
			if !p.may(s.Models[i].Model) {
				continue
			}
			if x := posterior(&s.Models[i], r); x > most {
				best, most = i, x
			}
		}
		list[best].Share += 1 / float64(draws)
	}
	return list
}

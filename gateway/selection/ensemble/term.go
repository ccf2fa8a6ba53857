package ensemble

import (
	"math"

	"github.com/topsail-serving/topsail/gateway/selection"
)

// term is the part of one model in a logistic regression.
type term struct {
	weight   float64 // of an output's distance from the mean, in standard deviations
	steep    float64 // the sum of the squares of the weight's gradients
	count    float64 // outputs that the mean and the variance are of
	mean     float64
	variance float64
}

const (
	// farthest is how many standard deviations an output counts at the most.
	farthest = 5.0
	// Outputs are taken to be noughts and ones until they are known: as if so many
	// with this mean and variance had been seen.
	priorCount, priorMean, priorVariance = 2, 0.5, 0.25
	// maxCount makes means and variances follow outputs that change; youngCount is
	// what they start from when it is known that they do.
	maxCount, youngCount = 1000, 10
	// largest bounds the outputs, so that their squares are finite.
	largest = 1e100
	// heaviest bounds the weights, so that their sums are finite.
	heaviest = 1e12
	// flat is the least variance: of a model that says the same always.
	flat = 1e-12
)

// termOf reads a model's state, also that of one of which nothing is known.
func termOf(m *selection.ModelState) term {
	t := term{weight: clamp(m.Weight, heaviest), count: m.Count, mean: priorMean, variance: priorVariance}
	if len(m.Vector) >= 3 {
		t.mean, t.variance, t.steep = m.Vector[0], max(m.Vector[1], 0), max(m.Vector[2], 0)
	}
	return t
}

// keep writes what termOf reads.
func (t *term) keep(m *selection.ModelState) {
	m.Weight, m.Count = t.weight, t.count
	m.Vector = append(m.Vector[:0], t.mean, t.variance, t.steep)
}

// standard is the distance of an output from the mean, in standard deviations.
func (t *term) standard(x float64) float64 {
	z := (clamp(x, largest) - t.mean) / math.Sqrt(t.variance+flat)
	return clamp(z, farthest)
}

// see takes an output into the mean and the variance.
func (t *term) see(x float64) {
	t.count = min(max(t.count, 0)+1, maxCount)
	part := 1 / (t.count + priorCount)
	off := clamp(x, largest) - t.mean
	t.mean += part * off
	t.variance = (1 - part) * (t.variance + part*off*off)
}

// descend moves the weight against its gradient.
func (t *term) descend(gradient, eta float64) {
	t.steep += gradient * gradient
	if t.steep > 0 {
		t.weight -= eta * gradient / math.Sqrt(t.steep)
	}
}

// intercept is the term of the constant 1, which a state keeps in its numbers.
func intercept(s *selection.State) term {
	if len(s.Numbers) < 2 {
		return term{}
	}
	return term{weight: clamp(s.Numbers[0], heaviest), steep: max(s.Numbers[1], 0)}
}

func logistic(x float64) float64 { return 1 / (1 + math.Exp(-x)) }

// clamp is x, or the bound that it is beyond.
func clamp(x, bound float64) float64 { return max(-bound, min(x, bound)) }

package bandit

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/topsail-serving/topsail/gateway/selection"
)

func TestGammaHasItsMeanAndVariance(t *testing.T) {
	for _, shape := range []float64{1, 1.5, 3, 40, 1e6} {
		r := rand.New(rand.NewPCG(1, 1))
		const n = 40_000
		sum, squares := 0.0, 0.0
		for range n {
			x := gamma(shape, r)
			sum, squares = sum+x, squares+x*x
		}
		mean := sum / n
		variance := squares/n - mean*mean
		if math.Abs(mean-shape) > 5*math.Sqrt(shape/n) || math.Abs(variance/shape-1) > 0.1 {
			t.Errorf("of shape %v the mean is %v and the variance %v", shape, mean, variance)
		}
	}
}

func TestBeliefFollowsLosses(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for _, c := range []struct{ count, sum, mean float64 }{{0, 0, 0.5}, {8, 2, 0.7}, {98, 98, 0.01}, {1e300, 0, 1}} {
		m, total := &selection.ModelState{Count: c.count, Sum: c.sum}, 0.0
		const n = 20_000
		for range n {
			total += posterior(m, r) / n
		}
		if math.Abs(total-c.mean) > 0.01 {
			t.Errorf("of %v losses in %v it expects %v, not %v", c.sum, c.count, total, c.mean)
		}
	}
}

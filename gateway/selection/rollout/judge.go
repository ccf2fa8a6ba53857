package rollout

import (
	"cmp"
	"fmt"
	"math"

	"github.com/topsail-serving/topsail/serving"
)

// judge says when a version is worse than another.
type judge struct {
	minimum  float64 // answers before it is judged
	failures float64 // by which its share of failures may be larger
	loss     float64 // by which its mean loss may be larger
	memory   float64 // answers that count
}

const (
	defaultMinimum = 20
	defaultExcess  = 0.1

	// memory is short enough for 50 bad answers to show after a good day (50 of 450 are
	// above a tenth), and long enough to tell a tenth from chance.
	memory = 400
)

func newJudge(spec *serving.PolicySpec) judge {
	j := judge{
		minimum:  float64(cmp.Or(spec.MinAnswers, defaultMinimum)),
		failures: cmp.Or(spec.MaxFailures, defaultExcess),
		loss:     cmp.Or(spec.MaxLoss, defaultExcess),
	}
	j.memory = max(memory, j.minimum)
	return j
}

// finds says what is wrong with a version against the baseline, or nothing. A baseline
// without outcomes is taken for one that never fails; a loss has nothing to be compared
// with then.
func (j *judge) finds(c, baseline *conduct) string {
	if c.outcomes >= j.minimum && worse(c.bad, c.outcomes, baseline.bad, baseline.outcomes, j.failures) {
		return fmt.Sprintf("%s of its last %.0f answers failed or came late, against %s before",
			percent(c.bad, c.outcomes), c.outcomes, percent(baseline.bad, baseline.outcomes))
	}
	if baseline.judged > 0 && c.judged >= j.minimum && worse(c.loss, c.judged, baseline.loss, baseline.judged, j.loss) {
		return fmt.Sprintf("the mean loss of its last %.0f answers is %.2f, against %.2f before",
			c.judged, c.loss/c.judged, baseline.loss/baseline.judged)
	}
	return ""
}

func percent(sum, n float64) string {
	if n == 0 {
		return "nothing"
	}
	return fmt.Sprintf("%.0f %%", 100*sum/n)
}

// worse says whether one mean of values from 0 to 1 is larger than another by more than
// a margin, and by more than chance makes it: zero is outside of Newcombe's interval for
// their difference (1998, method 10).
func worse(sum, n, baseSum, baseN, margin float64) bool {
	mean, low, _ := wilson(sum, n)
	base, _, high := wilson(baseSum, baseN)
	excess := mean - base
	return excess > margin && excess > math.Hypot(mean-low, high-base)
}

// wilson is a mean with its score interval, four standard deviations wide to each side: it is
// judged many times, and a healthy version has to pass every time.
func wilson(sum, n float64) (mean, low, high float64) {
	const z2 = 4 * 4
	if n == 0 {
		return 0, 0, 0
	}
	mean = sum / n
	centre := (mean + z2/(2*n)) / (1 + z2/n)
	half := math.Sqrt(z2*(mean*(1-mean)/n+z2/(4*n*n))) / (1 + z2/n)
	return mean, centre - half, centre + half
}

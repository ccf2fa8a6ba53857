package bandit

import "github.com/topsail-serving/topsail/gateway/selection"

const (
	// changeSlack is how far a loss may be from the expected one, and changeThreshold how much
	// more than that in all, before a model is taken to have changed. Where nothing changes and
	// half of the answers are wrong, that happens once in some 100,000 losses, and far more rarely to
	// better models.
	changeSlack     = 0.15
	changeThreshold = 8
	// changeAfter is how many losses say what to expect.
	changeAfter = 50
	// lookAgain is the share of the queries with which a model that has become worse is asked
	// all the same, so that it is seen when it recovers.
	lookAgain = 0.03
)

// changes is what a model's entry has to notice that its losses change: the sums of Page's
// test for higher and for lower ones than expected, and whether the last change was for the
// worse. It has changeNumbers numbers, which are 0 at first.
//
// A model that changes begins anew, and only one that has become worse is asked beside the
// best: nothing is paid while nothing changes. (Page, "Continuous inspection schemes", 1954;
// Liu et al., "A change-detection based framework for piecewise-stationary multi-armed bandit
// problem", 2018.)
type changes []float64

const changeNumbers = 3

// take takes in by how much a loss was higher than expected, and says whether the losses have
// become worse, or have changed at all.
func (c changes) take(higher float64) (worse, changed bool) {
	c[0] = max(0, c[0]+higher-changeSlack)
	c[1] = max(0, c[1]-higher-changeSlack)
	return c[0] > changeThreshold, max(c[0], c[1]) > changeThreshold
}

// fallen says whether the last change was for the worse.
func (c changes) fallen() bool { return len(c) == changeNumbers && c[2] > 0 }

func (c changes) setFallen(fallen bool) {
	c[2] = 0
	if fallen {
		c[2] = 1
	}
}

// lookAgainAt draws whether a model that has become worse is asked in place of the best, and
// which.
func lookAgainAt(plan *selection.Plan, fallen func(*selection.Ask) bool, x float64) {
	best := 1.0
	for i := range plan.Asks {
		plan.Asks[i].Probability = 0
		if i > 0 && best > 0.5 && fallen(&plan.Asks[i]) {
			plan.Asks[i].Probability = lookAgain
			best -= lookAgain
		}
	}
	if len(plan.Asks) > 0 {
		plan.Asks[0].Probability = best
	}
	lead(plan, x)
}

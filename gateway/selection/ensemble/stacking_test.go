package ensemble_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/topsail-serving/topsail/gateway/selection"
	"github.com/topsail-serving/topsail/serving"
)

// Of models whose errors are independent, the best weights are as the inverse of their
// variance: the answer gets closer than the plain mean, and than the best model.
func TestStackingFindsTheWeights(t *testing.T) {
	for _, unit := range []float64{1, 1e-6, 1e9} {
		for seed := range uint64(10) {
			draw := rand.New(rand.NewPCG(seed, 3))
			stacking := newApp(serving.PolicyStacking, serving.PolicySpec{}, serving.OutputNumber, 3)
			mean := newApp(serving.PolicyMean, serving.PolicySpec{}, serving.OutputNumber, 3)
			var stacked, plain, best float64
			for round := range 1500 {
				truth := unit * draw.NormFloat64()
				said := []*serving.Output{
					num(truth + unit*draw.NormFloat64()), num(truth + 1.5*unit*draw.NormFloat64()), num(truth + 5*unit*draw.NormFloat64()),
				}
				a, b := stacking.ask(said...), mean.ask(said...)
				if round >= 500 {
					stacked += squared(a.Output, truth, unit)
					plain += squared(b.Output, truth, unit)
					best += squared(said[0], truth, unit)
				}
				stacking.feedback(num(truth), said...)
			}
			if stacked > 0.9*best || stacked > 0.6*plain {
				t.Errorf("unit %g, seed %d: squared errors %.0f, of the best model %.0f, of the mean %.0f; weights %.3f", unit, seed, stacked, best, plain, stacking.shares())
			}
		}
	}
}

func squared(o *serving.Output, truth, unit float64) float64 {
	x, _ := selection.Number(o)
	return math.Pow((x-truth)/unit, 2)
}

func TestStackingLearnsVectors(t *testing.T) {
	app := newApp(serving.PolicyStacking, serving.PolicySpec{}, serving.OutputVector, 3)
	for range 200 {
		app.plans()
		app.feedback(vec(1, 2), vec(1, 2), vec(5, -5), vec(1))
	}
	shares := app.shares()
	if shares[0] < 0.6 || shares[1] > 0.05 || abs(shares[2]-1.0/3) > 0.1 {
		t.Errorf("weights are %.3f, with the first right, the second wrong and the third of another length", shares)
	}
}

// The weights of those that have come are all there is.
func TestStackingWithoutTheMissing(t *testing.T) {
	app := newApp(serving.PolicyStacking, serving.PolicySpec{}, serving.OutputNumber, 3)
	app.state.Models[1].Weight = math.Log(0.5)
	d := app.ask(num(3), num(6), nil)
	if x, _ := selection.Number(d.Output); abs(x-4) > 1e-9 {
		t.Errorf("weights 1 and 0.5 of 3 and 6 make %v", x)
	}
}

// Whatever the labels, the answer stays between the models' answers, and who is always
// right afterwards wins again.
func TestStackingSurvivesHostileLabels(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		app := newApp(serving.PolicyStacking, serving.PolicySpec{Eta: rapid.SampledFrom([]float64{0, 5, 1e6}).Draw(t, "eta")}, serving.OutputNumber, 2)
		said := []*serving.Output{num(-1), num(1)}
		for range rapid.IntRange(1, 30).Draw(t, "rounds") {
			app.plans()
			app.feedback(num(rapid.Float64().Draw(t, "label")), said...)
			if x, ok := selection.Number(app.ask(said...).Output); !ok || !(abs(x) <= 1+1e-9) {
				t.Fatalf("the answer is %v", x)
			}
		}
		for range 500 {
			app.feedback(num(1), said...)
		}
		if x, _ := selection.Number(app.ask(said...).Output); x < 0.8 {
			t.Fatalf("after 500 labels of 1 the answer is %v, with weights %v", x, app.shares())
		}
	})
}

func TestStackingNeedsLabels(t *testing.T) {
	for name, f := range map[string]*selection.Feedback{
		"a reward":       {Loss: 1},
		"another type":   {Label: label("x")},
		"another length": {Label: vec(1, 2, 3)},
	} {
		app := newApp(serving.PolicyStacking, serving.PolicySpec{}, serving.OutputVector, 2)
		f.Outcomes = []selection.Outcome{
			{ModelID: app.candidates[0].ModelID, Output: vec(1, 2), Judged: true, Loss: 1},
			{ModelID: app.candidates[1].ModelID, Output: vec(5, 6), Judged: true},
		}
		app.state = app.policy.(selection.Learner).Train(app.state, f)
		if shares := app.shares(); shares[0] != 0.5 || shares[1] != 0.5 {
			t.Errorf("%s changes the weights to %v", name, shares)
		}
	}
}

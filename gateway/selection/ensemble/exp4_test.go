package ensemble_test

import (
	"math"
	"slices"
	"testing"

	"github.com/topsail-serving/topsail/gateway/selection"
	"github.com/topsail-serving/topsail/serving"
)

// Exp4 follows a model that turns bad and comes back, and is never worse than the best
// of the others meanwhile.
func TestExp4FollowsDrift(t *testing.T) {
	for seed := range uint64(10) {
		crowd := newClassifiers(seed, 0.97, 0.85, 0.75, 0.6, 0.5)
		app := newApp(serving.PolicyExp4, serving.PolicySpec{}, serving.OutputLabel, 5)
		for _, skill := range []float64{0.97, 0.1, 0.97} {
			crowd.skill[0] = skill
			crowd.errors(app, 100)
			policy, models := crowd.errors(app, 1000)
			if best := slices.Min(models); policy > best {
				t.Errorf("seed %d: %d errors while the first is right with %.2f, and the models have %v", seed, policy, skill, models)
			}
			share := app.shares()[0]
			if skill > 0.5 && share < 0.25 || skill < 0.5 && share > 0.1 {
				t.Errorf("seed %d: the first model has a share of %.2f while it is right with %.2f", seed, share, skill)
			}
		}
	}
}

// A model that is never heard neither rises above those that are judged nor falls.
func TestExp4KeepsTheShareOfTheSilent(t *testing.T) {
	app := newApp(serving.PolicyExp4, serving.PolicySpec{Mixing: 1e-9}, serving.OutputLabel, 3)
	x, y := label("x"), label("y")
	for range 50 {
		app.plans()
		app.feedback(x, x, y, nil)
	}
	shares := app.shares()
	if math.Abs(shares[2]-1.0/3) > 1e-6 || shares[0] < 0.6 || shares[1] > 0.01 {
		t.Errorf("shares are %.4f, with the last never judged", shares)
	}
}

func TestExp4WeighsNumbersByTheirLosses(t *testing.T) {
	app := newApp(serving.PolicyExp4, serving.PolicySpec{Eta: 1, Mixing: 1e-9}, serving.OutputNumber, 2)
	app.plans()
	app.feedback(num(1), num(1), num(3)) // weights e⁰ and e⁻¹
	want := (1 + 3*math.Exp(-1)) / (1 + math.Exp(-1))
	d := app.ask(num(1), num(3))
	if got, _ := selection.Number(d.Output); math.Abs(got-want) > 1e-6 || d.Ended != selection.EndedAll {
		t.Errorf("the weighted mean is %+v, not %v", d, want)
	}
	if w := app.plan.Asks[0].Weight; math.Abs(w-1/(1+math.Exp(-1))) > 1e-6 {
		t.Errorf("the better model weighs %v", w)
	}
}

func TestExp4VotesByWeight(t *testing.T) {
	app := newApp(serving.PolicyExp4, serving.PolicySpec{}, serving.OutputAny, 3)
	x, y := label("x"), label("y")
	for range 100 {
		app.plans()
		app.feedback(x, x, y, y)
	}
	app.plans()
	d := app.combine(false, x, nil, nil)
	if !d.Done || d.Output != x || d.Ended != selection.EndedCertain || d.Confidence < 0.5 {
		t.Errorf("with the word of who is always right it decides %+v", d)
	}
	if d := app.ask(x, y, y); d.Output != x {
		t.Errorf("two that are always wrong outvote the one that is right: %+v", d)
	}
}

// With few asked at a time the best model is found all the same.
func TestExp4TriesTheOthers(t *testing.T) {
	for seed := range uint64(10) {
		crowd := newClassifiers(seed, 0.5, 0.5, 0.5, 0.5, 0.97)
		app := newApp(serving.PolicyExp4, serving.PolicySpec{Most: 2}, serving.OutputLabel, 5)
		crowd.errors(app, 300)
		if policy, models := crowd.errors(app, 1000); policy > models[4]+30 {
			t.Errorf("seed %d: %d errors with two asked at a time, and the models have %v; shares %.2f", seed, policy, models, app.shares())
		}
	}
}

func TestExp4ModelsComeAndChange(t *testing.T) {
	app := newApp(serving.PolicyExp4, serving.PolicySpec{}, serving.OutputLabel, 3)
	weights(0, -2, -4)(app)
	l := app.policy.(selection.Learner)
	joined := l.AddModel(app.state, serving.ModelID{Model: "d", Version: "1"})
	if got, want := joined.Models[3].Weight, math.Log((1+math.Exp(-2)+math.Exp(-4))/3); abs(got-want) > 1e-9 {
		t.Errorf("a model that joins weighs %v, not %v", got, want)
	}
	updated := l.UpdateVersion(app.state, serving.ModelID{Model: "c", Version: "2"})
	if got := updated.Models[2]; got.Version != "2" || got.Weight != -3 {
		t.Errorf("the new version of a model with -4, where the mean is -2, is %+v", got)
	}
	same := l.UpdateVersion(updated, serving.ModelID{Model: "c", Version: "2"})
	if same.Models[2].Weight != -3 {
		t.Errorf("the same version again changes the weight to %v", same.Models[2].Weight)
	}
}

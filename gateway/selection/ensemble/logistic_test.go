package ensemble_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/topsail-serving/topsail/gateway/selection"
	"github.com/topsail-serving/topsail/serving"
)

func TestLogisticBeforeFeedback(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		said := rapid.SliceOfN(rapid.Float64Range(0, 1), 1, 7).Draw(t, "outputs")
		var come []*serving.Output
		mean := 0.0
		for _, x := range said {
			come = append(come, num(x))
			mean += x / float64(len(said))
		}
		if abs(mean-0.5) < 1e-9 {
			return
		}
		want := 0.0
		if mean > 0.5 {
			want = 1
		}
		d := newApp(serving.PolicyLogistic, serving.PolicySpec{}, serving.OutputNumber, len(said)).ask(come...)
		if x, _ := selection.Number(d.Output); x != want || d.Confidence < 0.5 {
			t.Fatalf("of %v it makes %v, %+v", said, x, d)
		}
	})
}

// One model is right, one says the contrary, one says nothing of use, and one is right
// in units of its own.
func TestLogisticLearnsWhomToBelieve(t *testing.T) {
	for seed := range uint64(10) {
		draw := rand.New(rand.NewPCG(seed, 4))
		app := newApp(serving.PolicyLogistic, serving.PolicySpec{Most: 3}, serving.OutputNumber, 4)
		wrong := 0
		for round := range 1000 {
			truth, noise := draw.IntN(2), draw.Float64()
			said := []*serving.Output{
				num(flip(draw, truth, 0.1)), num(flip(draw, 1-truth, 0.15)), num(noise), num(1000 + 50*flip(draw, truth, 0.1)),
			}
			d := app.ask(said...)
			if x, _ := selection.Number(d.Output); round >= 200 && x != float64(truth) {
				wrong++
			}
			right := num(float64(2*truth - 1)) // −1 and 1 are labels as well
			app.feedback(right, said...)
		}
		if wrong > 70 {
			t.Errorf("seed %d: %d wrong of 800, where the best model has 80 and the three together 38", seed, wrong)
		}
		asked := app.plans()
		weights := []float64{app.state.Models[0].Weight, app.state.Models[1].Weight, app.state.Models[2].Weight, app.state.Models[3].Weight}
		if weights[0] < 0.5 || weights[1] > -0.5 || weights[3] < 0.5 || abs(weights[2]) > 0.5 {
			t.Errorf("seed %d: weights %.2f, and it asks %s", seed, weights, asked)
		}
	}
}

func flip(draw *rand.Rand, truth int, rate float64) float64 {
	if draw.Float64() < rate {
		truth = 1 - truth
	}
	return float64(truth)
}

// A model that is missing counts as it does on average: with a mean of 0.9, its silence
// says no more than 0.9 would.
func TestLogisticFillsInTheMissing(t *testing.T) {
	app := newApp(serving.PolicyLogistic, serving.PolicySpec{}, serving.OutputNumber, 2)
	draw := rand.New(rand.NewPCG(1, 5))
	for range 500 {
		truth := flip(draw, 1, 0.2)
		app.plans()
		app.feedback(num(truth), num(truth), num(0.9+0.1*draw.NormFloat64()))
	}
	mean := num(app.state.Models[1].Vector[0])
	a, b := app.ask(num(0), nil), app.ask(num(0), mean)
	if abs(a.Confidence-b.Confidence) > 1e-9 || !selection.Same(a.Output, b.Output) {
		t.Errorf("without the second model: %+v; with its mean: %+v", a, b)
	}
	if got, _ := selection.Number(mean); abs(got-0.9) > 0.02 {
		t.Errorf("the mean of its outputs is taken to be %v", got)
	}
}

func TestLogisticDoesNotWaitForWhatCannotMatter(t *testing.T) {
	app := newApp(serving.PolicyLogistic, serving.PolicySpec{}, serving.OutputNumber, 3)
	for i, w := range []float64{8, 0.1, -0.1} {
		app.state.Models[i].Weight = w
	}
	app.plans()
	if d := app.combine(false, nil, num(1), num(1)); d.Done {
		t.Errorf("without the model that matters it decides %+v", d)
	}
	if d := app.combine(false, num(1), nil, nil); !d.Done || string(d.Output.JSON) != "1.0" || d.Ended != selection.EndedCertain {
		t.Errorf("with the model that matters it decides %+v", d)
	}
	if d := app.combine(false, num(0.52), nil, nil); d.Done {
		t.Errorf("with hardly a sign it decides %+v", d)
	}
}

// No output and no label makes the state anything but finite, or stops the learning.
func TestLogisticSurvivesHostileNumbers(t *testing.T) {
	hostile := []float64{0, 1, -1, 1e300, -1e300, math.MaxFloat64, 5e-324, 1e-300}
	rapid.Check(t, func(t *rapid.T) {
		app := newApp(serving.PolicyLogistic, serving.PolicySpec{Eta: rapid.SampledFrom([]float64{0, 1, 1e6}).Draw(t, "eta")}, serving.OutputNumber, 2)
		number := rapid.SampledFrom(hostile)
		for range rapid.IntRange(1, 50).Draw(t, "rounds") {
			said := []*serving.Output{num(number.Draw(t, "first")), num(number.Draw(t, "second"))}
			d := app.ask(said...)
			if d.Output == nil || !(d.Confidence >= 0.5 && d.Confidence <= 1) {
				t.Fatalf("decides %+v", d)
			}
			app.feedback(num(number.Draw(t, "label")), said...)
			if _, err := app.state.Encode(); err != nil {
				t.Fatal(err)
			}
		}
	})
}

func TestLogisticLabels(t *testing.T) {
	for label, up := range map[float64]bool{1: true, 0.6: true, 7: true, 0.5: false, 0.4: false, 0: false, -1: false} {
		app := newApp(serving.PolicyLogistic, serving.PolicySpec{}, serving.OutputNumber, 2)
		app.plans()
		app.feedback(num(label), num(1), num(0))
		if w := app.state.Models[0].Weight; (w > 1) != up {
			t.Errorf("label %v moves the weight of who said 1 from 1 to %v", label, w)
		}
	}
}

// A new version keeps half of its distance from the mean, and learns faster.
func TestLogisticNewVersion(t *testing.T) {
	app := newApp(serving.PolicyLogistic, serving.PolicySpec{}, serving.OutputNumber, 2)
	for i := range 100 {
		x := num(float64(i % 2))
		app.plans()
		app.feedback(x, x, num(0.5))
	}
	old := app.state
	app.state = app.policy.(selection.Learner).UpdateVersion(old, serving.ModelID{Model: "a", Version: "2"})
	before, middle, after := old.Models[0].Weight, (old.Models[0].Weight+old.Models[1].Weight)/2, app.state.Models[0].Weight
	if abs(after-(before+middle)/2) > 1e-9 || app.state.Models[0].Vector[0] != old.Models[0].Vector[0] {
		t.Errorf("the weights %v and %v become %v and %v", before, old.Models[1].Weight, after, app.state.Models[1].Weight)
	}
	if old, young := old.Models[0].Vector[2], app.state.Models[0].Vector[2]; !(young < old/2) {
		t.Errorf("the squares of its gradients, %v, become %v", old, young)
	}
}

package ensemble_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/topsail-serving/topsail/gateway/selection"
	"github.com/topsail-serving/topsail/serving"
)

func TestNumbersAndVectors(t *testing.T) {
	matrix := output(serving.Value{DType: serving.Uint8, Shape: []int{2, 1}, Data: []byte{1, 2}})
	for name, c := range map[string]struct {
		kind  string
		spec  serving.PolicySpec
		takes serving.OutputType
		come  []*serving.Output
		json  string
	}{
		"mean":                         {kind: "mean", come: []*serving.Output{num(1), num(2), num(6)}, json: "3.0"},
		"weighted mean":                {kind: "mean", spec: serving.PolicySpec{Weights: map[string]float64{"a": 3, "b": 1}}, come: []*serving.Output{num(1), num(5)}, json: "2.0"},
		"mean of who has come":         {kind: "mean", come: []*serving.Output{num(1), broken, nil, num(2)}, json: "1.5"},
		"mean without texts":           {kind: "mean", come: []*serving.Output{label("warm"), num(4), vec(1, 2)}, json: "4.0"},
		"mean of a number in a text":   {kind: "mean", come: []*serving.Output{label("3"), num(4)}, json: "3.5"},
		"mean of the largest":          {kind: "mean", come: []*serving.Output{num(math.MaxFloat64), num(math.MaxFloat64)}, json: "1.7976931348623157e+308"},
		"mean of vectors":              {kind: "mean", takes: serving.OutputVector, come: []*serving.Output{vec(1, 2), vec(3, 6)}, json: "[2.0,4.0]"},
		"mean of the frequent length":  {kind: "mean", takes: serving.OutputVector, come: []*serving.Output{vec(9), vec(1, 2), vec(8, 8, 8), vec(3, 6)}, json: "[2.0,4.0]"},
		"of two lengths the first":     {kind: "mean", takes: serving.OutputVector, come: []*serving.Output{vec(9), vec(1, 2)}, json: "[9.0]"},
		"mean of vectors of one":       {kind: "mean", takes: serving.OutputVector, come: []*serving.Output{num(1), vec(3)}, json: "[2.0]"},
		"mean of empty vectors":        {kind: "mean", takes: serving.OutputVector, come: []*serving.Output{vec(), vec()}, json: "[]"},
		"no matrices":                  {kind: "mean", takes: serving.OutputVector, come: []*serving.Output{matrix, vec(3, 6)}, json: "[3.0,6.0]"},
		"median of three":              {kind: "median", come: []*serving.Output{num(7), num(1), num(2)}, json: "2.0"},
		"median of four":               {kind: "median", come: []*serving.Output{num(7), num(1), num(2), num(3)}, json: "2.5"},
		"median of one":                {kind: "median", come: []*serving.Output{nil, num(1), broken}, json: "1.0"},
		"median of the largest":        {kind: "median", come: []*serving.Output{num(math.MaxFloat64), num(math.MaxFloat64)}, json: "1.7976931348623157e+308"},
		"median of vectors":            {kind: "median", takes: serving.OutputVector, come: []*serving.Output{vec(1, 9), vec(2, 8), vec(3, 7)}, json: "[2.0,8.0]"},
		"stacking begins as the mean":  {kind: "stacking", come: []*serving.Output{num(1), num(2), num(6)}, json: "3.0"},
		"stacking of vectors":          {kind: "stacking", takes: serving.OutputVector, come: []*serving.Output{vec(1, 2), nil, vec(3, 6)}, json: "[2.0,4.0]"},
		"exp4 of numbers":              {kind: "exp4", takes: serving.OutputNumber, come: []*serving.Output{num(1), num(2)}, json: "1.5"},
		"exp4 of vectors":              {kind: "exp4", takes: serving.OutputVector, come: []*serving.Output{vec(1, 2), vec(3, 6)}, json: "[2.0,4.0]"},
		"exp4 of numbers, as it votes": {kind: "exp4", takes: serving.OutputLabel, come: []*serving.Output{num(1), num(2), num(2)}, json: "2.0"},
	} {
		t.Run(name, func(t *testing.T) {
			app := newApp(c.kind, c.spec, c.takes, len(c.come))
			app.plans()
			complete := !slices.Contains(c.come, nil)
			if d := app.combine(false, c.come...); d.Done != complete || complete && d.Ended == selection.EndedDeadline {
				t.Errorf("with all %v it decides %+v", complete, d)
			}
			if d := app.combine(true, c.come...); !d.Done || d.Output == nil || string(d.Output.JSON) != c.json {
				t.Errorf("decides %+v, not %s", d, c.json)
			}
		})
	}
}

// What cannot be used is a failure that names the model and what the app asks for.
func TestNothingOfTheType(t *testing.T) {
	nan := &serving.Output{Value: serving.Number(math.NaN()), JSON: []byte("null")}
	for name, c := range map[string]struct {
		kind  string
		takes serving.OutputType
		come  []*serving.Output
		says  string
	}{
		"texts for numbers":        {"mean", serving.OutputNumber, []*serving.Output{label("warm"), broken}, "the output of a:1 is not a number"},
		"vectors for numbers":      {"median", serving.OutputAny, []*serving.Output{vec(1, 2), nil}, "the output of a:1 is not a number"},
		"not a number":             {"stacking", serving.OutputNumber, []*serving.Output{nil, nan}, "the output of b:1 is not a number"},
		"texts for the regression": {"logistic", serving.OutputNumber, []*serving.Output{label("x"), label("y")}, "the output of a:1 is not a number"},
		"texts for vectors":        {"exp4", serving.OutputVector, []*serving.Output{label("x"), label("y")}, "the output of a:1 is not a vector"},
		"vectors for labels":       {"exp4", serving.OutputLabel, []*serving.Output{vec(1), vec(1)}, "the output of a:1 is not a label"},
		"objects for labels":       {"vote", serving.OutputLabel, []*serving.Output{label(`{"x":1}`), label("null")}, "the output of a:1 is not a label"},
		"texts in a vote":          {"vote", serving.OutputNumber, []*serving.Output{label("x"), label("x")}, "the output of a:1 is not a number"},
		"texts among the best":     {"best", serving.OutputVector, []*serving.Output{label("x"), nil}, "the output of a:1 is not a vector"},
		"the first failure":        {"mean", serving.OutputNumber, []*serving.Output{broken, label("x")}, "broken"},
	} {
		t.Run(name, func(t *testing.T) {
			app := newApp(c.kind, serving.PolicySpec{}, c.takes, len(c.come))
			app.plans()
			d := app.combine(true, c.come...)
			if !d.Done || d.Output != nil || d.Failure == nil || d.Failure.Cause != serving.ModelError || !strings.HasPrefix(d.Failure.Message, c.says) {
				t.Errorf("decides %+v: %v", d, d.Failure)
			}
		})
	}
}

func TestNobodyAnswers(t *testing.T) {
	for kind := range kinds() {
		app := newApp(kind, serving.PolicySpec{}, serving.OutputNumber, 2)
		if d := app.ask(nil, nil); !d.Done || d.Output != nil || d.Failure != nil || d.Ended != selection.EndedDeadline {
			t.Errorf("%s: with nothing at the deadline it decides %+v", kind, d)
		}
	}
}

// An average lies between the least and the largest of what came, whatever the numbers.
func TestAveragesStayBetween(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := rapid.SliceOfN(rapid.Float64Range(-math.MaxFloat64, math.MaxFloat64), 1, 9).Draw(t, "numbers")
		kind := rapid.SampledFrom([]string{"mean", "median", "stacking", "exp4"}).Draw(t, "kind")
		var come []*serving.Output
		for _, x := range list {
			come = append(come, num(x))
		}
		d := newApp(kind, serving.PolicySpec{}, serving.OutputNumber, len(list)).ask(come...)
		if d.Output == nil {
			t.Fatalf("decides %+v", d)
		}
		low, high := slices.Min(list), slices.Max(list)
		rounding := 1e-12 * max(abs(low), abs(high))
		if x, _ := selection.Number(d.Output); x < low-rounding || x > high+rounding {
			t.Fatalf("the %s of %v is %v", kind, list, x)
		}
	})
}

func TestMeansOfTheLargest(t *testing.T) {
	for n := range 100 {
		come := slices.Repeat([]*serving.Output{num(-math.MaxFloat64)}, n+1)
		d := newApp(serving.PolicyMean, serving.PolicySpec{}, serving.OutputNumber, n+1).ask(come...)
		if d.Output == nil {
			t.Fatalf("the mean of %d is %+v", n+1, d)
		}
	}
}

package ensemble_test

import (
	"testing"

	"github.com/topsail-serving/topsail/gateway/selection"
	"github.com/topsail-serving/topsail/serving"
)

func TestWhoIsAsked(t *testing.T) {
	for name, c := range map[string]struct {
		kind   string
		spec   serving.PolicySpec
		change func(*app)
		want   string
	}{
		"all, as they are linked":   {kind: "vote", want: "abcd"},
		"those that are named":      {kind: "vote", spec: serving.PolicySpec{Models: []string{"c", "a:1"}}, want: "ca"},
		"at most two":               {kind: "median", spec: serving.PolicySpec{Most: 2}, want: "ab"},
		"more than there are":       {kind: "median", spec: serving.PolicySpec{Most: 9}, want: "abcd"},
		"by weight":                 {kind: "mean", spec: serving.PolicySpec{Weights: map[string]float64{"b": 3, "d:1": 5}}, want: "dacb"},
		"not with weight 0":         {kind: "vote", spec: serving.PolicySpec{Weights: map[string]float64{"b": 0, "a": 1}}, want: "acd"},
		"by weight for the cost":    {kind: "vote", spec: serving.PolicySpec{ByCost: true, Weights: map[string]float64{"a": 1, "b": 3, "c": 2, "d": 2}}, change: costs(1, 9, 1, 4), want: "cadb"},
		"by cost alone":             {kind: "best", spec: serving.PolicySpec{ByCost: true, Most: 3}, change: costs(4, 3, 2, 1), want: "dcb"},
		"whatever it costs":         {kind: "best", change: costs(4, 3, 2, 1), want: "abcd"},
		"not those without replica": {kind: "vote", change: ready(false, true, false, true), want: "bd"},
		"with none ready, all":      {kind: "vote", change: ready(false, false, false, false), want: "abcd"},
		"by what was learned":       {kind: "exp4", spec: serving.PolicySpec{Most: 2}, change: weights(-3, -1, 0, -2), want: "cb"},
		"learned, for the cost":     {kind: "exp4", spec: serving.PolicySpec{ByCost: true}, change: both(weights(0, -1, 0, 0), costs(8, 1, 4, 2)), want: "dbca"},
		"by how much they count":    {kind: "logistic", spec: serving.PolicySpec{Most: 3}, change: weights(0.1, -5, 2, 0.2), want: "bcd"},
		"stacked by weight":         {kind: "stacking", change: weights(-1, 0, -3, -2), want: "badc"},
	} {
		t.Run(name, func(t *testing.T) {
			app := newApp(c.kind, c.spec, serving.OutputAny, 4)
			if c.change != nil {
				c.change(app)
			}
			if got := app.plans(); got != c.want {
				t.Errorf("asks %q, not %q", got, c.want)
			}
		})
	}
}

func costs(list ...float64) func(*app) {
	return func(a *app) {
		for i := range list {
			a.candidates[i].Cost = list[i]
		}
	}
}

func ready(list ...bool) func(*app) {
	return func(a *app) {
		for i := range list {
			a.candidates[i].Ready = list[i]
		}
	}
}

func weights(list ...float64) func(*app) {
	return func(a *app) {
		for i := range list {
			a.state.Models[i].Weight = list[i]
		}
	}
}

func both(one, other func(*app)) func(*app) {
	return func(a *app) { one(a); other(a) }
}

func TestWeightsOfThePlanAreShares(t *testing.T) {
	app := newApp(serving.PolicyMean, serving.PolicySpec{Weights: map[string]float64{"a": 6, "b": 2}, Models: []string{"a", "b"}}, serving.OutputNumber, 3)
	app.plans()
	if a, b := app.plan.Asks[0].Weight, app.plan.Asks[1].Weight; a != 0.75 || b != 0.25 {
		t.Errorf("weights 6 and 2 are shares %v and %v", a, b)
	}
}

// What is learned of models that the policy does not name does not touch the others.
func TestModelsThatAreNotNamed(t *testing.T) {
	for _, kind := range []string{"exp4", "stacking", "logistic"} {
		app := newApp(kind, serving.PolicySpec{Models: []string{"a", "b"}}, serving.OutputNumber, 3)
		before := app.state.Clone()
		app.state = app.policy.(selection.Learner).Train(app.state, &selection.Feedback{Label: num(1), Outcomes: []selection.Outcome{
			{ModelID: app.candidates[2].ModelID, Output: num(1), Judged: true}}})
		shares := app.shares()
		if shares[0] != 0.5 || shares[1] != 0.5 || shares[2] != 0 || app.state.Models[2].Weight != before.Models[2].Weight {
			t.Errorf("%s: shares are %v, and the states %+v", kind, shares, app.state.Models)
		}
	}
}

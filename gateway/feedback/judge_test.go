package feedback

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/topsail-serving/topsail/gateway/selection"
	"github.com/topsail-serving/topsail/serving"
)

// judged is an answer made of what models said, as feedback finds it.
func judged(t testing.TB, answer string, outputs ...string) *joined {
	t.Helper()
	one := &joined{answer: parse([]byte(answer))}
	for _, text := range outputs {
		one.feedback.Outcomes = append(one.feedback.Outcomes, selection.Outcome{Output: parse([]byte(text))})
	}
	return one
}

const unjudged = -1

func TestJudge(t *testing.T) {
	absolute := serving.PolicySpec{Loss: serving.LossAbsolute, Scale: 10}
	squared := serving.PolicySpec{Loss: serving.LossSquared, Scale: 10}
	tests := map[string]struct {
		policy  serving.PolicySpec
		label   string // or
		reward  float64
		answer  string // empty: the default, -1
		outputs []string
		loss    float64
		losses  []float64
	}{
		"labels":                     {label: `"x"`, answer: `"x"`, outputs: []string{`"x"`, `"y"`, ""}, loss: 0, losses: []float64{0, 1, unjudged}},
		"the spelling of numbers":    {label: "7", answer: "7.0", outputs: []string{"7.0", "7e0"}, loss: 0, losses: []float64{0, 0}},
		"a default that is right":    {label: "-1", outputs: []string{"3"}, loss: 0, losses: []float64{1}},
		"a default that is wrong":    {label: "3", outputs: []string{"3"}, loss: 1, losses: []float64{0}},
		"distances":                  {policy: absolute, label: "7", answer: "8", outputs: []string{"7", "9", "99", `"x"`}, loss: 0.1, losses: []float64{0, 0.2, 1, unjudged}},
		"squares":                    {policy: squared, label: "7", answer: "12", outputs: []string{"9"}, loss: 0.25, losses: []float64{0.04}},
		"a mean of vectors":          {policy: absolute, label: "[1,2]", answer: "[1,4]", outputs: []string{"[2,2]", "[1]"}, loss: 0.1, losses: []float64{0.05, unjudged}},
		"a reward":                   {reward: 0.25, answer: "3", outputs: []string{"3", "4", "3.0"}, loss: 0.75, losses: []float64{0.75, unjudged, 0.75}},
		"no reward":                  {reward: 0, answer: "3", outputs: []string{"3", "4"}, loss: 1, losses: []float64{1, unjudged}},
		"a full reward":              {reward: 1, answer: "3", outputs: []string{"3", "4", ""}, loss: 0, losses: []float64{0, 1, unjudged}},
		"a full reward of distances": {policy: absolute, reward: 1, answer: "3", outputs: []string{"4", "3"}, loss: 0, losses: []float64{0.1, 0}},
		"a reward of a mixture":      {policy: absolute, reward: 0.5, answer: "3", outputs: []string{"2", "4"}, loss: 0.5, losses: []float64{unjudged, unjudged}},
		"a reward of one model":      {reward: 0.5, answer: `{"corrected":3}`, outputs: []string{"2"}, loss: 0.5, losses: []float64{0.5}},
		"a reward of the default":    {reward: 1, outputs: []string{"3"}, loss: 0, losses: []float64{unjudged}},
	}
	for name, test := range tests {
		app := &serving.App{Name: "app", DefaultOutput: "-1", Policy: test.policy}
		f := &serving.Feedback{Reward: &test.reward}
		if test.label != "" {
			f = &serving.Feedback{Label: says(t, test.label)}
		}
		one := judged(t, test.answer, test.outputs...)
		if err := one.judge(app, f); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if one.feedback.Loss != test.loss {
			t.Errorf("%s: loss %v, want %v", name, one.feedback.Loss, test.loss)
		}
		for i, o := range one.feedback.Outcomes {
			if want := test.losses[i]; o.Judged != (want != unjudged) || o.Judged && (o.Loss < want-1e-12 || o.Loss > want+1e-12) {
				t.Errorf("%s: model %d has loss %v (judged %v), want %v", name, i, o.Loss, o.Judged, want)
			}
		}
	}
}

// TestJudgeAnything holds that losses are losses, and that nobody is judged who said
// nothing, whatever was answered.
func TestJudgeAnything(t *testing.T) {
	text := rapid.SampledFrom([]string{"", "7", "8.5", "-1e300", `"x"`, `"\u0078"`, "[1,2]", "[1]", "[]", "null", "true", `{"x":1}`})
	rapid.Check(t, func(t *rapid.T) {
		app := &serving.App{Name: "app", DefaultOutput: "-1", Policy: serving.PolicySpec{
			Loss: rapid.SampledFrom([]string{"", serving.LossAbsolute, serving.LossSquared}).Draw(t, "loss"),
		}}
		one := &joined{answer: parse([]byte(text.Draw(t, "answer")))}
		for range rapid.IntRange(0, 4).Draw(t, "models") {
			one.feedback.Outcomes = append(one.feedback.Outcomes, selection.Outcome{Output: parse([]byte(text.Draw(t, "output")))})
		}
		f := &serving.Feedback{Input: input(1)}
		if label := parse([]byte(text.Draw(t, "label"))); label != nil {
			f.Label = label
		} else {
			reward := rapid.Float64Range(0, 1).Draw(t, "reward")
			f.Reward = &reward
		}
		app.InputType = serving.Doubles
		if check(app, f) != nil || one.judge(app, f) != nil {
			return
		}
		if l := one.feedback.Loss; !(l >= 0 && l <= 1) {
			t.Errorf("the answer lost %v", l)
		}
		for _, o := range one.feedback.Outcomes {
			if o.Judged && (o.Output == nil || !(o.Loss >= 0 && o.Loss <= 1)) {
				t.Errorf("%+v", o)
			}
		}
	})
}

package ensemble_test

import (
	"encoding/json"
	"time"

	"github.com/topsail-serving/topsail/gateway/selection"
	"github.com/topsail-serving/topsail/serving"
)

// app is an app with one policy and models named a, b, c, and so on.
type app struct {
	policy     selection.Policy
	state      *selection.State
	candidates []selection.Candidate
	plan       selection.Plan
}

func newApp(kind string, spec serving.PolicySpec, output serving.OutputType, models int) *app {
	a := &app{}
	var links []string
	var ids []serving.ModelID
	for i := range models {
		id := serving.ModelID{Model: string(rune('a' + i)), Version: "1"}
		links, ids = append(links, id.Model), append(ids, id)
		a.candidates = append(a.candidates, selection.Candidate{ModelID: id, Ready: true, Cost: 1})
	}
	spec.Kind = kind
	a.policy = kinds()[kind](spec, links, output)
	if l, learns := a.policy.(selection.Learner); learns {
		a.state = l.New(ids)
	}
	return a
}

// plans asks the policy for a new plan, and says whom it asks.
func (a *app) plans() (asked string) {
	a.plan.Reset()
	a.policy.Select(a.state, &selection.Query{}, a.candidates, &a.plan)
	for _, ask := range a.plan.Asks {
		asked += ask.ID.Model
	}
	return asked
}

// ask is one query to which each candidate gives the output at its place, nil for none.
func (a *app) ask(outputs ...*serving.Output) selection.Decision {
	a.plans()
	return a.combine(true, outputs...)
}

// combine shows the policy what has come for its plan, each candidate's at its place.
func (a *app) combine(final bool, outputs ...*serving.Output) selection.Decision {
	return a.combineAt(selection.Moment{Elapsed: time.Millisecond, Budget: 20 * time.Millisecond, Final: final}, outputs...)
}

func (a *app) combineAt(at selection.Moment, outputs ...*serving.Output) selection.Decision {
	answers := make([]selection.Answer, len(a.plan.Asks))
	for i, ask := range a.plan.Asks {
		if o := outputs[ask.Candidate]; o == broken {
			answers[i].Failure = &serving.Failure{Cause: serving.ModelError, Message: "broken"}
		} else {
			answers[i].Output = o
		}
	}
	return a.policy.Combine(a.state, &a.plan, answers, at)
}

// broken stands for an answer that is a failure.
var broken = &serving.Output{}

// feedback trains a policy that learns with a label; the loss of an output is 0 or 1.
func (a *app) feedback(label *serving.Output, outputs ...*serving.Output) {
	l, learns := a.policy.(selection.Learner)
	if !learns {
		return
	}
	f := &selection.Feedback{Label: label}
	for _, ask := range a.plan.Asks {
		o := selection.Outcome{ModelID: ask.ID, Probability: 1, Output: outputs[ask.Candidate]}
		if o.Output != nil {
			o.Judged = true
			if !selection.Same(o.Output, label) {
				o.Loss = 1
			}
		}
		f.Outcomes = append(f.Outcomes, o)
	}
	a.state = l.Train(a.state, f)
}

func (a *app) shares() (list []float64) {
	for _, s := range a.policy.(selection.Learner).Explain(a.state) {
		list = append(list, s.Share)
	}
	return list
}

func label(text string) *serving.Output { return output(serving.Text(text)) }

func num(x float64) *serving.Output { return output(serving.Number(x)) }

// vec is a flat list of numbers, as a container of JSON outputs gives it.
func vec(list ...float64) *serving.Output {
	text, err := json.Marshal(append([]float64{}, list...))
	if err != nil {
		panic(err)
	}
	return output(serving.Value{DType: serving.JSON, Data: text})
}

func output(v serving.Value) *serving.Output {
	o, err := serving.NewOutput(v)
	if err != nil {
		panic(err)
	}
	return o
}

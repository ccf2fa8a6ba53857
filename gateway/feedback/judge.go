package feedback

import (
	"fmt"
	"math"
	"slices"

	"github.com/topsail-serving/topsail/gateway/selection"
	"github.com/topsail-serving/topsail/serving"
)

// check refuses feedback that its app cannot learn from, before anything is done.
func check(app *serving.App, f *serving.Feedback) error {
	switch {
	case f.Input.Type != 0 && f.Input.Type != app.InputType:
		return &serving.QueryError{Cause: "Input of type " + f.Input.Type.String() + ", and application " + app.Name + " takes " + app.InputType.String()}
	case f.Input.Type == 0 && f.QueryID == 0:
		return &serving.QueryError{Cause: "Feedback needs the query_id of an answer, or its input"}
	case (f.Label == nil) == (f.Reward == nil):
		return &serving.QueryError{Cause: "Feedback needs either a label or a reward"}
	case f.Reward != nil && !(*f.Reward >= 0 && *f.Reward <= 1):
		return &serving.QueryError{Cause: "A reward must be a number between 0 and 1"}
	case f.Label != nil:
		return checkLabel(app, f.Label)
	}
	return nil
}

// checkLabel refuses a label that no output of the app can be compared with.
func checkLabel(app *serving.App, label *serving.Output) error {
	if len(label.JSON) == 0 {
		return &serving.QueryError{Cause: "The label is empty"}
	}
	takes := app.Policy.OutputOf(app.Outputs())
	x, isNumber := selection.Number(label)
	_, isVector := selection.Vector(nil, label)
	numeric := app.Policy.Loss == serving.LossAbsolute || app.Policy.Loss == serving.LossSquared
	wrong := func(want string) error {
		return &serving.QueryError{Cause: fmt.Sprintf("The label is not a %s, and application %s compares it with one", want, app.Name)}
	}
	switch {
	case isNumber && (math.IsNaN(x) || math.IsInf(x, 0)):
		return wrong("finite number")
	case takes == serving.OutputNumber && !isNumber:
		return wrong("number")
	case takes == serving.OutputVector && !isVector:
		return wrong("vector")
	case takes == serving.OutputLabel && (label.JSON[0] == '[' || label.JSON[0] == '{'):
		return wrong("single label")
	case numeric && !isVector:
		return wrong("number or vector")
	}
	return nil
}

// judge says how wrong the answer and each model were.
func (one *joined) judge(app *serving.App, f *serving.Feedback) error {
	loss := selection.LossOf(&app.Policy)
	if f.Reward != nil {
		one.judgeByReward(loss, *f.Reward)
		return nil
	}
	one.feedback.Label = f.Label
	wrongSize := false
	for i := range one.feedback.Outcomes {
		o := &one.feedback.Outcomes[i]
		if o.Output == nil {
			continue
		}
		l, err := loss.Of(o.Output, f.Label)
		if err == nil {
			o.Loss, o.Judged = l, true
			continue
		}
		_, numeric := selection.Vector(nil, o.Output)
		wrongSize = wrongSize || numeric // as the label is: check has seen to it
	}
	if wrongSize && !one.judged() {
		return &serving.QueryError{Cause: "The label has another number of elements than the outputs of application " + app.Name + ": give as many, or have the model answer with the class"}
	}
	one.feedback.Loss = lossOfAnswer(app, loss, one.answer, f.Label)
	return nil
}

// judged says whether the loss of any model is known.
func (one *joined) judged() bool {
	return slices.ContainsFunc(one.feedback.Outcomes, func(o selection.Outcome) bool { return o.Judged })
}

// lossOfAnswer is that of what the client got; where that was the default, the
// default's.
func lossOfAnswer(app *serving.App, loss selection.Loss, answer, label *serving.Output) float64 {
	if answer == nil {
		answer = parse(serving.AppendText(nil, []byte(app.DefaultOutput)))
	}
	if answer == nil {
		return 1
	}
	l, err := loss.Of(answer, label)
	if err != nil {
		return 1
	}
	return l
}

// judgeByReward gives the loss 1 − r to the models whose output the client got, or that alone made
// it. A reward says nothing of the others, unless it is full: then the answer is what would have
// been right.
func (one *joined) judgeByReward(loss selection.Loss, r float64) {
	one.feedback.Loss = 1 - r
	if one.answer == nil {
		return // the default was judged
	}
	for i := range one.feedback.Outcomes {
		o := &one.feedback.Outcomes[i]
		switch {
		case o.Output == nil:
		case len(one.feedback.Outcomes) == 1 || selection.Same(o.Output, one.answer):
			o.Loss, o.Judged = 1-r, true
		case r == 1:
			l, err := loss.Of(o.Output, one.answer)
			o.Loss, o.Judged = l, err == nil
		}
	}
}

package feedback

import (
	"fmt"
	"math"

	"topsail/gateway/selection"
	"topsail/serving"
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
	takes := app.Policy.OutputOf(app.OutputType)
	x, isNumber := selection.Number(label)
	_, isVector := selection.Vector(nil, label)
	numeric := app.Policy.Loss == serving.LossAbsolute || app.Policy.Loss == serving.LossSquared
	wrong := func(want string) error {
		return &serving.QueryError{Cause: fmt.Sprintf("The label is no %s, and application %s compares it with one", want, app.Name)}
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
	if f.Reward != nil {
		one.judgeByReward(*f.Reward)
		return nil
	}
	loss := selection.LossOf(&app.Policy)
	one.feedback.Label = f.Label
	for i := range one.feedback.Outcomes {
		o := &one.feedback.Outcomes[i]
		if o.Output == nil {
			continue
		}
		if l, err := loss.Of(o.Output, f.Label); err == nil {
			o.Loss, o.Judged = l, true
		}
	}
	one.feedback.Loss = lossOfAnswer(app, loss, one.answer, f.Label)
	return nil
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

// judgeByReward gives the loss 1 − r to those who said what the client got. A reward
// tells nothing of the others, unless it is full: then they were wrong.
func (one *joined) judgeByReward(r float64) {
	one.feedback.Loss = 1 - r
	for i := range one.feedback.Outcomes {
		o := &one.feedback.Outcomes[i]
		switch {
		case len(one.feedback.Outcomes) == 1 && o.Output != nil, sameAsAnswer(o, one.answer):
			o.Loss, o.Judged = 1-r, true
		case r == 1 && o.Output != nil && one.answer != nil:
			o.Loss, o.Judged = 1, true
		}
	}
}

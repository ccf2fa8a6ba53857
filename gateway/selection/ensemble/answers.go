package ensemble

import (
	"fmt"
	"math"

	"github.com/topsail-serving/topsail/gateway/selection"
	"github.com/topsail-serving/topsail/serving"
)

// ended says whether nothing more is waited for, and why.
func ended(answers []selection.Answer, at selection.Moment) (selection.Ending, bool) {
	for i := range answers {
		if !answers[i].Come() {
			return selection.EndedDeadline, at.Final
		}
	}
	return selection.EndedAll, true
}

// failed is the decision when none of the answers can be used and nothing more is
// waited for: it says what the first of them has instead.
func failed(plan *selection.Plan, answers []selection.Answer, takes serving.OutputType, why selection.Ending) selection.Decision {
	d := selection.Decision{Verdict: selection.Verdict{Ended: why}, Done: true}
	if len(plan.Asks) == 0 {
		d.Failure = &serving.Failure{Cause: serving.NoReplica}
	}
	for i := range answers {
		switch a := &answers[i]; {
		case a.Failure != nil:
			d.Failure = a.Failure
			return d
		case a.Output != nil:
			d.Failure = unfit(plan.Asks[i].ID, takes)
			return d
		}
	}
	return d
}

func unfit(id serving.ModelID, takes serving.OutputType) *serving.Failure {
	return &serving.Failure{Cause: serving.ModelError, Message: fmt.Sprintf(
		"the output of %v is not a %s: change the model, or the app's output_type and policy", id, takes)}
}

// made is the decision for an answer that is put together from several.
func made(v serving.Value, why selection.Ending) selection.Decision {
	d := selection.Decision{Verdict: selection.Verdict{Ended: why}, Done: true}
	out, err := serving.NewOutput(v)
	if err != nil {
		d.Failure = &serving.Failure{Cause: serving.ModelError, Message: err.Error()}
		return d
	}
	d.Output = out
	return d
}

// fits says whether an output is of a type. It uses plan.Scratch behind its end.
func fits(o *serving.Output, t serving.OutputType, plan *selection.Plan) bool {
	switch t {
	case serving.OutputNumber:
		_, ok := number(o)
		return ok
	case serving.OutputLabel:
		return isLabel(o)
	case serving.OutputVector:
		all, ok := vector(plan.Scratch, o)
		plan.Scratch = all[:len(plan.Scratch)] // keeps the memory for the next
		return ok
	}
	return true
}

// isLabel says whether an output is a text, a number or a truth value.
func isLabel(o *serving.Output) bool {
	if len(o.JSON) == 0 {
		return false
	}
	switch o.JSON[0] {
	case '[', '{', 'n':
		return false
	}
	return true
}

// number is an output that is one finite number.
func number(o *serving.Output) (float64, bool) {
	x, ok := selection.Number(o)
	return x, ok && finite(x)
}

// vector appends an output that is a flat list of finite numbers.
func vector(dst []float64, o *serving.Output) ([]float64, bool) {
	if len(o.Value.Shape) > 1 {
		return dst, false
	}
	all, ok := selection.Vector(dst, o)
	for _, x := range all[len(dst):] {
		ok = ok && finite(x)
	}
	return all, ok
}

func finite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }

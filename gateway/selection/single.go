package selection

import (
	"time"

	"topsail/serving"
)

// Single asks the first linked model, always.
type Single struct{}

// Select implements Selector.
func (Single) Select(_ *serving.Query, candidates []serving.ModelID, _ time.Duration) Decision {
	return only(candidates[:min(1, len(candidates))])
}

// only is the decision for one model, or for none.
type only []serving.ModelID

func (o only) Models() []serving.ModelID { return o }

func (o only) Combine(answers []Answer) (Verdict, bool) {
	if len(answers) == 0 {
		return Verdict{Failure: &serving.Failure{Cause: serving.NoReplica}}, true
	}
	a := answers[0]
	return Verdict{Output: a.Output, Model: o[0], Failure: a.Failure}, a.Output != nil || a.Failure != nil
}

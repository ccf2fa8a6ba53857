package ensemble

import (
	"math"
	"time"

	"github.com/topsail-serving/topsail/gateway/selection"
	"github.com/topsail-serving/topsail/serving"
)

// Best answers with the output that its model is most sure of, by its confidence or by
// the qualifier that the policy names; of equals, and of outputs without any, the
// first-ranked. It waits for every model, or until its time limit when there is an
// answer by then. No confidence is above 1, so that an answer of confidence 1 ends it.
type Best struct {
	panel
	takes     serving.OutputType
	qualifier string
	within    time.Duration
}

// NewBest makes the policy of a spec.
func NewBest(spec serving.PolicySpec, links []string, output serving.OutputType) *Best {
	return &Best{panel: newPanel(&spec, links), takes: spec.OutputOf(output), qualifier: spec.Qualifier, within: spec.Within()}
}

// Combine implements selection.Policy.
func (b *Best) Combine(_ *selection.State, plan *selection.Plan, answers []selection.Answer, at selection.Moment) selection.Decision {
	best, quality := b.best(plan, answers)
	why, over := ended(answers, at)
	switch {
	case over && best < 0:
		return failed(plan, answers, b.takes, why)
	case over:
	case best >= 0 && b.qualifier == "" && quality >= 1:
		why = unbeaten(answers[:best])
	case best >= 0 && b.within > 0 && at.Elapsed >= b.within:
		why = selection.EndedTime
	case at.Elapsed < b.within:
		return selection.Decision{Again: b.within}
	default:
		return selection.Decision{}
	}
	d := selection.Decision{Done: true, Verdict: selection.Verdict{Output: answers[best].Output, Model: plan.Asks[best].ID, Ended: why}}
	if c := d.Output.Confidence; c != nil && !math.IsNaN(*c) {
		d.Confidence = max(0, min(*c, 1))
	}
	return d
}

// unbeaten is why an answer of full confidence ends the wait: of the models ranked
// before it one that is missing could have said the same and won.
func unbeaten(before []selection.Answer) selection.Ending {
	if _, all := ended(before, selection.Moment{}); all {
		return selection.EndedCertain
	}
	return selection.EndedAcceptable
}

// best is the place of the best answer and its quality; -1 where there is none.
func (b *Best) best(plan *selection.Plan, answers []selection.Answer) (at int, quality float64) {
	at = -1
	for i := range answers {
		o := answers[i].Output
		if o == nil || !fits(o, b.takes, plan) {
			continue
		}
		if q := b.quality(o); at < 0 || q > quality {
			at, quality = i, q
		}
	}
	return at, quality
}

// quality is what an output is judged by; of one that says nothing it is less than any.
func (b *Best) quality(o *serving.Output) float64 {
	q, known := 0.0, false
	if b.qualifier == "" {
		if o.Confidence != nil {
			q, known = min(*o.Confidence, 1), true
		}
	} else {
		for i := range o.Qualifiers {
			if v := &o.Qualifiers[i]; v.Name == b.qualifier {
				q, known = selection.Number(&serving.Output{Value: *v})
			}
		}
	}
	if !known || math.IsNaN(q) {
		return math.Inf(-1)
	}
	return q
}

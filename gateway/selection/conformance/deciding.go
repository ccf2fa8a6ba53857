package conformance

import (
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/topsail-serving/topsail/gateway/selection"
	"github.com/topsail-serving/topsail/serving"
)

// decisions brings answers and failures in, one at a time in any order, until the
// policy decides or the deadline comes.
func (s suite) decisions(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 6).Draw(t, "models")
		p, state := s.taught(n, rapid.IntRange(0, 30).Draw(t, "rounds"), rapid.Uint64().Draw(t, "seed"))
		r := race{suite: s, policy: p, state: state}
		q := s.query(rapid.Uint64().Draw(t, "query seed"))
		p.Select(state, q, s.drawCandidates(t, n), &r.plan)
		if len(r.plan.Asks) == 0 {
			return
		}
		r.open = asked(&r.plan)
		// Under load the gateway leaves out the last ones.
		r.plan.Asks = r.plan.Asks[:rapid.IntRange(1, len(r.plan.Asks)).Draw(t, "left in")]
		r.open = min(r.open, len(r.plan.Asks))
		r.answers = make([]selection.Answer, len(r.plan.Asks))
		r.at.Budget = q.Budget
		r.run(t)
	})
}

// race is one query that is under way.
type race struct {
	suite
	policy  selection.Policy
	state   *selection.State
	plan    selection.Plan
	answers []selection.Answer
	open    int // how many have been asked
	at      selection.Moment
}

func (r *race) run(t *rapid.T) {
	for {
		pending := r.pending()
		r.at.Final = len(pending) == 0 || r.at.Elapsed >= r.at.Budget || rapid.IntRange(0, 9).Draw(t, "deadline") == 0
		if !r.at.Final {
			i := rapid.SampledFrom(pending).Draw(t, "next")
			r.answers[i] = r.drawAnswer(t)
			r.at.Elapsed += time.Duration(rapid.IntRange(0, 6).Draw(t, "ms")) * time.Millisecond
		}
		d := r.policy.Combine(r.state, &r.plan, r.answers, r.at)
		if d.Done {
			r.checkVerdict(t, &d.Verdict)
			r.checkFirm(t, &d.Verdict)
			return
		}
		if r.at.Final {
			t.Fatalf("at the deadline it decides %+v", d)
		}
		r.open = min(max(r.open, d.Open), len(r.answers))
		if len(r.pending()) == 0 && d.Again <= r.at.Elapsed {
			t.Fatalf("it waits though nothing is under way: %+v", r.answers)
		}
	}
}

// pending are the places of asks that are under way.
func (r *race) pending() (list []int) {
	for i := range r.open {
		if !r.answers[i].Come() {
			list = append(list, i)
		}
	}
	return list
}

func (r *race) drawAnswer(t *rapid.T) selection.Answer {
	if rapid.IntRange(0, 3).Draw(t, "fails") == 0 {
		return selection.Answer{Failure: &serving.Failure{Cause: serving.ModelError, Message: "broken"}}
	}
	out := *r.Output(float64(rapid.IntRange(0, 2).Draw(t, "output")))
	if rapid.Bool().Draw(t, "confident") {
		x := rapid.Float64Range(0, 1).Draw(t, "confidence")
		out.Confidence = &x
	}
	return selection.Answer{Output: &out}
}

func (r *race) checkVerdict(t *rapid.T, v *selection.Verdict) {
	outputs := 0
	for i := range r.answers {
		if r.answers[i].Output != nil && !r.plan.Asks[i].Shadow {
			outputs++
		}
	}
	switch {
	case v.Output != nil && v.Failure != nil:
		t.Fatalf("an answer has an output or a failure, not both: %+v", v)
	case v.Output == nil && outputs > 0 && !r.Declines:
		t.Fatalf("%d outputs have come, and the answer is %+v", outputs, v)
	case v.Output != nil && outputs == 0:
		t.Fatalf("no output has come, and the answer is %s", v.Output.JSON)
	case math.IsNaN(v.Confidence) || v.Confidence < 0 || v.Confidence > 1+1e-9:
		t.Fatalf("confidence %v is none", v.Confidence)
	case v.Ended == "" || v.Ended == selection.EndedDeadline && !r.at.Final && r.at.Elapsed < r.at.Budget:
		t.Fatalf("it ended by %q, with Final %v", v.Ended, r.at.Final)
	case r.plan.Alone && v.Output != nil && v.Model == serving.ModelID{}:
		t.Fatal("one model alone answers, and it is not said which")
	case v.Model != serving.ModelID{}:
		r.checkModel(t, v)
	}
	for _, i := range r.pending() {
		if v.Ended == selection.EndedAll && !r.plan.Asks[i].Shadow {
			t.Fatalf("all have answered, it says, and %v has not", r.plan.Asks[i].ID)
		}
	}
}

func (r *race) checkModel(t *rapid.T, v *selection.Verdict) {
	i := slices.IndexFunc(r.plan.Asks, func(a selection.Ask) bool { return a.ID == v.Model })
	if i < 0 || v.Output != nil && (r.answers[i].Output == nil || !selection.Same(r.answers[i].Output, v.Output)) {
		t.Fatalf("the answer is not that of %v: %+v", v.Model, v)
	}
}

// checkFirm lets the rest come in: what was certain must stay.
func (r *race) checkFirm(t *rapid.T, v *selection.Verdict) {
	if v.Ended != selection.EndedCertain && v.Ended != selection.EndedAll {
		return
	}
	early := slices.Clone(r.answers)
	for range 3 {
		copy(r.answers, early)
		for _, i := range r.pending() {
			if rapid.Bool().Draw(t, "comes late") {
				r.answers[i] = r.drawAnswer(t)
			}
		}
		d := r.policy.Combine(r.state, &r.plan, r.answers, selection.Moment{Elapsed: r.at.Budget, Budget: r.at.Budget, Final: true})
		same := d.Done && (d.Output == nil) == (v.Output == nil) && (d.Output == nil || selection.Same(d.Output, v.Output))
		if !same {
			t.Fatalf("%s was %+v, and later %+v", v.Ended, v, d.Verdict)
		}
	}
}

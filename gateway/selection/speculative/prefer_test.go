package speculative

import (
	"slices"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/gateway/selection"
	"github.com/topsail-serving/topsail/serving"
)

func TestPrefer(t *testing.T) {
	prefer := NewPrefer(serving.PolicySpec{}, []string{"big", "mid", "small"})
	list := candidates("big:1", "mid:1", "small:1")
	list[1].Median, list[2].Median = 10*time.Millisecond, 2*time.Millisecond
	const mid, small = budget - 3*time.Millisecond - 15*time.Millisecond, budget - 3*time.Millisecond // when each of them is asked at the latest
	for name, steps := range map[string][]step{
		"the first answers":  {{at: 0, answers: "- - -", open: 1, again: mid}, {at: 5, answers: "? - -", winner: "big", ended: selection.EndedAll}},
		"the first refuses":  {{at: 0, answers: "! - -", open: 2, again: small}, {at: 5, answers: "! ? -", winner: "mid", ended: selection.EndedAll}},
		"two refuse":         {{at: 0, answers: "! ! -", open: 3}, {at: 5, answers: "! ! ?", winner: "small", ended: selection.EndedAll}},
		"all refuse":         {{at: 0, answers: "! ! !", winner: "!", ended: selection.EndedAll}},
		"the first is late":  {{at: mid - 1, answers: "- - -", open: 1, again: mid}, {at: mid, answers: "- - -", open: 2, again: small}, {at: mid + 1, answers: "- ? -", winner: "mid", ended: selection.EndedTime}},
		"it comes after all": {{at: mid, answers: "- - -", open: 2, again: small}, {at: mid + 1, answers: "? - -", winner: "big", ended: selection.EndedCertain}},
		"both are late":      {{at: small, answers: "- - -", open: 3}, {at: small + 1, answers: "- - ?", winner: "small", ended: selection.EndedTime}},
		"the last resort fails, and one may come": {{at: small, answers: "- - !", open: 3}, {at: budget, answers: "- - !", winner: "late", ended: selection.EndedDeadline}},
		"nothing comes": {{at: budget, answers: "- - -", winner: "late", ended: selection.EndedDeadline}},
	} {
		t.Run(name, func(t *testing.T) { plays(t, prefer, list, steps...) })
	}
}

// The time that is kept for the next model is a quarter at the most, and nothing for one that is not there.
func TestPreferKeepsTimeForTheNext(t *testing.T) {
	prefer := NewPrefer(serving.PolicySpec{}, []string{"a", "b", "c"})
	for _, test := range []struct {
		list []selection.Candidate
		want []time.Duration
	}{
		{candidates("a:1"), []time.Duration{0}},
		{candidates("a:1", "b:1"), []time.Duration{budget * 3 / 4, 0}},
		{candidates("a:1", "b:1", "c:1"), []time.Duration{budget * 9 / 16, budget * 3 / 4, 0}},
		{candidates("a:1", "b:1!", "c:1"), []time.Duration{budget * 3 / 4, 0, 0}},
		{candidates("a:1", "b:1!", "c:1!"), []time.Duration{0, 0, 0}},
	} {
		var plan selection.Plan
		prefer.Select(nil, &selection.Query{Budget: budget}, test.list, &plan)
		var got []time.Duration
		for i, ask := range plan.Asks {
			got = append(got, ask.Within)
			if ask.Absent == test.list[i].Ready {
				t.Errorf("%v: %+v", test.list, ask)
			}
		}
		if !slices.Equal(got, test.want) || plan.Now != 1 {
			t.Errorf("%v: %v, %d now; want %v", test.list, got, plan.Now, test.want)
		}
	}
}

// Where no model has a replica, all are asked, and the first that comes is the answer.
func TestPreferWhereNoneIsThere(t *testing.T) {
	prefer := NewPrefer(serving.PolicySpec{}, []string{"a", "b"})
	list := candidates("a:1!", "b:1!")
	plays(t, prefer, list, step{at: 0, answers: "- -", open: 2}, step{at: 5, answers: "- ?", winner: "b", ended: selection.EndedTime})
	plays(t, prefer, list, step{at: 5, answers: "? -", winner: "a", ended: selection.EndedCertain})
	plays(t, prefer, list, step{at: budget, answers: "! !", winner: "!", ended: selection.EndedAll})
}

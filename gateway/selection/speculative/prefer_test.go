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
	list[1].P95, list[2].P95 = 10*time.Millisecond, 2*time.Millisecond
	const mid, small = budget - 20*time.Millisecond, budget - 4*time.Millisecond // when each of them is asked at the latest
	for name, steps := range map[string][]step{
		"the first answers":                         {{at: 0, answers: "- - -", open: 1, again: mid}, {at: 5, answers: "? - -", winner: "big", ended: selection.EndedAll}},
		"the first refuses":                         {{at: 0, answers: "! - -", open: 2}, {at: 0, answers: "! - -", open: 2, again: small}, {at: 5, answers: "! ? -", winner: "mid", ended: selection.EndedAll}},
		"two refuse":                                {{at: 0, answers: "! - -", open: 2}, {at: 5, answers: "! ! -", open: 3}, {at: 6, answers: "! ! ?", winner: "small", ended: selection.EndedAll}},
		"all refuse":                                {{at: 0, answers: "! ! !", winner: "!", ended: selection.EndedAll}},
		"the first is late":                         {{at: mid - 1, answers: "- - -", open: 1, again: mid}, {at: mid, answers: "- - -", open: 2}, {at: mid + 1, answers: "- ? -"}, {at: budget, answers: "- ? -", winner: "mid", ended: selection.EndedDeadline}},
		"it comes after all":                        {{at: mid, answers: "- - -", open: 2}, {at: mid + 1, answers: "- ? -"}, {at: mid + 2, answers: "? ? -", winner: "big", ended: selection.EndedAll}},
		"it comes before the next":                  {{at: mid, answers: "- - -", open: 2}, {at: mid + 1, answers: "? - -", winner: "big", ended: selection.EndedCertain}},
		"it fails in the end":                       {{at: mid, answers: "- - -", open: 2}, {at: mid + 1, answers: "- ? -"}, {at: mid + 2, answers: "! ? -", winner: "mid", ended: selection.EndedAll}},
		"both are late":                             {{at: small, answers: "- - -", open: 2}, {at: small, answers: "- - -", open: 3}, {at: budget, answers: "- - ?", winner: "small", ended: selection.EndedDeadline}},
		"the next one fails, and the last is asked": {{at: mid, answers: "- - -", open: 2}, {at: mid + 1, answers: "- ! -", open: 3}, {at: budget, answers: "- ! -", winner: "late", ended: selection.EndedDeadline}},
		"nothing comes":                             {{at: budget, answers: "- - -", winner: "late", ended: selection.EndedDeadline}},
	} {
		t.Run(name, func(t *testing.T) { plays(t, prefer, list, steps...) })
	}
}

// A model that is not there is in the plan, and marked, unless none is there.
func TestPreferKnowsWhoIsThere(t *testing.T) {
	prefer := NewPrefer(serving.PolicySpec{}, []string{"a", "b", "c"})
	for _, test := range []struct {
		list []selection.Candidate
		want []bool
		now  int
	}{
		{candidates("a:1", "b:1!", "c:1"), []bool{false, true, false}, 1},
		{candidates("a:1!", "b:1!", "c:1"), []bool{true, true, false}, 1},
		{candidates("a:1!", "b:1!", "c:1!"), []bool{false, false, false}, 3},
		{nil, nil, 0},
	} {
		var plan selection.Plan
		prefer.Select(nil, &selection.Query{Budget: budget}, test.list, &plan)
		var absent []bool
		for _, ask := range plan.Asks {
			absent = append(absent, ask.Absent)
		}
		if !slices.Equal(absent, test.want) || plan.Now != test.now || !plan.Ranked {
			t.Errorf("%v: %v, %d now; want %v, %d", test.list, absent, plan.Now, test.want, test.now)
		}
	}
}

// Where no model has a replica, all are asked, and the first that comes is the answer.
func TestPreferWhereNoneIsThere(t *testing.T) {
	prefer := NewPrefer(serving.PolicySpec{}, []string{"a", "b"})
	list := candidates("a:1!", "b:1!")
	plays(t, prefer, list, step{at: 0, answers: "- -"}, step{at: 5, answers: "- ?", winner: "b", ended: selection.EndedAcceptable})
	plays(t, prefer, list, step{at: 5, answers: "? -", winner: "a", ended: selection.EndedAcceptable})
	plays(t, prefer, list, step{at: budget, answers: "! !", winner: "!", ended: selection.EndedAll})
}

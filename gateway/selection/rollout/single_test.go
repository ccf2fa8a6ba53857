package rollout

import (
	"slices"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/gateway/selection"
	"github.com/topsail-serving/topsail/serving"
)

// candidates are ready versions like "m:1", sorted; one that ends in "!" is not ready.
func candidates(names ...string) []selection.Candidate {
	list := make([]selection.Candidate, len(names))
	for i, name := range names {
		ready := name[len(name)-1] != '!'
		if !ready {
			name = name[:len(name)-1]
		}
		list[i] = selection.Candidate{ModelID: parse([]string{name})[0], Ready: ready, Cost: 1}
	}
	return list
}

// planned are the versions that a policy asks, without a state.
func planned(p selection.Policy, q *selection.Query, list []selection.Candidate) (names []string) {
	var plan selection.Plan
	p.Select(nil, q, list, &plan)
	for _, ask := range plan.Asks {
		names = append(names, ask.ID.String())
	}
	return names
}

func TestSingleAsksOne(t *testing.T) {
	for name, test := range map[string]struct {
		model string
		links []string
		there []selection.Candidate
		want  string
	}{
		"the first linked":                    {"", []string{"b", "a"}, candidates("a:1", "b:7"), "b:7"},
		"the first that is ready":             {"", []string{"b", "a"}, candidates("a:1", "b:7!"), "a:1"},
		"the first if none is ready":          {"", []string{"b", "a"}, candidates("a:1!", "b:7!"), "b:7"},
		"who is named":                        {"a", []string{"b", "a"}, candidates("a:1", "b:7"), "a:1"},
		"who is named and not ready":          {"a", []string{"b", "a"}, candidates("a:1!", "b:7"), "a:1"},
		"the first linked if that is gone":    {"c", []string{"b", "a"}, candidates("a:1", "b:7"), "b:7"},
		"the version that is named":           {"a:2", []string{"a"}, candidates("a:1", "a:2"), "a:2"},
		"another version if that is not held": {"a:9", []string{"a"}, candidates("a:1", "a:2"), "a:1"},
		"not a name that only begins so":      {"a", []string{"a"}, candidates("aa:1"), ""},
	} {
		got := planned(NewSingle(serving.PolicySpec{Model: test.model}, test.links), &selection.Query{}, test.there)
		if len(got) > 1 || len(got) == 1 && got[0] != test.want || len(got) == 0 && test.want != "" {
			t.Errorf("it should ask %s, %q, and asks %q", name, test.want, got)
		}
	}
}

func TestSingleAnswersWhatTheModelSays(t *testing.T) {
	sure, unsure := 0.9, 7.0
	out, failure := &serving.Output{Confidence: &sure}, &serving.Failure{Cause: serving.ModelError}
	odd := &serving.Output{Confidence: &unsure}
	a := serving.ModelID{Model: "a", Version: "1"}
	s := NewSingle(serving.PolicySpec{}, []string{"a"})
	for _, test := range []struct {
		answer selection.Answer
		final  bool
		want   selection.Verdict
		done   bool
	}{
		{selection.Answer{}, false, selection.Verdict{}, false},
		{selection.Answer{}, true, selection.Verdict{Model: a, Ended: selection.EndedDeadline}, true},
		{selection.Answer{Output: out}, false, selection.Verdict{Model: a, Output: out, Confidence: 0.9, Ended: selection.EndedAll}, true},
		{selection.Answer{Output: odd}, false, selection.Verdict{Model: a, Output: odd, Ended: selection.EndedAll}, true},
		{selection.Answer{Failure: failure}, true, selection.Verdict{Model: a, Failure: failure, Ended: selection.EndedAll}, true},
	} {
		var plan selection.Plan
		s.Select(nil, &selection.Query{}, candidates("a:1"), &plan)
		got := s.Combine(nil, &plan, []selection.Answer{test.answer}, selection.Moment{Budget: time.Second, Final: test.final})
		if got.Verdict != test.want || got.Done != test.done {
			t.Errorf("%+v, final %v: got %+v", test.answer, test.final, got)
		}
	}
}

func TestShadowsAreAskedAndNotWaitedFor(t *testing.T) {
	s := NewShadow(serving.PolicySpec{Model: "b"}, []string{"a", "b", "c"})
	var plan selection.Plan
	s.Select(nil, &selection.Query{}, candidates("a:1", "b:1", "c:1"), &plan)
	answers := make([]selection.Answer, 3)
	answers[1].Output = &serving.Output{}
	if d := s.Combine(nil, &plan, answers, selection.Moment{}); d.Done {
		t.Errorf("with a shadow's answer alone it decides %+v", d)
	}
	if d := s.Combine(nil, &plan, answers, selection.Moment{Final: true}); !d.Done || d.Output != nil {
		t.Errorf("at the deadline, with a shadow's answer alone, it decides %+v", d)
	}
	answers[0].Output = &serving.Output{}
	if d := s.Combine(nil, &plan, answers, selection.Moment{}); !d.Done || d.Output != answers[0].Output || d.Model.Model != "b" {
		t.Errorf("with a shadow silent it decides %+v", d)
	}
	for i, ask := range plan.Asks {
		if ask.Shadow != (i > 0) || ask.Shadow && ask.Weight != 0 {
			t.Errorf("ask %d is %+v", i, ask)
		}
	}
}

func TestWhoIsAShadow(t *testing.T) {
	for name, test := range map[string]struct {
		spec  serving.PolicySpec
		there []selection.Candidate
		want  []string
	}{
		"all others":                    {serving.PolicySpec{}, candidates("a:1", "b:1", "c:1"), []string{"b:1", "a:1", "c:1"}},
		"not those that are not ready":  {serving.PolicySpec{}, candidates("a:1!", "b:1", "c:1"), []string{"b:1", "c:1"}},
		"the named":                     {serving.PolicySpec{Models: []string{"c"}}, candidates("a:1", "b:1", "c:1"), []string{"b:1", "c:1"}},
		"another version of who serves": {serving.PolicySpec{Model: "a", Models: []string{"a:1"}}, candidates("a:1", "a:2", "b:1"), []string{"a:2", "a:1"}},
		"not who serves":                {serving.PolicySpec{Model: "a", Models: []string{"a:2"}}, candidates("a:2"), []string{"a:2"}},
		"nobody of nobody":              {serving.PolicySpec{}, candidates("z:1"), nil},
	} {
		if got := planned(NewShadow(test.spec, []string{"b", "a", "c"}), &selection.Query{}, test.there); !slices.Equal(got, test.want) {
			t.Errorf("%s: it asks %v, not %v", name, got, test.want)
		}
	}
}

func TestShadowsTakeTheirShare(t *testing.T) {
	const n, share = 20_000, 0.3
	s, q, asked := NewShadow(serving.PolicySpec{Share: share}, []string{"a", "b"}), query(1), 0
	for range n {
		asked += len(planned(s, q, candidates("a:1", "b:1"))) - 1
	}
	within(t, "shadows", asked, n, share)
}

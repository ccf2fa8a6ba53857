package main

import (
	"slices"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/gateway/selection"
	"github.com/topsail-serving/topsail/serving"
)

// replayed sends three passes of the table through a policy.
func replayed(t *testing.T, table *Table, spec serving.PolicySpec) (*stream, *trace) {
	t.Helper()
	s := newTestStream(t, table, 1, 3*samples, false)
	app := &serving.App{Name: "lab", InputType: serving.Doubles, OutputType: serving.OutputLabel, SLO: serving.Duration(budget), Models: table.names(), Policy: spec}
	r, err := newReplayer(app, s, 1)
	if err != nil {
		t.Fatal(err)
	}
	out, err := r.replay()
	if err != nil {
		t.Fatal(err)
	}
	return s, out
}

func TestReplay(t *testing.T) {
	const n = 3 * samples
	for name, test := range map[string]struct {
		spec   serving.PolicySpec
		errors float64
		asked  int
	}{
		"the best alone":                       {serving.PolicySpec{Kind: serving.PolicySingle, Model: "a"}, 30, n},
		"the worst alone":                      {serving.PolicySpec{Kind: serving.PolicySingle, Model: "c"}, 150, n},
		"two of three are wrong at 20 of 100":  {serving.PolicySpec{Kind: serving.PolicyVote}, 60, 3 * n},
		"the sure ones are right":              {serving.PolicySpec{Kind: serving.PolicyBest}, 30, 3 * n},
		"the first that is sure is right":      {serving.PolicySpec{Kind: serving.PolicyFirstAcceptable}, 30, 3 * n},
		"50 of 100 ask a second, 20 a third":   {serving.PolicySpec{Kind: serving.PolicyCascade, Models: []string{"c", "b", "a"}}, 30, n + 150 + 60},
		"what is there when only c has come":   {serving.PolicySpec{Kind: serving.PolicyVote, WithinMicros: 1500}, 150, 3 * n},
		"a fast one bounds, within its time":   {serving.PolicySpec{Kind: serving.PolicyGuaranteed, Models: []string{"c", "b", "a"}, WithinMicros: 2500}, 60, 3 * n},
		"only the fast one is there that soon": {serving.PolicySpec{Kind: serving.PolicyGuaranteed, Models: []string{"c", "b", "a"}, WithinMicros: 500}, 150, 3 * n},
	} {
		t.Run(name, func(t *testing.T) {
			_, got := replayed(t, three(), test.spec)
			if len(got.losses) != n || sum(got.losses) != test.errors || got.asked != test.asked {
				t.Errorf("%d answers, %v errors, %d asked; not %d, %v, %d", len(got.losses), sum(got.losses), got.asked, n, test.errors, test.asked)
			}
		})
	}
}

func TestNoAnswerInTimeIsWrong(t *testing.T) {
	late := tableOf("late", says("a", 2*budget.Microseconds(), 0))
	if _, got := replayed(t, late, serving.PolicySpec{}); sum(got.losses) != 3*samples {
		t.Errorf("%v of %d answers are wrong", sum(got.losses), 3*samples)
	}
}

// pupil notes what it is taught.
type pupil struct {
	selection.Policy
	lessons *[]*selection.Feedback
}

func (p pupil) New(models []serving.ModelID) *selection.State {
	return selection.NewState("pupil", models)
}
func (p pupil) Train(s *selection.State, f *selection.Feedback) *selection.State {
	*p.lessons = append(*p.lessons, f)
	return s
}
func (p pupil) AddModel(s *selection.State, _ serving.ModelID) *selection.State      { return s }
func (p pupil) UpdateVersion(s *selection.State, _ serving.ModelID) *selection.State { return s }
func (p pupil) Explain(*selection.State) []selection.Standing                        { return nil }

// TestFeedbackIsOfThoseAsked has a cascade, which asks one, two or three.
func TestFeedbackIsOfThoseAsked(t *testing.T) {
	table := three()
	s := newTestStream(t, table, 1, samples, false)
	app := &serving.App{Name: "lab", InputType: serving.Doubles, SLO: serving.Duration(budget), Models: table.names(), Policy: serving.PolicySpec{Kind: serving.PolicyCascade, Models: table.byTime()}}
	r, err := newReplayer(app, s, 1)
	if err != nil {
		t.Fatal(err)
	}
	var lessons []*selection.Feedback
	r.policy = pupil{r.policy, &lessons}
	if _, err := r.replay(); err != nil {
		t.Fatal(err)
	}
	if len(lessons) != samples {
		t.Fatalf("%d lessons of %d queries", len(lessons), samples)
	}
	for q, f := range lessons {
		sample := s.order[q]
		want := "cba"[:1+b2i(sample < 50)+b2i(sample < 20)]
		got := ""
		for _, o := range f.Outcomes {
			got += o.Model
			at := int(o.Model[0] - 'a')
			if !o.Judged || o.Probability != 1 || o.Output != s.outputs[at][sample] || o.Loss != s.losses[at][q] {
				t.Errorf("sample %d: outcome %+v", sample, o)
			}
		}
		if got != want || f.Label != s.labels[sample] || f.Loss != float64(b2i(sample < 10)) || f.Input.Len() != 3 {
			t.Errorf("sample %d: outcomes of %q, not %q, loss %v", sample, got, want, f.Loss)
		}
	}
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

func TestLearnersFindTheBest(t *testing.T) {
	table := tableOf("two", says("bad", 1000, 90), says("good", 1000, 5))
	s := &study{output: serving.OutputLabel}
	stream := newTestStream(t, table, 1, 2000, false)
	for _, kind := range []string{serving.PolicyEpsilonGreedy, serving.PolicyUCB1, serving.PolicyThompson, serving.PolicyExp3, serving.PolicyLinUCB, serving.PolicyExp4} {
		got, err := s.replay(kind, stream, 1)
		if err != nil {
			t.Fatal(err)
		}
		if share := got.share(1, 1000, 2000); share < 0.85 {
			t.Errorf("%s ranks the good model first in %.2f of queries", kind, share)
		}
	}
}

// TestLinUCBSeesTheInput has two models that are right about one of two labels, and
// inputs that tell which it is.
func TestLinUCBSeesTheInput(t *testing.T) {
	table := tableOf("experts", says("a", 1000, 0), says("b", 1000, 0))
	for i := range samples {
		table.Models[i%2].Outputs[i] = 7
	}
	stream := newTestStream(t, table, 1, 1000, false)
	got, err := (&study{output: serving.OutputLabel}).replay(serving.PolicyLinUCB, stream, 1)
	if err != nil {
		t.Fatal(err)
	}
	if errors := sum(got.losses); errors > 100 {
		t.Errorf("%v errors, as if all inputs were alike", errors)
	}
}

// watched notes when it is asked to combine.
type watched struct {
	selection.Policy
	at *[]time.Duration
}

func (w watched) Combine(s *selection.State, plan *selection.Plan, answers []selection.Answer, at selection.Moment) selection.Decision {
	*w.at = append(*w.at, at.Elapsed)
	return w.Policy.Combine(s, plan, answers, at)
}

// TestModelsTakeTheirTime has a cascade of models that need 1, 2 and 6 ms.
func TestModelsTakeTheirTime(t *testing.T) {
	table := three()
	app := &serving.App{Name: "lab", InputType: serving.Doubles, SLO: serving.Duration(budget), Models: table.names(), Policy: serving.PolicySpec{Kind: serving.PolicyCascade, Models: table.byTime()}}
	r, err := newReplayer(app, newTestStream(t, table, 1, samples, false), 1)
	if err != nil {
		t.Fatal(err)
	}
	var at []time.Duration
	r.policy = watched{r.policy, &at}
	hard := slices.Index(r.stream.order, 0) // the query that nobody is sure of
	r.policy.Select(nil, &r.query, r.candidates, &r.plan)
	if _, asked := r.round(hard).run(); asked != 3 {
		t.Errorf("%d were asked", asked)
	}
	ms := time.Millisecond
	if want := []time.Duration{0, 1 * ms, 1 * ms, 3 * ms, 3 * ms, 9 * ms}; !slices.Equal(at, want) {
		t.Errorf("it was asked to combine at %v, not at %v", at, want)
	}
}

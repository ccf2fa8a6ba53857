package selection

import (
	"slices"
	"strings"
	"testing"
	"time"

	"topsail/serving"
)

var a, b = serving.ModelID{Model: "a", Version: "1"}, serving.ModelID{Model: "b", Version: "1"}

func TestNewKnowsEveryPolicyThatAnAppMayHave(t *testing.T) {
	for _, kind := range []string{"", "single"} {
		app := serving.App{Name: "app", InputType: serving.Doubles, SLO: time.Second, Policy: serving.PolicySpec{Kind: kind}}
		if err := app.Check(); err != nil {
			t.Fatal(err)
		}
		if s, err := New(app.Policy); err != nil || s == nil {
			t.Errorf("policy %q: %v", kind, err)
		}
	}
	if s, err := New(serving.PolicySpec{Kind: "oracle"}); s != nil || err == nil || !strings.Contains(err.Error(), `"oracle"`) {
		t.Errorf("an unknown policy: %v, %v", s, err)
	}
}

func TestSingleAsksTheFirst(t *testing.T) {
	for _, candidates := range [][]serving.ModelID{{a}, {b}, {a, b}, {b, a}} {
		if got := (Single{}).Select(&serving.Query{}, candidates, time.Second).Models(); !slices.Equal(got, candidates[:1]) {
			t.Errorf("of %v it asks %v", candidates, got)
		}
	}
}

func TestSingleAnswersWhatTheModelSays(t *testing.T) {
	d := Single{}.Select(&serving.Query{}, []serving.ModelID{a, b}, time.Second)
	out, failure := &serving.Output{}, &serving.Failure{Cause: serving.ModelError}
	for _, test := range []struct {
		answer  Answer
		want    Verdict
		certain bool
	}{
		{Answer{}, Verdict{Model: a}, false},
		{Answer{Output: out}, Verdict{Model: a, Output: out}, true},
		{Answer{Failure: failure}, Verdict{Model: a, Failure: failure}, true},
	} {
		if got, certain := d.Combine([]Answer{test.answer}); got != test.want || certain != test.certain {
			t.Errorf("%+v: got %+v, certain %v", test.answer, got, certain)
		}
	}
}

func TestSingleWithoutACandidateIsCertainAtOnce(t *testing.T) {
	d := Single{}.Select(&serving.Query{}, nil, time.Second)
	if len(d.Models()) != 0 {
		t.Errorf("it asks %v", d.Models())
	}
	v, certain := d.Combine(nil)
	if !certain || v.Output != nil || v.Failure == nil || v.Failure.Cause != serving.NoReplica {
		t.Errorf("got %+v, certain %v", v, certain)
	}
}

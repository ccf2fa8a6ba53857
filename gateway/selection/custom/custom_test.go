package custom

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/topsail-serving/topsail/gateway/selection"
	"github.com/topsail-serving/topsail/gateway/selection/conformance"
	"github.com/topsail-serving/topsail/gateway/selection/rollout"
	"github.com/topsail-serving/topsail/gateway/selection/speculative"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/test/require"
)

// model decides as a test says.
type model struct {
	say func(ctx context.Context, r *request) (string, error)

	mu   sync.Mutex // guards the following
	asks []request
}

func (m *model) Ask(ctx context.Context, name string, text []byte) ([]byte, error) {
	if name != "decider" {
		return nil, fmt.Errorf("model %q is asked", name)
	}
	var r request
	if err := json.Unmarshal(text, &r); err != nil {
		return nil, err
	}
	m.mu.Lock()
	m.asks = append(m.asks, r)
	m.mu.Unlock()
	said, err := m.say(ctx, &r)
	return []byte(said), err
}

// last is what it was asked last.
func (m *model) last() request {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.asks[len(m.asks)-1]
}

// saying says the same to everything.
func saying(text string) *model {
	return &model{say: func(context.Context, *request) (string, error) { return text, nil }}
}

// stuck never says anything.
func stuck() *model {
	return &model{say: func(ctx context.Context, _ *request) (string, error) {
		<-ctx.Done()
		return "", context.Cause(ctx)
	}}
}

const budget = 100 * time.Millisecond

func newPolicy(m *model, change func(spec *serving.PolicySpec)) *Policy {
	spec := serving.PolicySpec{Kind: serving.PolicyCustom, Model: "decider"}
	if change != nil {
		change(&spec)
	}
	links := []string{"a", "b", "c"}
	return New("app", spec, speculative.NewFirstAcceptable(serving.PolicySpec{}, links), m)
}

func id(model string) serving.ModelID { return serving.ModelID{Model: model, Version: "1"} }

func candidates(models ...string) (list []selection.Candidate) {
	for _, name := range models {
		list = append(list, selection.Candidate{ModelID: id(name), Ready: true, Cost: 2, Median: time.Millisecond, P95: 3 * time.Millisecond})
	}
	return list
}

func query() *selection.Query {
	return &selection.Query{User: "ann", Context: "night", Input: conformance.Doubles(1, 2.5), Budget: budget, Now: time.Now(), Rand: rand.New(rand.NewPCG(1, 2))}
}

// asked are the models of a plan, in order.
func asked(plan *selection.Plan) (models string) {
	for _, a := range plan.Asks {
		models += a.ID.Model
	}
	return models
}

func output(t testing.TB, x float64) *serving.Output {
	t.Helper()
	out, err := serving.NewOutput(serving.Number(x))
	require.NoError(t, err)
	return out
}

// decides says that the model decides what comes of so many models.
func decides(models int) *progress { return &progress{open: models, known: make([]known, models)} }

// The model is told all that a policy may look at.
func TestWhatTheModelIsTold(t *testing.T) {
	m := saying(`{"ask":["b","a"]}`)
	p := newPolicy(m, nil)
	s := p.New([]serving.ModelID{id("a"), id("b")})
	s.Blob = json.RawMessage(`{"n":1}`)
	var plan selection.Plan
	p.Select(s, query(), candidates("a", "b"), &plan)
	r := m.last()
	if r.Op != "select" || r.App != "app" || string(r.State) != `{"n":1}` || r.User != "ann" || r.Context != "night" || string(r.Input) != "[1.0,2.5]" || r.Budget != 100_000 {
		t.Errorf("told %+v", r)
	}
	if want := (candidate{"b", "1", true, 2, 1000, 3000}); len(r.Candidates) != 2 || r.Candidates[1] != want {
		t.Errorf("told of %+v", r.Candidates)
	}
	if asked(&plan) != "ba" || plan.Asks[0].Candidate != 1 || plan.Asks[0].Probability != 1 {
		t.Errorf("planned %+v", plan.Asks)
	}

	m.say = func(context.Context, *request) (string, error) { return `{"output":{"x":7},"confidence":2}`, nil }
	answers := []selection.Answer{{Output: output(t, 5)}, {Failure: &serving.Failure{Cause: serving.ModelError, Message: "no"}}}
	d := p.Combine(s, &plan, answers, selection.Moment{Elapsed: time.Millisecond, Budget: budget})
	if !d.Done || string(d.Output.JSON) != `{"x":7}` || d.Confidence != 1 || d.Ended != selection.EndedAll {
		t.Errorf("decided %+v", d)
	}
	r = m.last()
	if r.Op != "combine" || len(r.Answers) != 2 || r.Answers[0].Model != "b" || string(r.Answers[0].Output) != "5.0" || r.Answers[1].Failure == "" {
		t.Errorf("told %+v", r)
	}

	named, err := serving.NewOutputs([]serving.Value{{Name: "y", DType: serving.Bool, Data: []byte{1}}, {Name: "z", DType: serving.Bool, Data: []byte{0}}})
	require.NoError(t, err)
	named.Qualify([]serving.Value{{Name: "q", DType: serving.Bool, Data: []byte{1}}})
	p.Combine(s, &plan, []selection.Answer{{Output: named}, answers[1]}, selection.Moment{Elapsed: time.Millisecond, Budget: budget})
	if got := m.last().Answers[0]; string(got.Outputs) != `{"y":true,"z":false}` || string(got.Qualifiers) != `{"q":true}` || string(got.Output) != "true" {
		t.Errorf("of named outputs it is told %+v", got)
	}

	m.say = func(context.Context, *request) (string, error) { return `{"state":[1,2]}`, nil }
	f := &selection.Feedback{User: "ann", Input: conformance.Doubles(1), Label: output(t, 5), Loss: 0.5, Outcomes: []selection.Outcome{
		{ModelID: id("a"), Output: output(t, 5), Judged: true}, {ModelID: id("b")},
	}}
	next := p.Train(s, f)
	if string(next.Blob) != "[1,2]" || string(s.Blob) != `{"n":1}` {
		t.Errorf("learned %s, and had %s", next.Blob, s.Blob)
	}
	r = m.last()
	if r.Op != "train" || string(r.Feedback.Label) != "5.0" || r.Feedback.Loss != 0.5 || *r.Feedback.Answers[0].Loss != 0 || r.Feedback.Answers[1].Loss != nil {
		t.Errorf("told %+v", r.Feedback)
	}
}

// The fallback selects in place of a model that does not say what can be done.
func TestWhenTheFallbackSelects(t *testing.T) {
	tests := map[string]struct {
		says string
		want string
	}{
		"two of three":            {`{"ask":["c","a"]}`, "ca"},
		"a version":               {`{"ask":["c:1"]}`, "c"},
		"nobody":                  {`{"ask":[]}`, "abc"},
		"nothing":                 {`{}`, "abc"},
		"a stranger":              {`{"ask":["a","x"]}`, "abc"},
		"another version":         {`{"ask":["a:2"]}`, "abc"},
		"one twice":               {`{"ask":["a","a:1"]}`, "abc"},
		"no JSON":                 {`a`, "abc"},
		"too much":                {`{"ask":["a"],"x":"` + strings.Repeat("x", maxReply) + `"}`, "abc"},
		"another rule":            {`{"ask":["a"],"combine":"mine"}`, "abc"},
		"two, as fallbacks do":    {`{"ask":["c","b"],"combine":"fallback"}`, "bc"},
		"whom the fallback hates": {`{"ask":["d"],"combine":"fallback"}`, "abc"},
	}
	for name, test := range tests {
		var plan selection.Plan
		newPolicy(saying(test.says), nil).Select(nil, query(), candidates("a", "b", "c", "d"), &plan)
		if asked(&plan) != test.want {
			t.Errorf("%s: %s is asked, want %s", name, asked(&plan), test.want)
		}
		for _, ask := range plan.Asks {
			if got := candidates("a", "b", "c", "d")[ask.Candidate].ModelID; got != ask.ID {
				t.Errorf("%s: %v is at the place of %v", name, ask.ID, got)
			}
		}
	}
}

func TestOptionsOfTheSelection(t *testing.T) {
	m := saying(`{"ask":["c","a"]}`)
	var plan selection.Plan
	newPolicy(m, func(spec *serving.PolicySpec) { spec.Most = 1 }).Select(nil, query(), candidates("a", "b", "c"), &plan)
	if asked(&plan) != "c" {
		t.Errorf("%s is asked, want the first", asked(&plan))
	}
	plan.Reset()
	newPolicy(m, func(spec *serving.PolicySpec) { spec.Models = []string{"a:1", "b"} }).Select(nil, query(), candidates("a", "b", "c"), &plan)
	if asked(&plan) != "abc" || len(m.last().Candidates) != 2 {
		t.Errorf("%s is asked, and %d were offered: c may not be", asked(&plan), len(m.last().Candidates))
	}
}

// However slow the model is, it has its time and no more.
func TestTheModelHasItsTime(t *testing.T) {
	tests := map[string]struct {
		within time.Duration
		want   time.Duration
	}{
		"a fifth":       {0, 20 * time.Millisecond},
		"what is named": {7 * time.Millisecond, 7 * time.Millisecond},
		"half, at most": {time.Second, 50 * time.Millisecond},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPolicy(stuck(), func(spec *serving.PolicySpec) { spec.WithinMicros = test.within.Microseconds() })
				var plan selection.Plan
				start := time.Now()
				p.Select(nil, query(), candidates("a", "b"), &plan)
				if took := time.Since(start); took != test.want || asked(&plan) != "ab" {
					t.Errorf("selecting took %v of %v, and %s is asked", took, test.want, asked(&plan))
				}
				plan.Own = decides(2)
				answers := []selection.Answer{{Output: output(t, 1)}, {Output: output(t, 2)}}
				start = time.Now()
				d := p.Combine(nil, &plan, answers, selection.Moment{Budget: budget})
				if took := time.Since(start); took != test.want || !d.Done || d.Output != answers[0].Output || d.Ended != selection.EndedTime {
					t.Errorf("combining took %v of %v: %+v", took, test.want, d)
				}
			})
		})
	}
	synctest.Test(t, func(t *testing.T) {
		p := newPolicy(stuck(), nil)
		s, start := p.New(nil), time.Now()
		if next := p.Train(s, &selection.Feedback{}); next != nil || time.Since(start) != trainWithin {
			t.Errorf("training took %v: %+v", time.Since(start), next)
		}
		start = time.Now()
		if next := p.Train(s, &selection.Feedback{}); next != nil || time.Since(start) != 0 {
			t.Errorf("training again took %v: the model is to be left alone", time.Since(start))
		}
		p.asker = saying(`{"state":1}`)
		time.Sleep(restAfter)
		if next := p.Train(s, &selection.Feedback{}); next == nil {
			t.Error("the model is left alone forever")
		}
	})
}

// The model combines when all have come, or when there is just time for its word.
func TestWhenTheModelCombines(t *testing.T) {
	m := saying(`{"model":"b"}`)
	p := newPolicy(m, nil)
	var plan selection.Plan
	for i, c := range candidates("a", "b") {
		plan.Add(i, &c, 1, 0)
	}
	plan.Own = decides(2)
	partly := []selection.Answer{{}, {Output: output(t, 2)}}
	if d := p.Combine(nil, &plan, partly, selection.Moment{Elapsed: 10 * time.Millisecond, Budget: budget}); d.Done || d.Again != 80*time.Millisecond || d.Open != 2 || m.asks != nil {
		t.Errorf("while one is awaited: %+v", d)
	}
	d := p.Combine(nil, &plan, partly, selection.Moment{Elapsed: 80 * time.Millisecond, Budget: budget})
	if !d.Done || d.Output != partly[1].Output || d.Model != id("b") || d.Ended != selection.EndedTime || len(m.asks) != 1 {
		t.Errorf("with a fifth left: %+v", d)
	}
	d = p.Combine(nil, &plan, partly, selection.Moment{Elapsed: budget, Budget: budget, Final: true})
	if !d.Done || d.Output != partly[1].Output || d.Ended != selection.EndedDeadline || len(m.asks) != 1 {
		t.Errorf("at the end: %+v", d)
	}
	for _, says := range []string{`{}`, `{"output":null}`, `{"model":"a"}`, `{"model":"x"}`, `{"output":}`, ``} {
		d := newPolicy(saying(says), nil).Combine(nil, &plan, []selection.Answer{{Failure: &serving.Failure{}}, partly[1]}, selection.Moment{Budget: budget})
		if !d.Done || d.Output != partly[1].Output {
			t.Errorf("when it says %q: %+v", says, d)
		}
	}
	failures := []selection.Answer{{Failure: &serving.Failure{Cause: serving.ModelError}}, {Failure: &serving.Failure{Cause: serving.RefusedFull}}}
	if d := p.Combine(nil, &plan, failures, selection.Moment{Budget: budget}); !d.Done || d.Output != nil || d.Failure == nil {
		t.Errorf("when all have failed: %+v", d)
	}
}

// moment is so long after the selection.
func moment(elapsed time.Duration) selection.Moment {
	return selection.Moment{Elapsed: elapsed, Budget: budget}
}

// watching is a query whose model wants to hear of each answer, and asks b first of a, b and c.
func watching(t *testing.T, m *model) (*Policy, *selection.Plan) {
	t.Helper()
	said := m.say
	m.say = func(context.Context, *request) (string, error) {
		return `{"ask":["b","a","c"],"first":1,"answers":true}`, nil
	}
	p := newPolicy(m, nil)
	var plan selection.Plan
	p.Select(nil, query(), candidates("a", "b", "c"), &plan)
	if asked(&plan) != "bac" || plan.Now != 1 {
		t.Fatalf("planned %+v", plan)
	}
	m.say = said
	return p, &plan
}

// The model is told of each answer as it comes, and of all that it may look at. It finishes, waits, or asks the next.
func TestTheModelIsToldOfAnswers(t *testing.T) {
	m := saying(`{"next":1}`)
	p, plan := watching(t, m)
	answers := make([]selection.Answer, 3)
	if d := p.Combine(nil, plan, answers, moment(0)); d.Done || d.Open != 1 || d.Again != 80*time.Millisecond || len(m.asks) != 1 {
		t.Errorf("before there is an answer: %+v", d)
	}

	answers[0].Output = output(t, 5)
	sure := 0.4
	answers[0].Output.Confidence = &sure
	if d := p.Combine(nil, plan, answers, moment(2*time.Millisecond)); d.Done || d.Open != 2 {
		t.Errorf("it asks the next: %+v", d)
	}
	r := m.last()
	if r.Op != "answer" || r.User != "ann" || r.Context != "night" || string(r.Input) != "[1.0,2.5]" || *r.Elapsed != 2000 || *r.Left != 98_000 {
		t.Errorf("told %+v", r)
	}
	if a := r.Answers; len(a) != 1 || a[0].Model != "b" || !a[0].New || *a[0].After != 2000 || *a[0].Confidence != sure || len(r.Awaited) != 0 || len(r.Next) != 2 || r.Next[0].Model != "a" {
		t.Errorf("told %+v", r)
	}

	if d := p.Combine(nil, plan, answers, moment(3*time.Millisecond)); d.Done || d.Open != 2 || len(m.asks) != 2 {
		t.Errorf("nothing has come since: %+v", d)
	}
	m.say = saying(`{"wait_micros":5000}`).say
	answers[2].Failure = &serving.Failure{Cause: serving.ModelError, Message: "no"} // it cannot be asked
	if d := p.Combine(nil, plan, answers, moment(4*time.Millisecond)); d.Done || d.Open != 2 || d.Again != 9*time.Millisecond {
		t.Errorf("it waits: %+v", d)
	}
	if a := m.last().Answers; len(a) != 2 || a[0].New || !a[1].New || a[1].Failure == "" || len(m.last().Awaited) != 1 || len(m.last().Next) != 0 {
		t.Errorf("told %+v", m.last())
	}
	m.say = saying(`{"model":"b","confidence":0.9}`).say
	d := p.Combine(nil, plan, answers, moment(9*time.Millisecond))
	if !d.Done || d.Model != id("b") || d.Confidence != 0.9 || d.Ended != selection.EndedAcceptable || m.last().Op != "answer" {
		t.Errorf("asked again after its wait, it finishes: %+v", d)
	}
}

// Once none is awaited the model combines: it has not asked for more, or there is no more.
func TestTheModelCombinesAfterTheLastAnswer(t *testing.T) {
	m := saying(`{}`)
	p, plan := watching(t, m)
	answers := []selection.Answer{{Output: output(t, 5)}, {}, {}}
	m.say = func(_ context.Context, r *request) (string, error) {
		if r.Op == "answer" {
			return `{}`, nil
		}
		return `{"output":6}`, nil
	}
	if d := p.Combine(nil, plan, answers, moment(time.Millisecond)); !d.Done || string(d.Output.JSON) != "6" || d.Ended != selection.EndedAll || len(m.asks) != 3 {
		t.Errorf("it wants no more: %+v", d)
	}
	p, plan = watching(t, m)
	answers[1], answers[2] = answers[0], answers[0]
	if d := p.Combine(nil, plan, answers, moment(time.Millisecond)); !d.Done || string(d.Output.JSON) != "6" || m.last().Op != "combine" {
		t.Errorf("there is no more: %+v", d)
	}
}

// A model that is silent about an answer, or names another's, is not told of the next: all are asked, and it combines.
func TestAModelThatFailsOnAnAnswer(t *testing.T) {
	for name, m := range map[string]*model{"silent": stuck(), "babbling": saying(`{"model":"a"}`)} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p, plan := watching(t, m)
				answers := []selection.Answer{{Output: output(t, 5)}, {}, {}}
				if d := p.Combine(nil, plan, answers, moment(time.Millisecond)); d.Done || d.Open != 3 || d.Again != 80*time.Millisecond {
					t.Errorf("decided %+v", d)
				}
				asked := len(m.asks)
				answers[2].Output = output(t, 6)
				if d := p.Combine(nil, plan, answers, moment(2*time.Millisecond)); d.Done || len(m.asks) != asked {
					t.Errorf("decided %+v, and it was told", d)
				}
				start := time.Now()
				if d := p.Combine(nil, plan, answers, moment(80*time.Millisecond)); !d.Done || d.Output == nil || time.Since(start) > 20*time.Millisecond {
					t.Errorf("decided %+v after %v", d, time.Since(start))
				}
			})
		})
	}
}

// A fallback that draws by chance, and does not want those that have come, still gives
// what there is.
func TestAnyFallbackCanCombine(t *testing.T) {
	fallback := rollout.NewShadow(serving.PolicySpec{Model: "a", Share: 0.5}, []string{"a", "b", "c"})
	p := New("app", serving.PolicySpec{Kind: serving.PolicyCustom, Model: "decider"}, fallback, saying(`nonsense`))
	var plan selection.Plan
	for i, c := range candidates("b", "c") {
		plan.Add(i, &c, 1, 0)
	}
	plan.Own = decides(2)
	answers := []selection.Answer{{}, {Output: output(t, 3)}}
	if d := p.Combine(nil, &plan, answers, selection.Moment{Budget: budget, Elapsed: budget, Final: true}); !d.Done || d.Output != answers[1].Output {
		t.Errorf("decided %+v", d)
	}
}

func TestWhatIsNotLearned(t *testing.T) {
	for _, says := range []string{``, `{}`, `[]`, `{"state":`, `{"state":"` + strings.Repeat("x", maxState) + `"}`} {
		p := newPolicy(saying(says), nil)
		s := p.New([]serving.ModelID{id("a")})
		if next := p.Train(s, &selection.Feedback{}); next != nil {
			t.Errorf("%.20q was learned", says)
		}
	}
	m := &model{say: func(context.Context, *request) (string, error) { return `{"state":1}`, errors.New("broken") }}
	p := newPolicy(m, nil)
	if p.Train(p.New(nil), &selection.Feedback{}) != nil {
		t.Error("something was learned from a failure")
	}
}

// TestConformance runs the suite on a model that asks all who are ready and answers with
// the first, and on one that learns, and else never says anything that makes sense.
func TestConformance(t *testing.T) {
	sensible := func(_ context.Context, r *request) (string, error) {
		switch r.Op {
		case "select":
			var names []string
			ready := slices.ContainsFunc(r.Candidates, func(c candidate) bool { return c.Ready })
			for _, c := range r.Candidates {
				if c.Ready == ready {
					names = append(names, c.Model+":"+c.Version)
				}
			}
			text, err := json.Marshal(selected{Ask: names})
			return string(text), err
		case "combine":
			for _, a := range r.Answers {
				if a.Output != nil {
					return `{"model":"` + a.Model + `"}`, nil
				}
			}
			return `{}`, nil
		}
		return fmt.Sprintf(`{"state":{"loss":%v}}`, r.Feedback.Loss), nil
	}
	for name, say := range map[string]func(context.Context, *request) (string, error){
		"sensible": sensible,
		"silly": func(ctx context.Context, r *request) (string, error) {
			if r.Op == "train" {
				return sensible(ctx, r)
			}
			return "what?", nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			conformance.Run(t, conformance.Case{
				New: func(links []string) selection.Policy {
					fallback := rollout.NewSingle(serving.PolicySpec{}, slices.Sorted(slices.Values(links))) // as the model does: the first that answers
					return New("app", serving.PolicySpec{Kind: serving.PolicyCustom, Model: "decider"}, fallback, &model{say: say})
				},
				Output: func(x float64) *serving.Output {
					out, err := serving.NewOutput(serving.Number(x))
					if err != nil {
						panic(err)
					}
					return out
				},
				Allocs: 1e6, // it asks a container
			})
		})
	}
}

// FuzzReplies holds that whatever the model says, the policy plans and decides as it may.
func FuzzReplies(f *testing.F) {
	for _, text := range []string{
		`{"ask":["a","c"]}`, `{"ask":["b"],"combine":"fallback"}`, `{"ask":["a:1","a"]}`, `{"model":"a"}`, `{"model":"a:1","confidence":-1}`,
		`{"output":[1,{"x":null}],"confidence":1e300}`, `{"state":{"a":1}}`, `{"state":null}`, `null`, `{"ask":null}`, `{"output":"\ud800"}`,
		`{"ask":["a","b"],"first":1,"answers":true,"next":1,"wait_micros":9223372036854775807}`, `{"ask":["a"],"first":-1,"next":-9,"wait_micros":-1}`,
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p := newPolicy(saying(text), func(spec *serving.PolicySpec) { spec.Most = 2 })
		offered := candidates("a", "b", "c")
		var plan selection.Plan
		p.Select(nil, query(), offered, &plan)
		seen := map[int]bool{}
		for _, ask := range plan.Asks {
			if seen[ask.Candidate] || offered[ask.Candidate].ModelID != ask.ID {
				t.Fatalf("planned %+v", plan.Asks)
			}
			seen[ask.Candidate] = true
		}
		if len(plan.Asks) == 0 || plan.Own != nil && len(plan.Asks) > 2 {
			t.Fatalf("planned %+v", plan.Asks)
		}
		plan.Own = decides(len(plan.Asks))
		plan.Own.(*progress).watches = true
		answers := make([]selection.Answer, len(plan.Asks))
		if d := p.Combine(nil, &plan, answers, selection.Moment{Budget: budget}); d.Done || d.Open > len(answers) {
			t.Fatalf("before any answer, decided %+v", d)
		}
		answers[len(answers)-1].Output = output(t, 1)
		if d := p.Combine(nil, &plan, answers, selection.Moment{Budget: budget}); d.Done != (d.Output != nil) || d.Again > budget || d.Open > len(answers) {
			t.Fatalf("of the first answer, decided %+v", d)
		}
		for i := range answers[:len(answers)-1] {
			answers[i].Output = output(t, 2)
		}
		d := p.Combine(nil, &plan, answers, selection.Moment{Budget: budget})
		if !d.Done || d.Output == nil || !json.Valid(d.Output.JSON) || !(d.Confidence >= 0 && d.Confidence <= 1) {
			t.Fatalf("decided %+v", d)
		}
		next := p.Train(p.New([]serving.ModelID{id("a")}), &selection.Feedback{})
		if next == nil {
			return
		}
		stored, err := next.Encode()
		if err != nil {
			t.Fatalf("learned what cannot be stored: %v", err)
		}
		if _, err := selection.Decode(stored, serving.PolicyCustom); err != nil {
			t.Fatalf("learned what cannot be read: %v", err)
		}
	})
}

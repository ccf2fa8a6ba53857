package predict

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/gateway/selection"
	"github.com/topsail-serving/topsail/rpc"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/test/require"
)

func TestSeveralModelsAreAskedAtOnce(t *testing.T) {
	bubble(t, func(t *rig) {
		f := t.replica("r", by(map[string]behaviour{
			"a": fails(rpc.StatusModelError, "no"), "b": says(2, 20*time.Millisecond), "c": silent,
		}), a1, b1, c1)
		t.decides(&scripted{}, a1, b1, c1)
		q := newQuery(7)
		q.Explain = true
		p, took := t.predict(q)
		t.wantOutput(p, 2)
		if took != slo-margin || p.Cached || p.Model != (serving.ModelID{}) {
			t.Errorf("it took %v: %+v", took, p)
		}
		if named(p.Missing) != "ac" || p.Shed != nil {
			t.Errorf("missing %v, shed %v", p.Missing, p.Shed)
		}
		if n := len(f.questions()); n != 3 {
			t.Errorf("%d questions", n)
		}
		e := p.Explained
		if e.Policy != serving.PolicyVote || e.Ended != string(selection.EndedDeadline) || e.Elapsed != took || e.Budget != slo-margin || len(e.Models) != 3 {
			t.Fatalf("explained as %+v", e)
		}
		for i, want := range []serving.ExplainedModel{
			{ModelID: a1, Asked: true, Failure: (&serving.Failure{Cause: serving.ModelError, Message: "no"}).Explain(), Probability: 0.5, Weight: 1},
			{ModelID: b1, Asked: true, Output: []byte("2.0"), Took: 20 * time.Millisecond, Probability: 0.5, Weight: 2},
			{ModelID: c1, Asked: true, Probability: 0.5, Weight: 3},
		} {
			got := e.Models[i]
			got.Took = max(got.Took, 0)
			if want.Failure != "" {
				want.Took = got.Took // at once
			}
			if got.ModelID != want.ModelID || got.Asked != want.Asked || string(got.Output) != string(want.Output) || got.Failure != want.Failure ||
				got.Took != want.Took || got.Weight != want.Weight || got.Probability != want.Probability || got.Cached || got.Shed || got.Shadow {
				t.Errorf("model %d: %+v, want %+v", i, got, want)
			}
		}
		for _, event := range []struct {
			model, event string
			want         float64
		}{{"a", "asked", 1}, {"a", "answered", 0}, {"b", "answered", 1}, {"b", "agreed", 1}, {"c", "asked", 1}, {"c", "answered", 0}} {
			if n := t.member(event.model, event.event); n != event.want {
				t.Errorf("%s %s %v times, want %v", event.model, event.event, n, event.want)
			}
		}
	})
}

// member reads how often an event of a model in the app's answers was counted.
func (r *rig) member(model, event string) float64 {
	return max(0, r.metric(`topsail_selection_models_total{app="app",event="`+event+`",model="`+model+`",version="1"}`)) // they begin when it is asked
}

// An answer is from the cache when all that it is made of was.
func TestCachedAnswersOfSeveral(t *testing.T) {
	bubble(t, func(t *rig) {
		t.replica("r", by(map[string]behaviour{"a": says(1, 0), "b": says(2, 0)}), a1, b1)
		t.decides(&scripted{}, a1)
		t.predict(newQuery(7))
		t.decides(&scripted{}, a1, b1)
		if p, _ := t.predict(newQuery(7)); p.Cached {
			t.Error("one of two came from the cache, and the answer is said to")
		}
		q := newQuery(7)
		q.Explain = true
		if p, _ := t.predict(q); !p.Cached || !p.Explained.Models[0].Cached || !p.Explained.Models[1].Cached {
			t.Errorf("both came from the cache: %+v", p)
		}
		t.decides(&scripted{combine: func(answers []selection.Answer, at selection.Moment) selection.Decision {
			d := all(answers, at)
			d.Output, d.Model = answers[0].Output, a1
			return d
		}}, a1, b1)
		q = newQuery(8)
		t.p.cache.Put((*t.p.apps.Load())["app"].find(a1).keyer.Key(q.Input, ""), output(t, 5))
		if p, _ := t.predict(q); !p.Cached || string(p.Output) != "5.0" {
			t.Errorf("the one that answers came from the cache: %+v", p)
		}
	})
}

func output(t testing.TB, x float64) *serving.Output {
	t.Helper()
	out, err := serving.NewOutput(serving.Number(x))
	require.NoError(t, err)
	return out
}

// A reserve is asked when the policy opens it, and counts as missing only then.
func TestTheReserve(t *testing.T) {
	oneByOne := func() *scripted {
		return &scripted{
			arrange: func(_ []selection.Candidate, plan *selection.Plan) { plan.Now = 1 },
			combine: func(answers []selection.Answer, at selection.Moment) selection.Decision {
				for i := range answers {
					if !answers[i].Come() && !at.Final {
						return selection.Decision{Open: i + 1}
					}
					if answers[i].Output != nil {
						return selection.Decision{Verdict: selection.Verdict{Output: answers[i].Output, Ended: selection.EndedAll}, Done: true}
					}
				}
				return all(answers, at)
			},
		}
	}
	bubble(t, func(t *rig) {
		f := t.replica("r", by(map[string]behaviour{
			"a": fails(rpc.StatusModelError, "no"), "b": says(2, time.Millisecond), "c": silent,
		}), a1, b1, c1)
		t.decides(oneByOne(), a1, b1, c1)
		p, took := t.predict(newQuery(7))
		t.wantOutput(p, 2)
		if took != time.Millisecond || named(p.Missing) != "a" || len(f.questions()) != 2 {
			t.Errorf("it took %v, %d questions, missing %v", took, len(f.questions()), p.Missing)
		}
		if p, took := t.predict(newQuery(7)); took != 0 || string(p.Output) != "2.0" || len(f.questions()) != 3 { // a's failure is not cached
			t.Errorf("with the reserve in the cache it took %v and %d questions: %+v", took, len(f.questions())-2, p)
		}
	})
}

// A policy is called again when it wanted to be, and not all the time when it names a
// moment that has passed.
func TestAgain(t *testing.T) {
	bubble(t, func(t *rig) {
		t.replica("r", silent, a1)
		s := &scripted{combine: func(answers []selection.Answer, at selection.Moment) selection.Decision {
			d := all(answers, at)
			d.Again = 30 * time.Millisecond
			return d
		}}
		t.decides(s, a1)
		p, took := t.predict(newQuery(7))
		t.wantDefault(p, serving.MissedSLO)
		if took != slo-margin {
			t.Errorf("it took %v", took)
		}
		want := []selection.Moment{
			{Budget: slo - margin},
			{Elapsed: 30 * time.Millisecond, Budget: slo - margin},
			{Elapsed: slo - margin, Budget: slo - margin, Final: true},
		}
		if got := s.moments(); !slices.Equal(got, want) {
			t.Errorf("called at %+v, want %+v", got, want)
		}
	})
}

// A policy that is never done ends at the deadline.
func TestAPolicyThatIsNeverDone(t *testing.T) {
	bubble(t, func(t *rig) {
		t.replica("r", says(1, time.Millisecond), a1) // after the first call of the policy
		s := &scripted{combine: func(answers []selection.Answer, _ selection.Moment) selection.Decision {
			return firstOutput(answers)
		}}
		t.decides(s, a1)
		p, took := t.predict(newQuery(7))
		t.wantOutput(p, 1)
		if took != slo-margin || len(s.moments()) != 3 {
			t.Errorf("it took %v and %d calls", took, len(s.moments()))
		}
	})
}

func TestInputLengthsThatDiffer(t *testing.T) {
	bubble(t, func(t *rig) {
		f := t.replica("r", by(map[string]behaviour{"a": says(1, 0), "b": says(2, 0)}), a1, b1)
		t.decides(&scripted{}, a1, b1)
		versions := (*t.p.apps.Load())["app"]
		versions.find(a1).inputLength = 3
		p, _ := t.predict(newQuery(7))
		t.wantOutput(p, 2)
		if named(p.Missing) != "a" || len(f.questions()) != 1 {
			t.Errorf("missing %v, %d questions", p.Missing, len(f.questions()))
		}
		versions.find(b1).inputLength = 4
		_, err := one(context.Background(), t.p, newQuery(8))
		refusal, ok := errors.AsType[*serving.QueryError](err)
		if !ok || refusal.Cause != "Input has length 1, and model a takes 3" {
			t.Errorf("fits nobody: %v", err)
		}
		_, err = t.p.Predict(context.Background(), *newQuery(1, 2, 3), *newQuery(9))
		if refusal, ok := errors.AsType[*serving.QueryError](err); !ok || refusal.Cause != "input_batch[1]: Input has length 1, and model a takes 3" {
			t.Errorf("in a batch: %v", err)
		}
		if p, _ := t.predict(newQuery(1, 2, 3)); string(p.Output) != "1.0" || named(p.Missing) != "b" {
			t.Errorf("fits a: %+v", p)
		}
	})
}

// A second replica is asked after the time that the plan names, within the budget of
// the policy.
func TestAPolicyHedgesEarly(t *testing.T) {
	bubble(t, func(t *rig) {
		behave := inTurn(silent, echoes(time.Millisecond))
		t.replica("x", behave, m1)
		t.replica("y", behave, m1)
		t.serves(func(a *serving.App) {
			a.Policy = serving.PolicySpec{Kind: serving.PolicyHedge, WithinMicros: 10_000, Share: 0.5}
		}, m1)
		p, took := t.predict(newQuery(7))
		t.wantOutput(p, 7)
		if took != 11*time.Millisecond {
			t.Errorf("it took %v, want 11 ms", took)
		}
		for _, st := range t.table.Replicas() {
			if st.Ejected {
				t.Errorf("%s is ejected for 10 ms of silence", st.Replica)
			}
		}
		app := (*t.p.apps.Load())["app"]
		if app.extra == t.p.dispatch.Extra {
			t.Error("the policy's share is not its budget")
		}
		for app.extra.Spend() {
		}
		t.serves(func(a *serving.App) {
			a.Policy = serving.PolicySpec{Kind: serving.PolicyHedge, WithinMicros: 10_000, Share: 0.5}
		}, m1)
		if (*t.p.apps.Load())["app"].extra.Spend() {
			t.Error("another catalog fills the budget")
		}
	})
}

// Of a pinned version that version is asked, and of a split one the serving version too.
func TestVersionsThatPoliciesName(t *testing.T) {
	a2, a3 := id("a", "2"), id("a", "3")
	bubble(t, func(t *rig) {
		f := t.replica("r", says(1, 0), a1, a2, a3, b1)
		t.links(func(a *serving.App) {
			a.Policy = serving.PolicySpec{Kind: serving.PolicyVote, Models: []string{"b", "a:2"}}
		}, a1, a2, a3, b1)
		t.predict(newQuery(1))
		if asked := versionsOf(f); asked != "a:2 b:1" {
			t.Errorf("asked %s", asked)
		}
		t.links(func(a *serving.App) {
			a.Policy = serving.PolicySpec{Kind: serving.PolicyVersions, Canary: "1", Share: 0.5}
		}, a1, a2, a3)
		app := (*t.p.apps.Load())["app"]
		candidates, versions := app.candidates(nil, nil)
		if len(candidates) != 2 || candidates[0].ModelID != a1 || candidates[1].ModelID != a3 || versions[0].ModelID != a1 || versions[1].ModelID != a3 {
			t.Errorf("candidates %+v", candidates)
		}
		if !candidates[0].Ready || candidates[0].Cost <= 0 {
			t.Errorf("candidate %+v", candidates[0])
		}
	})
}

// versionsOf are those that reached a replica, sorted.
func versionsOf(f *fake) string {
	var all []string
	for _, q := range f.questions() {
		all = append(all, q.version.String())
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

// Endings are counted.
func TestEndingsAreCounted(t *testing.T) {
	bubble(t, func(t *rig) {
		t.replica("r", says(1, 0), a1)
		t.decides(&scripted{combine: acceptable}, a1)
		t.predict(newQuery(7))
		if n := t.metric(`topsail_selection_endings_total{app="app",ending="acceptable"}`); n != 1 {
			t.Errorf("counted %v times", n)
		}
	})
}

// A query may name the models that the policy chooses from, and versions of them, whether they are current or not.
func TestCandidatesThatAQueryNames(t *testing.T) {
	bubble(t, func(t *rig) {
		a2 := id("a", "2")
		t.replica("r", by(map[string]behaviour{"a": says(1, 0), "b": says(2, 0), "c": says(3, 0)}), a1, b1, c1)
		t.replica("s", says(4, 0), a2)
		a := newApp("app", "a", "b", "c")
		a.Policy = serving.PolicySpec{Kind: serving.PolicyMean}
		models := newModel(a1, a2)
		models.Current = "1"
		t.set(newCatalog([]*serving.App{a}, models, newModel(b1), newModel(c1)))
		for _, c := range []struct {
			named []serving.ModelID
			want  string
		}{
			{nil, "2.0"}, {[]serving.ModelID{{Model: "a"}, {Model: "b"}}, "1.5"}, {[]serving.ModelID{{Model: "c"}}, "3.0"}, {[]serving.ModelID{a2}, "4.0"},
			{[]serving.ModelID{a2, {Model: "b"}}, "3.0"}, {[]serving.ModelID{a1}, "1.0"}, {[]serving.ModelID{a1, a1, {Model: "a"}}, "1.0"}, {[]serving.ModelID{}, "-1"},
		} {
			q := newQuery(7)
			q.Candidates, q.NoCache = c.named, true
			if p, _ := t.predict(q); string(p.Output) != c.want {
				t.Errorf("of %v: %s %s, want %s", c.named, p.Output, p.Explanation, c.want)
			}
		}
		for want, named := range map[string]serving.ModelID{
			"names d, and application app does not link that model": {Model: "d"}, "names a:3, and there is no such version": {Model: "a", Version: "3"},
		} {
			q := newQuery(7)
			q.Candidates = []serving.ModelID{named}
			if _, err := one(t.ctx, t.p, q); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v: %v, want %s", named, err, want)
			}
		}
	})
}

// What is put together from several models has the name that the app's signature gives its output.
func TestAnOutputOfSeveralHasTheNameOfTheSignature(t *testing.T) {
	bubble(t, func(t *rig) {
		t.replica("r", by(map[string]behaviour{"a": says(1, 0), "b": says(2, 0)}), a1, b1)
		a := newApp("app", "a", "b")
		a.Policy = serving.PolicySpec{Kind: serving.PolicyMean}
		a.Signature = &serving.Signature{Outputs: []serving.Tensor{{Name: "score", Type: serving.ElementType(serving.Float64)}}}
		t.set(newCatalog([]*serving.App{a}, newModel(a1), newModel(b1)))
		if p, _ := t.predict(newQuery(7)); string(p.Output) != "1.5" || string(p.Full.NamedJSON) != `{"score":1.5}` {
			t.Errorf("%s, %s %s", p.Output, p.Full.NamedJSON, p.Explanation)
		}
	})
}

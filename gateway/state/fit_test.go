package state

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strconv"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/topsail-serving/topsail/gateway/selection"
	"github.com/topsail-serving/topsail/gateway/selection/conformance"
	"github.com/topsail-serving/topsail/gateway/selection/kinds"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/test/require"
)

// drawModels are models of few names and versions, one version of each name unless
// several are wished.
func drawModels(t *rapid.T, label string, several bool) []serving.ModelID {
	list := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) serving.ModelID {
		return serving.ModelID{
			Model:   string(rune('a' + rapid.IntRange(0, 5).Draw(t, "model"))),
			Version: strconv.Itoa(rapid.IntRange(1, 3).Draw(t, "version")),
		}
	}), 0, 8).Draw(t, label)
	slices.SortFunc(list, serving.ModelID.Compare)
	return slices.CompactFunc(list, func(a, b serving.ModelID) bool { return a.Model == b.Model && (!several || a == b) })
}

func drawState(t *rapid.T, several bool) *selection.State {
	s := selection.NewState(kind, drawModels(t, "state", several))
	for i := range s.Models {
		s.Models[i].Count = float64(rapid.IntRange(0, 100).Draw(t, "count"))
	}
	return s
}

func encoded(t *rapid.T, s *selection.State) []byte {
	text, err := s.Encode()
	require.NoError(t, err)
	return text
}

func TestFit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, models := drawState(t, rapid.Bool().Draw(t, "damaged")), drawModels(t, "models", false)
		before := encoded(t, s)
		app := newApp("", rapid.Permutation(models).Draw(t, "order")...)
		got, err := app.fit(s, false, today)
		require.NoError(t, err)
		if !bytes.Equal(encoded(t, s), before) {
			t.Fatal("the state was changed")
		}
		if len(got.Models) != len(models) {
			t.Fatalf("%d entries for %d models", len(got.Models), len(models))
		}
		for i, id := range models {
			if got.Models[i].ModelID != id {
				t.Fatalf("entry %d is of %s, want %s", i, got.Models[i].ModelID, id)
			}
			at := s.Find(id.Model)
			switch {
			case at < 0:
			case s.Models[at].Version == id.Version && got.Models[i].Count != s.Models[at].Count:
				t.Fatalf("%s has changed", id)
			case s.Models[at].Version != id.Version && got.Models[i].Count != s.Models[at].Count/2:
				t.Fatalf("%s does not carry on what was learned", id)
			}
		}
		if again, _ := app.fit(got, false, today); again != got {
			t.Fatal("fitting a second time changes something")
		}
	})
}

func TestFitLeavesVersions(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, models := drawState(t, false), drawModels(t, "models", false)
		got, err := newApp("", models...).fit(s, true, today)
		require.NoError(t, err)
		for i, id := range models {
			if at := s.Find(id.Model); at >= 0 && got.Models[i].ModelID != s.Models[at].ModelID {
				t.Fatalf("%s was moved to %s", s.Models[at].ModelID, id)
			}
		}
	})
}

// today is when states are fitted, where that does not matter.
var today = time.Unix(1e9, 0)

func newVersions(models ...serving.ModelID) *App {
	return NewApp("digits", serving.PolicySpec{Kind: serving.PolicyVersions}, counting{serving.PolicyVersions}, defined("", models...))
}

func TestFitVersions(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, models := drawState(t, true), drawModels(t, "models", true)
		got, err := newVersions(models...).fit(s, false, today)
		require.NoError(t, err)
		for _, m := range s.Models {
			if at := got.FindVersion(m.ModelID); at < 0 || got.Models[at].Count != m.Count {
				t.Fatalf("%s has changed, or gone", m.ModelID)
			}
		}
		for _, id := range models {
			if got.FindVersion(id) < 0 {
				t.Fatalf("%s is missing", id)
			}
		}
		encoded(t, got) // in order
	})
}

func TestFitVersionsMakesRoom(t *testing.T) {
	var many []serving.ModelID
	for v := range selection.MaxModels {
		many = append(many, serving.ModelID{Model: "one", Version: "old-" + strconv.Itoa(v)})
	}
	full := selection.NewState(serving.PolicyVersions, many)
	got, err := newVersions(oneV1, oneV2, many[7]).fit(full, false, today)
	require.NoError(t, err)
	if len(got.Models) != 3 || got.FindVersion(oneV1) < 0 || got.FindVersion(many[7]) < 0 {
		t.Errorf("%d entries are left, want the three that are named", len(got.Models))
	}
	if _, err := got.Encode(); err != nil {
		t.Error(err)
	}
}

// What was learned of a model that is not linked any more is there again when the set comes back, whatever the kind is,
// for as long as records are kept.
func TestASetOfModelsThatComesBack(t *testing.T) {
	for _, kind := range []string{serving.PolicyExp3, serving.PolicyExp4, serving.PolicyUCB1, serving.PolicyEpsilonGreedy, serving.PolicyThompson, serving.PolicyLinUCB, serving.PolicyStacking, serving.PolicyLogistic} {
		t.Run(kind, func(t *testing.T) {
			spec := &serving.App{Name: "digits", InputType: serving.Doubles, Policy: serving.PolicySpec{Kind: kind, RecordSeconds: 60}, Models: []string{"one", "two", "three"}}
			policy, err := kinds.New(spec, nil)
			require.NoError(t, err)
			learner := policy.(selection.Learner)
			app := func(models ...serving.ModelID) *App {
				return NewApp("digits", spec.Policy, learner, defined("", models...))
			}
			all, fewer := app(oneV1, twoV1, threeV1), app(oneV1, threeV1)
			s := all.Fresh()
			for i := range 50 {
				s = learner.Train(s, judged(t, float64(i%2), oneV1, twoV1, threeV1))
			}
			want := learner.Explain(s)
			s = s.Clone()
			s.Models[s.Find("two")].Asked = 50

			without, err := fewer.fit(s, false, today)
			require.NoError(t, err)
			if len(without.Models) != 2 || len(without.Past) != 1 {
				t.Fatalf("without one: %+v", without)
			}
			text, err := without.Encode()
			require.NoError(t, err)
			stored, err := selection.Decode(text, s.Kind)
			require.NoError(t, err)
			back, err := all.fit(stored, false, today.Add(59*time.Second))
			require.NoError(t, err)
			for i, got := range learner.Explain(back) {
				if math.Abs(got.Worth-want[i].Worth) > 1e-6 || math.Abs(got.Share-want[i].Share) > 1e-6 {
					t.Errorf("%v: it stands at %+v, and stood at %+v", back.Models[i].ModelID, got, want[i])
				}
			}
			if len(back.Past) != 0 || back.Models[back.Find("two")].Asked != 50 {
				t.Errorf("back: %+v", back)
			}

			for i := range 20 { // the others go on
				without = learner.Train(without, judged(t, float64(i%2), oneV1, threeV1))
			}
			back, err = all.fit(without, false, today)
			require.NoError(t, err)
			if m := back.Models[back.Find("two")]; m.Asked != 50 {
				t.Errorf("back after others have learned: %+v", back)
			}
			late, err := all.fit(without, false, today.Add(62*time.Second))
			require.NoError(t, err)
			if m := late.Models[late.Find("two")]; m.Asked != 0 || len(late.Past) != 0 {
				t.Errorf("too late: %+v", late)
			}
			next, err := app(oneV1, serving.ModelID{Model: "two", Version: "2"}, threeV1).fit(without, false, today)
			require.NoError(t, err)
			if m := next.Models[next.Find("two")]; m.Version != "2" || len(next.Past) != 0 {
				t.Errorf("back as another version: %+v", next)
			}
		})
	}
}

// judged is feedback that says of each model what it lost: the first less than the last.
func judged(t *testing.T, label float64, models ...serving.ModelID) *selection.Feedback {
	out := func(x float64) *serving.Output {
		o, err := serving.NewOutput(serving.Number(x))
		require.NoError(t, err)
		return o
	}
	f := &selection.Feedback{User: "ann", Input: conformance.Doubles(1, label), Label: out(label), Loss: 0.5}
	for i, id := range models {
		f.Outcomes = append(f.Outcomes, selection.Outcome{ModelID: id, Output: out(label + float64(i)/4), Loss: float64(i) / 4, Judged: true, Probability: 0.5})
	}
	return f
}

// The past is bounded: the latest stay.
func TestThePastIsBounded(t *testing.T) {
	var many []serving.ModelID
	for i := range 2 * selection.MaxPast {
		many = append(many, serving.ModelID{Model: fmt.Sprintf("m%02d", i), Version: "1"})
	}
	s, err := newApp("", oneV1).fit(selection.NewState(kind, many), false, today)
	require.NoError(t, err)
	if len(s.Past) != selection.MaxPast || s.Past[selection.MaxPast-1].Model != "m63" {
		t.Errorf("%d are kept: %+v", len(s.Past), s.Past)
	}
	if _, err := s.Encode(); err != nil {
		t.Error(err)
	}
	wide := selection.NewState(kind, many[:3])
	for i := range wide.Models {
		wide.Models[i].Vector = make([]float64, selection.MaxPastNumbers/2)
	}
	s, err = newApp("", oneV1).fit(wide, false, today)
	require.NoError(t, err)
	if len(s.Past) != 2 || s.Past[0].Model != "m01" {
		t.Errorf("%d wide ones are kept", len(s.Past))
	}
}

func BenchmarkFit(b *testing.B) {
	var models []serving.ModelID
	for i := range 1000 {
		models = append(models, serving.ModelID{Model: "m" + strconv.Itoa(i), Version: "1"})
	}
	app := newApp("", models...)
	b.ReportAllocs()
	for b.Loop() {
		if s, err := app.fit(app.fresh, false, today); err != nil || s != app.fresh {
			b.Fatal("a state that fits was changed")
		}
	}
}

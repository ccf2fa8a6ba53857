package state

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/topsail-serving/topsail/gateway/selection"
	"github.com/topsail-serving/topsail/serving"
)

func trainOne(t testing.TB, g *gateway, a *App, user string, f *selection.Feedback) Result {
	t.Helper()
	return g.Train(t.Context(), a, []Item{{User: user, Feedback: f}})[0]
}

func TestTrainAllScopes(t *testing.T) {
	for scope, want := range map[string][]serving.StateScope{
		serving.ScopeApp:         {{}},
		serving.ScopeUser:        {{User: "ann"}, {}},
		serving.ScopeContext:     {{Context: "blue"}, {}},
		serving.ScopeUserContext: {{User: "ann", Context: "blue"}, {Context: "blue"}, {}},
	} {
		bubble(t, func(t *testing.T, m *memory, g *gateway) {
			app := newApp(scope, oneV1, twoV1)
			r := g.Train(t.Context(), app, []Item{{User: "ann", Context: "blue", Feedback: feedback(1, 0.5, oneV1)}})[0]
			if r.Err != nil || r.Duplicate || !slices.Equal(r.Trained, want) {
				t.Errorf("scope %q: %+v, want %+v trained", scope, r, want)
			}
			if len(m.texts) != len(want) {
				t.Errorf("scope %q: %d states are stored, want %d", scope, len(m.texts), len(want))
			}
			for _, sc := range want {
				s := m.state(t, keyOf(sc.User, sc.Context))
				if s == nil || s.Steps != 1 || s.Loss != 0.5 || s.Models[0].Asked != 1 || s.Models[0].Loss != 0.5 || s.Models[1].Asked != 0 {
					t.Errorf("scope %q: the state of %+v is %+v", scope, sc, s)
				}
			}
			if n := count(t, g.Get(app, "ann", "blue"), "one"); n != 1 {
				t.Errorf("scope %q: what was learned here is not seen here", scope)
			}
		})
	}
}

func TestNewUsersBeginEducated(t *testing.T) {
	bubble(t, func(t *testing.T, m *memory, g *gateway) {
		app := newApp("", oneV1)
		for q := range 5 {
			trainOne(t, g, app, "ann", feedback(int64(q+1), 1, oneV1))
		}
		trainOne(t, g, app, "bob", feedback(100, 1, oneV1))
		bob := m.state(t, keyOf("bob", ""))
		if bob.Steps != 6 || !slices.Equal(bob.Trained, []int64{100}) {
			t.Errorf("bob's state has %v steps of which it remembers %v, want the app's 5 and his", bob.Steps, bob.Trained)
		}
		if s := m.state(t, keyOf("ann", "")); s.Steps != 5 {
			t.Errorf("ann's state has %v steps, want 5", s.Steps)
		}
	})
}

// What was said by a definition that is gone when the state learns is left out of it.
func TestNothingIsLearnedOfADefinitionThatIsGone(t *testing.T) {
	bubble(t, func(t *testing.T, m *memory, g *gateway) {
		f := feedback(1, 0.5, oneV1, twoV1)
		f.Outcomes[0].Generation = "gone"
		stands := func(d serving.Definition) bool { return d.Generation != "gone" }
		if r := g.Train(t.Context(), newApp("", oneV1, twoV1), []Item{{User: "ann", Feedback: f, Stands: stands}})[0]; r.Err != nil || len(r.Trained) == 0 {
			t.Fatalf("%+v", r)
		}
		if s := m.state(t, keyOf("", "")); s.Steps != 1 || s.Loss != 0.5 || s.Models[0].Asked != 0 || s.Models[1].Asked != 1 {
			t.Errorf("the state is %+v", s)
		}
		if len(f.Outcomes) != 2 || !f.Outcomes[0].Judged {
			t.Errorf("the feedback was changed: %+v", f.Outcomes)
		}
	})
}

func TestDuplicates(t *testing.T) {
	bubble(t, func(t *testing.T, m *memory, g *gateway) {
		app := newApp("", oneV1)
		f := feedback(1, 1, oneV1)
		list := g.Train(t.Context(), app, []Item{{User: "ann", Feedback: f}, {User: "ann", Feedback: f}})
		if list[0].Duplicate || !list[1].Duplicate || list[1].Err != nil {
			t.Errorf("the same twice in a list: %+v", list)
		}
		other := start(t, m)
		if r := trainOne(t, other, app, "ann", f); !r.Duplicate || len(r.Trained) != 0 {
			t.Errorf("a second time, at another gateway: %+v", r)
		}
		if r := trainOne(t, other, app, "bob", f); r.Duplicate || !slices.Equal(r.Trained, []serving.StateScope{{User: "bob"}}) {
			t.Errorf("for another user: %+v, want it trained there only", r)
		}
		if s := m.state(t, keyOf("", "")); s.Steps != 1 {
			t.Errorf("the app's state has learned %v times", s.Steps)
		}
		for range 2 { // without an id nobody can know
			if r := trainOne(t, g, app, "", feedback(0, 1, oneV1)); r.Duplicate {
				t.Errorf("without an id: %+v", r)
			}
		}
	})
}

// One piece of feedback that the policy fails on does not take others with it.
func TestBadFeedbackFailsAlone(t *testing.T) {
	bubble(t, func(t *testing.T, m *memory, g *gateway) {
		app := newApp(serving.ScopeApp, oneV1)
		unjudged := feedback(6, 0.5, oneV1)
		unjudged.Outcomes[0].Loss, unjudged.Outcomes[0].Judged = math.NaN(), false
		unjudged.Outcomes[0].Model = "stranger"
		list := []Item{
			{Feedback: feedback(1, 1, oneV1)},
			{Feedback: feedback(panicking, 1, oneV1)},
			{Feedback: feedback(2, 1, oneV1)},
			{Feedback: feedback(infinite, 1, oneV1)},
			{Feedback: feedback(forgetting, 1, oneV1)},
			{Feedback: feedback(3, math.NaN(), oneV1)},
			{Feedback: feedback(4, math.Inf(1), oneV1)},
			{Feedback: &selection.Feedback{QueryID: 5, Outcomes: []selection.Outcome{{ModelID: oneV1, Judged: true, Loss: -1}}}},
			{Feedback: unjudged},
		}
		results := g.Train(t.Context(), app, list)
		good := []int{0, 2, 8}
		for i, r := range results {
			if ok := r.Err == nil && len(r.Trained) == 1; ok != slices.Contains(good, i) {
				t.Errorf("item %d: %+v", i, r)
			}
		}
		s := m.state(t, keyOf("", ""))
		if s.Steps != 3 || count(t, s, "one") != 2 || !slices.Equal(s.Trained, []int64{1, 2, 6}) || len(s.Numbers) != 0 {
			t.Errorf("the state is %+v, want only the good ones in it", s)
		}
		if r := g.Train(t.Context(), app, list[3:4])[0]; r.Err == nil || !strings.Contains(r.Err.Error(), "cannot be stored") {
			t.Errorf("alone: %+v", r)
		}
	})
}

// A policy that has nothing to learn returns the state that it got, which others use.
func TestStatesAreNotChanged(t *testing.T) {
	bubble(t, func(t *testing.T, m *memory, g *gateway) {
		app := newApp(serving.ScopeApp, oneV1)
		for want := range 2 {
			before := g.Get(app, "", "")
			if r := trainOne(t, g, app, "", feedback(unmoved-int64(want), 1, oneV1)); r.Err != nil {
				t.Fatal(r.Err)
			}
			if before.Steps != float64(want) || len(before.Trained) != want || before.Models[0].Asked != float64(want) {
				t.Errorf("the state that was in use became %+v", before)
			}
		}
	})
}

func TestCorruptIsSetAside(t *testing.T) {
	for name, text := range map[string]string{
		"garbage":   "\x00\xff{",
		"empty":     "",
		"other":     `{"kind":"ucb1","format":1,"models":[]}`,
		"unordered": `{"kind":"exp4","models":[{"model":"b"},{"model":"a"}]}`,
		"null":      "null",
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, m *memory, g *gateway) {
				app := newApp("", oneV1)
				m.put(keyOf("", ""), textOf(t, 5, oneV1))
				m.put(keyOf("ann", ""), []byte(text))
				if r := trainOne(t, g, app, "ann", feedback(1, 1, oneV1)); r.Err != nil || len(r.Trained) != 2 {
					t.Errorf("trained: %+v", r)
				}
				if s := m.state(t, keyOf("ann", "")); s.Steps != 6 {
					t.Errorf("ann's state has %v steps, want to begin with the app's 5", s.Steps)
				}
				if len(m.aside) != 1 || string(m.aside["aside:2"]) != text {
					t.Errorf("set aside: %q", m.aside)
				}
				if g.metric(t, "corrupt_total") != 1 || g.journal.Count("level=ERROR") != 1 || g.journal.Count("aside:2") != 1 {
					t.Error("there was no alarm")
				}
			})
		})
	}
}

func TestCorruptWhileServing(t *testing.T) {
	bubble(t, func(t *testing.T, m *memory, g *gateway) {
		app := newApp("", oneV1)
		m.put(keyOf("", ""), textOf(t, 5, oneV1))
		m.put(keyOf("ann", ""), []byte("{"))
		g.Get(app, "ann", "")
		synctest.Wait()
		if n := count(t, g.Get(app, "ann", ""), "one"); n != 5 {
			t.Errorf("count %v, want the app's 5", n)
		}
		if len(m.aside) != 1 {
			t.Error("it was not set aside")
		}
		m.put(keyOf("", ""), []byte("{")) // in place of one that is known
		time.Sleep(1100 * time.Millisecond)
		g.Get(app, "ann", "")
		synctest.Wait()
		if s := g.Get(app, "ann", ""); s != app.fresh || len(m.aside) != 2 {
			t.Errorf("got %+v with %d set aside, want the fresh state and 2", s, len(m.aside))
		}
	})
}

func TestStoreFails(t *testing.T) {
	bubble(t, func(t *testing.T, m *memory, g *gateway) {
		app, away := newApp("", oneV1), errors.New("connection refused")
		m.set(func(m *memory) { m.away = away })
		if r := trainOne(t, g, app, "ann", feedback(1, 1, oneV1)); !errors.Is(r.Err, away) || !errors.Is(r.Err, serving.ErrUnavailable) || r.Duplicate {
			t.Errorf("the store is unavailable: %+v", r)
		}
		m.set(func(m *memory) { m.away, m.lostAcks = nil, 1 })
		if r := trainOne(t, g, app, "ann", feedback(1, 1, oneV1)); r.Err == nil || len(r.Trained) != 0 {
			t.Errorf("the answer was lost: %+v", r)
		}
		r := trainOne(t, g, app, "ann", feedback(1, 1, oneV1))
		if r.Err != nil || !slices.Equal(r.Trained, []serving.StateScope{{}}) {
			t.Errorf("sent again: %+v, want the rest trained", r)
		}
		if a, b := m.state(t, keyOf("ann", "")), m.state(t, keyOf("", "")); a.Steps != 1 || b.Steps != 1 {
			t.Errorf("ann's state learned %v times, the app's %v times", a.Steps, b.Steps)
		}
	})
}

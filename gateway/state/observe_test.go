package state

import (
	"errors"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/gateway/selection"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/test/require"
)

func TestObserve(t *testing.T) {
	bubble(t, func(t *testing.T, m *memory, g *gateway) {
		app := NewApp("digits", serving.PolicySpec{Kind: kind}, watching{counting{kind}}, defined("", oneV1))
		observe := func(g *gateway, tallies ...selection.Tally) {
			t.Helper()
			require.NoError(t, g.Observe(t.Context(), app, tallies))
		}
		began := float64(time.Now().Unix())
		observe(g)
		time.Sleep(time.Minute)
		other := start(t, m)
		observe(other)
		observe(g)
		if m.swaps != 1 {
			t.Errorf("%d swaps, want one: there was nothing to tell after the first time", m.swaps)
		}
		observe(g, selection.Tally{ModelID: oneV1, Answers: 3})
		observe(other, selection.Tally{ModelID: oneV1, Answers: 4})
		s := m.state(t, keyOf("", ""))
		if s.Numbers[0] != began || s.Numbers[1] != 7 {
			t.Errorf("observed %v, want since %v, 7 answers", s.Numbers, began)
		}
		if r := trainOne(t, g, app, "ann", feedback(1, 1, oneV1)); r.Err != nil || len(r.Trained) != 1 {
			t.Errorf("trained %+v, want the app's state only", r)
		}
		if got := other.Get(app, "ann", ""); got.Numbers[1] != 7 {
			t.Errorf("a user sees %v, want what was observed", got.Numbers)
		}
	})
}

func TestObserveTellsWhatWasTakenBack(t *testing.T) {
	bubble(t, func(t *testing.T, m *memory, g *gateway) {
		app := NewApp("digits", serving.PolicySpec{Kind: kind}, watching{counting{kind}}, defined("", oneV1, oneV2))
		other := start(t, m)
		everywhere := func(tallies ...selection.Tally) {
			t.Helper()
			require.NoError(t, g.Observe(t.Context(), app, tallies))
			for range 3 { // the other one hears of it within a second, and says it once
				time.Sleep(time.Second)
				require.NoError(t, other.Observe(t.Context(), app, nil))
			}
		}
		const line = `level=WARN msg="a model version on trial was withdrawn, and stays so until the app's policy names another" app=digits reason="version `
		told := func(first, second int) {
			t.Helper()
			for _, one := range []*gateway{g, other} {
				if a, b := one.journal.Count(line+`1 was withdrawn."`), one.journal.Count(line+`2 was withdrawn."`); a != first || b != second {
					t.Errorf("version 1 was told of %d times, 2 %d times; want %d and %d", a, b, first, second)
				}
			}
		}
		everywhere(selection.Tally{ModelID: oneV1, Answers: 1})
		told(0, 0)
		everywhere(selection.Tally{ModelID: oneV1, Failures: 1})
		everywhere(selection.Tally{ModelID: oneV1, Failures: 1})
		told(1, 0)
		everywhere(selection.Tally{ModelID: oneV2, Failures: 1})
		told(1, 1)
		everywhere(selection.Tally{ModelID: oneV2, Answers: 1})
		told(1, 1)
		everywhere(selection.Tally{ModelID: oneV2, Failures: 1})
		told(1, 2)
	})
}

func TestObserveOthers(t *testing.T) {
	bubble(t, func(t *testing.T, m *memory, g *gateway) {
		away := errors.New("away")
		m.set(func(m *memory) { m.away = away })
		if err := g.Observe(t.Context(), newApp("", oneV1), []selection.Tally{{ModelID: oneV1}}); err != nil {
			t.Errorf("a policy that does not observe: %v", err)
		}
		app := NewApp("digits", serving.PolicySpec{Kind: kind}, watching{counting{kind}}, nil)
		for _, tallies := range [][]selection.Tally{nil, {{ModelID: oneV1}}} {
			if err := g.Observe(t.Context(), app, tallies); !errors.Is(err, away) {
				t.Errorf("the store is unavailable: %v", err)
			}
		}
	})
}

func TestExplain(t *testing.T) {
	bubble(t, func(t *testing.T, m *memory, g *gateway) {
		app := newApp("", oneV1, twoV1)
		s, standings, err := g.Explain(t.Context(), app, "ann", "")
		if err != nil || s != app.fresh || len(standings) != 2 {
			t.Errorf("of nothing: %+v, %v, %v", s, standings, err)
		}
		m.put(keyOf("", ""), textOf(t, 4, oneV1, threeV1))
		s, standings, err = g.Explain(t.Context(), app, "ann", "")
		if err != nil || len(s.Models) != 2 || standings[0].Worth != 4 || s.Models[1].ModelID != twoV1 {
			t.Errorf("of the app's: %+v, %v, %v", s, standings, err)
		}
		m.put(keyOf("ann", ""), textOf(t, 9, oneV1, twoV1))
		if _, standings, err = g.Explain(t.Context(), app, "ann", ""); err != nil || standings[1].Worth != 9 {
			t.Errorf("of the user's own: %v, %v", standings, err)
		}
		away := errors.New("away")
		m.set(func(m *memory) { m.away = away })
		if _, _, err = g.Explain(t.Context(), app, "ann", ""); !errors.Is(err, away) {
			t.Errorf("the store is unavailable: %v", err)
		}
	})
}

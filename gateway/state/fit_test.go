package state

import (
	"bytes"
	"slices"
	"strconv"
	"testing"

	"pgregory.net/rapid"

	"github.com/topsail-serving/topsail/gateway/selection"
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
		got, err := app.fit(s, false)
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
		if again, _ := app.fit(got, false); again != got {
			t.Fatal("fitting a second time changes something")
		}
	})
}

func TestFitLeavesVersions(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, models := drawState(t, false), drawModels(t, "models", false)
		got, err := newApp("", models...).fit(s, true)
		require.NoError(t, err)
		for i, id := range models {
			if at := s.Find(id.Model); at >= 0 && got.Models[i].ModelID != s.Models[at].ModelID {
				t.Fatalf("%s was moved to %s", s.Models[at].ModelID, id)
			}
		}
	})
}

func newVersions(models ...serving.ModelID) *App {
	return NewApp("digits", serving.PolicySpec{Kind: serving.PolicyVersions}, counting{serving.PolicyVersions}, defined("", models...))
}

func TestFitVersions(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, models := drawState(t, true), drawModels(t, "models", true)
		got, err := newVersions(models...).fit(s, false)
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
	got, err := newVersions(oneV1, oneV2, many[7]).fit(full, false)
	require.NoError(t, err)
	if len(got.Models) != 3 || got.FindVersion(oneV1) < 0 || got.FindVersion(many[7]) < 0 {
		t.Errorf("%d entries are left, want the three that are named", len(got.Models))
	}
	if _, err := got.Encode(); err != nil {
		t.Error(err)
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
		if s, err := app.fit(app.fresh, false); err != nil || s != app.fresh {
			b.Fatal("a state that fits was changed")
		}
	}
}

package state

import (
	"testing"

	"github.com/topsail-serving/topsail/gateway/selection"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/test/require"
)

// What was learned of a version is trusted less, as of another version, when it is another
// definition by now; and a policy that chooses between versions begins anew with it.
func TestFitToAnotherDefinition(t *testing.T) {
	for _, test := range []struct {
		kind string
		want float64 // half of it, or what a version that joins begins with
	}{{kind, 4}, {serving.PolicyVersions, 2}} {
		app := func(generation string) *App {
			return NewApp("digits", serving.PolicySpec{Kind: test.kind}, counting{test.kind}, append(defined(generation, oneV1), defined("same", twoV1)...))
		}
		s := app("a").Fresh().Clone()
		s.Models[0].Count, s.Models[1].Count = 8, 2
		if again, err := app("a").fit(s, false, today); err != nil || again != s {
			t.Errorf("%s: the same definitions change it, error %v", test.kind, err)
		}
		got, err := app("b").fit(s, false, today)
		if err != nil || got.Models[0].Count != test.want || got.Models[1].Count != 2 || got.Models[0].Generation != "b" {
			t.Errorf("%s: got %+v, error %v, want %v of the redefined one", test.kind, got.Models, err, test.want)
		}
		if again, _ := app("b").fit(got, false, today); again != got {
			t.Errorf("%s: fitting a second time changes something", test.kind)
		}
		if s.Models[0].Count != 8 || s.Models[0].Generation != "a" {
			t.Errorf("%s: the state itself was changed", test.kind)
		}
		text, err := got.Encode()
		require.NoError(t, err)
		if stored, err := selection.Decode(text, test.kind); err != nil || stored.Models[0].Generation != "b" {
			t.Errorf("%s: stored it is %+v, error %v", test.kind, stored, err)
		}
	}
}

// A state of an earlier release knows no generations, as its versions have none.
func TestFitWithoutGenerations(t *testing.T) {
	s := newVersions(oneV1).Fresh().Clone()
	s.Models[0].Count = 8
	if got, err := newVersions(oneV1).fit(s, false, today); err != nil || got != s {
		t.Errorf("got %+v and error %v", got, err)
	}
}

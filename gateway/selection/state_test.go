package selection

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/test/require"
)

func id(model, version string) serving.ModelID {
	return serving.ModelID{Model: model, Version: version}
}

// someState draws a state as policies make them.
func someState(t *rapid.T) *State {
	number := rapid.Float64Range(-1e9, 1e9)
	s := &State{
		Kind: "exp3", Format: 1, Steps: number.Draw(t, "steps"), Loss: number.Draw(t, "loss"),
		Numbers: rapid.SliceOfN(number, 0, 4).Draw(t, "numbers"), Note: rapid.String().Draw(t, "note"),
	}
	for range rapid.IntRange(0, 8).Draw(t, "models") {
		s.Insert(ModelState{
			ModelID: id(rapid.StringMatching(`[a-d]{1,2}`).Draw(t, "model"), rapid.StringMatching(`[1-3]`).Draw(t, "version")),
			Asked:   number.Draw(t, "asked"), Weight: number.Draw(t, "weight"),
			Vector: rapid.SliceOfN(number, 0, 3).Draw(t, "vector"),
		})
	}
	for range rapid.IntRange(0, 2*maxTrained).Draw(t, "trained") {
		s.Remember(rapid.Int64Range(0, 1<<53).Draw(t, "query"))
	}
	return s
}

// TestStateRoundTrip holds that what was learned is stored and read as it is, and that
// a clone shares nothing with it.
func TestStateRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := someState(t)
		text, err := s.Encode()
		require.NoError(t, err)
		read, err := Decode(text, s.Kind)
		if err != nil {
			t.Fatalf("%v: %s", err, text)
		}
		again, err := read.Encode()
		if err != nil || !bytes.Equal(text, again) {
			t.Errorf("stored as %s\nand then as %s (%v)", text, again, err)
		}
		c := read.Clone()
		for i := range c.Models {
			c.Models[i].Asked++
			for k := range c.Models[i].Vector {
				c.Models[i].Vector[k]++
			}
		}
		for i := range c.Numbers {
			c.Numbers[i]++
		}
		c.Remember(7)
		if now, err := read.Encode(); err != nil || !bytes.Equal(now, text) {
			t.Errorf("a change of the clone changed the state to %s", now)
		}
	})
}

// TestPlaces compares the walk through both lists with looking up each.
func TestPlaces(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := someState(t)
		var candidates []Candidate
		for _, model := range rapid.SliceOfN(rapid.StringMatching(`[a-d]{1,2}`), 0, 10).Draw(t, "candidates") {
			candidates = append(candidates, Candidate{ModelID: id(model, "9")})
		}
		slices.SortFunc(candidates, func(a, b Candidate) int { return a.ModelID.Compare(b.ModelID) })
		for i, place := range s.Places(nil, candidates) {
			want := slices.IndexFunc(s.Models, func(m ModelState) bool { return m.Model == candidates[i].Model })
			if place != want || s.Find(candidates[i].Model) != want {
				t.Errorf("%s is at %d and %d, want %d", candidates[i].Model, place, s.Find(candidates[i].Model), want)
			}
		}
		for i := range s.Models {
			if at := s.FindVersion(s.Models[i].ModelID); at != i {
				t.Errorf("%v is at %d, want %d", s.Models[i].ModelID, at, i)
			}
		}
		if at := s.FindVersion(id("a", "9")); at != -1 {
			t.Errorf("a version that is not there is at %d", at)
		}
	})
}

func TestRemember(t *testing.T) {
	s := &State{}
	s.Remember(0)
	if s.Trained != nil || s.Learned(0) {
		t.Error("a query without an id is remembered")
	}
	for q := range int64(2 * maxTrained) {
		before := s.Clone()
		s.Remember(q + 1)
		if !s.Learned(q+1) || before.Learned(q+1) || len(s.Trained) > maxTrained {
			t.Fatalf("query %d: %v", q+1, s.Trained)
		}
	}
	if s.Learned(maxTrained) || !s.Learned(maxTrained+1) {
		t.Errorf("remembered %v, want the newest", s.Trained)
	}
}

func TestWhatCannotBeStored(t *testing.T) {
	good := func() *State { return NewState("exp3", []serving.ModelID{id("b", "1"), id("a", "1")}) }
	if _, err := good().Encode(); err != nil {
		t.Fatal(err)
	}
	tests := map[string]func(s *State){
		"a loss that is none":     func(s *State) { s.Loss = math.NaN() },
		"a weight that is none":   func(s *State) { s.Models[0].Weight = math.Inf(1) },
		"a vector that is none":   func(s *State) { s.Models[1].Vector = []float64{0, math.NaN()} },
		"a number that is none":   func(s *State) { s.Numbers = []float64{math.Inf(-1)} },
		"models out of order":     func(s *State) { slices.Reverse(s.Models) },
		"a model twice":           func(s *State) { s.Models[1] = s.Models[0] },
		"too many numbers":        func(s *State) { s.Numbers = make([]float64, MaxNumbers+1) },
		"too many of one model":   func(s *State) { s.Models[0].Vector = make([]float64, MaxNumbers+1) },
		"too many queries":        func(s *State) { s.Trained = make([]int64, maxTrained+1) },
		"too much of a container": func(s *State) { s.Blob = make([]byte, maxBlob+1) },
		"too many models": func(s *State) {
			s.Models = nil
			for i := range MaxModels + 1 {
				s.Models = append(s.Models, ModelState{ModelID: id(fmt.Sprintf("%05d", i), "1")})
			}
		},
	}
	for name, change := range tests {
		s := good()
		change(s)
		if _, err := s.Encode(); err == nil {
			t.Errorf("%s can be stored", name)
		}
	}
}

func TestRegret(t *testing.T) {
	s := NewState("exp3", []serving.ModelID{id("a", "1"), id("b", "1"), id("c", "1")})
	if got := s.Regret(); got != 0 {
		t.Errorf("%v before any feedback", got)
	}
	s.Steps, s.Loss = 10, 5
	s.Models[0].Asked, s.Models[0].Loss = 4, 1
	s.Models[1].Asked, s.Models[1].Loss = 6, 4
	if got := s.Regret(); got != 2.5 {
		t.Errorf("%v, want 5 less a quarter of 10", got)
	}
}

// FuzzDecode holds that whatever is in the store is either corrupt, or a state that can
// be stored again and is read as the same.
func FuzzDecode(f *testing.F) {
	for _, text := range []string{
		`{"kind":"exp3","format":1,"models":[{"model":"a","version":"1","weight":-0.5}],"numbers":[1],"trained":[7]}`,
		`{"kind":"exp3","format":1,"models":null,"blob":{"a":[1,null]}}`,
		`{"kind":"exp3","models":[{"model":"b"},{"model":"a"}]}`,
		`{"kind":"ucb1","format":1,"models":[]}`,
		`{"kind":"exp3","steps":1e999}`,
		`null`, `[]`, `{`, ``,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		s, err := Decode(text, "exp3")
		if err != nil {
			if !errors.Is(err, ErrCorrupt) {
				t.Errorf("%v is not ErrCorrupt", err)
			}
			return
		}
		first, err := s.Encode()
		if err != nil {
			t.Fatalf("what was read cannot be stored: %v", err)
		}
		again, err := Decode(first, "exp3")
		if err != nil {
			t.Fatalf("what was stored cannot be read: %v\n%s", err, first)
		}
		if second, err := again.Encode(); err != nil || !bytes.Equal(first, second) {
			t.Errorf("stored as %s and then as %s (%v)", first, second, err)
		}
		s.Regret()
	})
}

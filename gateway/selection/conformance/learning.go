package conformance

import (
	"bytes"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/topsail-serving/topsail/gateway/selection"
	"github.com/topsail-serving/topsail/serving"
)

func (s suite) learner(n, rounds int, seed uint64) (selection.Learner, *selection.State) {
	p, state := s.taught(n, rounds, seed)
	return p.(selection.Learner), state
}

func encode(t rapid.TB, state *selection.State) []byte {
	t.Helper()
	text, err := state.Encode()
	if err != nil {
		t.Fatalf("the state cannot be stored: %v", err)
	}
	return text
}

// checkState checks what holds for every state.
func checkState(t rapid.TB, l selection.Learner, state *selection.State) []selection.Standing {
	t.Helper()
	encode(t, state)
	standings := l.Explain(state)
	if len(standings) != len(state.Models) {
		t.Fatalf("%d standings of %d models", len(standings), len(state.Models))
	}
	total := 0.0
	for i, one := range standings {
		if math.IsNaN(one.Worth) || math.IsInf(one.Worth, 0) || !(one.Share >= 0 && one.Share <= 1+1e-9) {
			t.Fatalf("%v stands at %+v", state.Models[i].ModelID, one)
		}
		total += one.Share
	}
	if len(standings) > 0 && !(total > 0) {
		t.Fatalf("no model has a share: %+v", standings)
	}
	return standings
}

func (s suite) orderOfModels(t *testing.T) {
	l, _ := s.learner(6, 0, 1)
	ids := s.ids(6)
	want := encode(t, l.New(ids))
	for range 10 {
		rand.New(rand.NewPCG(1, 2)).Shuffle(len(ids), func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
		before := slices.Clone(ids)
		if got := encode(t, l.New(ids)); !bytes.Equal(got, want) {
			t.Fatalf("from %v the state is\n%s, not\n%s", ids, got, want)
		}
		if !slices.Equal(ids, before) {
			t.Fatal("New sorts the list that it was lent")
		}
	}
}

func (s suite) roundTrip(t *testing.T) {
	for _, rounds := range []int{0, 1, 100} {
		l, state := s.learner(4, rounds, 1)
		again, err := selection.Decode(encode(t, state), state.Kind)
		if err != nil {
			t.Fatalf("after %d rounds: %v", rounds, err)
		}
		a, b := s.teach(l, state, 4, 50, 2), s.teach(l, again, 4, 50, 2)
		if x, y := encode(t, a), encode(t, b); !bytes.Equal(x, y) {
			t.Fatalf("after %d rounds and storing it, what is learned differs:\n%s\n%s", rounds, x, y)
		}
	}
}

func (s suite) immutable(t *testing.T) {
	l, state := s.learner(4, 30, 1)
	before := encode(t, state)
	changes := map[string]func(){
		"Train":         func() { s.teach(l, state, 4, 20, 2) },
		"AddModel":      func() { l.AddModel(state, serving.ModelID{Model: "n", Version: "1"}) },
		"UpdateVersion": func() { l.UpdateVersion(state, serving.ModelID{Model: names(2)[1], Version: "2"}) },
		"Explain":       func() { l.Explain(state) },
		"Train after a change": func() {
			s.teach(l, l.AddModel(state, serving.ModelID{Model: names(1)[0], Version: "w"}), 4, 20, 2)
		},
	}
	for name, change := range changes {
		if change(); !bytes.Equal(before, encode(t, state)) {
			t.Fatalf("%s changes the state that it was lent", name)
		}
	}
	// What Train returns belongs to the caller, which counts in it, also if nothing was learned.
	for _, f := range []*selection.Feedback{s.feedback(1), s.feedback(1, s.outcome(s.ids(1)[0], 1, 1))} {
		trained := l.Train(state, f)
		trained.Steps++
		each(trained, func(m *selection.ModelState) {
			m.Asked++
			for i := range m.Vector {
				m.Vector[i]++
			}
		})
		for i := range trained.Numbers {
			trained.Numbers[i]++
		}
		if !bytes.Equal(before, encode(t, state)) {
			t.Fatal("what Train returns shares memory with what it was lent")
		}
	}
}

// order checks that the models which were told apart before keep their order. It
// leaves out one model.
func order(t *testing.T, before, after map[serving.ModelID]float64, but serving.ModelID) {
	t.Helper()
	for a, x := range before {
		for b, y := range before {
			if a != but && b != but && x > y+1e-9 && after[a] < after[b]-1e-9 {
				t.Errorf("%v was better than %v, %v to %v, and is not any more: %v to %v", a, b, x, y, after[a], after[b])
			}
		}
	}
}

func worths(t *testing.T, l selection.Learner, state *selection.State) map[serving.ModelID]float64 {
	t.Helper()
	all := map[serving.ModelID]float64{}
	for i, one := range checkState(t, l, state) {
		all[state.Models[i].ModelID] = one.Worth
	}
	return all
}

func mean(all map[serving.ModelID]float64, but serving.ModelID) float64 {
	total, n := 0.0, 0.0
	for id, x := range all {
		if id != but {
			total, n = total+x, n+1
		}
	}
	return total / n
}

func (s suite) addModel(t *testing.T) {
	l, state := s.learner(5, 300, 1)
	before := worths(t, l, state)
	id := serving.ModelID{Model: names(1)[0], Version: "w"}
	if !s.Single {
		id = serving.ModelID{Model: "n", Version: "1"}
	}
	more := l.AddModel(state, id)
	if more.FindVersion(id) < 0 || len(more.Models) != len(state.Models)+1 || more.Kind != state.Kind {
		t.Fatalf("%v joins, and the state is of %+v", id, more.Models)
	}
	after := worths(t, l, more)
	order(t, before, after, id)
	lowest, highest := math.Inf(1), math.Inf(-1)
	for old := range before {
		lowest, highest = min(lowest, after[old]), max(highest, after[old])
	}
	if after[id] < lowest-1e-9 || after[id] > highest+1e-9 {
		t.Errorf("who joins begins at %v, not between the others: %v", after[id], after)
	}
	if again := l.AddModel(more, id); len(again.Models) != len(more.Models) {
		t.Errorf("who joins twice has %d entries more", len(again.Models)-len(more.Models))
	}
}

// updateVersion replaces the best model, one in the middle and the worst one.
func (s suite) updateVersion(t *testing.T) {
	l, state := s.learner(5, 300, 1)
	before := worths(t, l, state)
	for i, old := range s.ids(5) {
		id := serving.ModelID{Model: old.Model, Version: "x" + old.Version}
		updated := l.UpdateVersion(state, id)
		if updated.FindVersion(id) < 0 {
			t.Fatalf("after the update to %v the state is of %+v", id, updated.Models)
		}
		after := worths(t, l, updated)
		if s.Single {
			order(t, before, after, id) // the other versions stay
			continue
		}
		if len(updated.Models) != len(state.Models) || updated.FindVersion(old) >= 0 {
			t.Fatalf("after the update to %v the state is of %+v", id, updated.Models)
		}
		order(t, before, after, old)
		was, is := before[old]-mean(before, old), after[id]-mean(after, id)
		if was*is < 0 || math.Abs(is) < math.Abs(was)/10 {
			t.Errorf("model %d was %v above the mean of the others, and its new version is %v: it starts over", i, was, is)
		}
	}
}

// firstModel lets an app begin without any model.
func (s suite) firstModel(t *testing.T) {
	l, _ := s.learner(1, 0, 1)
	state := l.New(nil)
	checkState(t, l, state)
	for i, id := range s.ids(3) {
		state = l.AddModel(state, id)
		checkState(t, l, state)
		state = s.teach(l, state, i+1, 5, 1)
	}
}

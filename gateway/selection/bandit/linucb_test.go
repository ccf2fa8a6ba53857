package bandit

import (
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/topsail-serving/topsail/gateway/selection/conformance"
	"github.com/topsail-serving/topsail/serving"
)

// TestLinUCBKnowsWhatSuits has two models, each right in one half of the inputs.
func TestLinUCBKnowsWhatSuits(t *testing.T) {
	for name, spec := range map[string]serving.PolicySpec{"by default": {}, "forgetting": {Discount: 0.99}, "hashed": {Features: 3}} {
		p, s := NewLinUCB(spec, nil), scene(2)
		state, r, right := p.New(s.ids), rand.New(rand.NewPCG(2, 2)), 0
		const rounds = 3000
		for round := range rounds {
			x := 4*r.Float64() - 2
			s.query.Input = conformance.Doubles(x, 1, 1, 1)
			at := s.plan(p, state).Asks[0].Candidate
			loss := 1.0
			if (x > 0) == (at == 0) {
				loss = 0
			}
			if loss == 0 && round >= rounds/2 {
				right++
			}
			state = p.Train(state, s.feedback(at, 1, loss))
		}
		if share := float64(right) / (rounds / 2); share < 0.9 {
			t.Errorf("%s: it is right in %.3f of the queries", name, share)
		}
	}
}

// TestRegressionIsExact compares the updates with solving the equations of all data.
func TestRegressionIsExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 5).Draw(t, "width")
		p := &LinUCB{width: n}
		s := scene(1)
		r := p.begin(&p.New(s.ids).Models[0])
		a, b := identity(n), make([]float64, n)
		for range rapid.IntRange(0, 20).Draw(t, "points") {
			x := rapid.SliceOfN(rapid.Float64Range(-1, 1), n, n).Draw(t, "x")
			gain := rapid.Float64Range(0, 1).Draw(t, "gain")
			r.learn(x, gain)
			for i := range n {
				b[i] += gain * x[i]
				for j := range n {
					a[i][j] += x[i] * x[j]
				}
			}
		}
		theta := make([]float64, n)
		r.times(theta, r.b)
		for i := range n { // Aθ = b
			if got := dot(a[i], theta); math.Abs(got-b[i]) > 1e-9 {
				t.Fatalf("equation %d: %v, not %v", i, got, b[i])
			}
		}
	})
}

func identity(n int) [][]float64 {
	m := make([][]float64, n)
	for i := range m {
		m[i] = make([]float64, n)
		m[i][i] = 1
	}
	return m
}

// TestForgettingEnds forgets forever: doubt grows to what it was at first, no further.
func TestForgettingEnds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const n = 4
		p := &LinUCB{width: n}
		r := p.begin(&p.New(scene(1).ids).Models[0])
		vector := rapid.SliceOfN(rapid.Float64Range(-1, 1), n, n)
		for range rapid.IntRange(1, 30).Draw(t, "points") {
			r.learn(vector.Draw(t, "x"), 1)
		}
		x, y := vector.Draw(t, "probe"), make([]float64, n)
		part := rapid.Float64Range(0.01, 1).Draw(t, "part")
		r.times(y, x)
		doubt := dot(x, y)
		for range 2000 {
			r.forget(part)
			r.times(y, x)
			if now := dot(x, y); now < doubt-1e-9 || now > dot(x, x)+1e-9 {
				t.Fatalf("doubt goes from %v to %v, of %v at first", doubt, now, dot(x, x))
			}
			doubt = dot(x, y)
		}
		if doubt < 0.99*dot(x, x) {
			t.Fatalf("after forgetting all, doubt is %v of %v", doubt, dot(x, x))
		}
	})
}

func TestUpdateKeepsWhatIsExpected(t *testing.T) {
	p, s := NewLinUCB(serving.PolicySpec{}, nil), scene(1)
	state := p.New(s.ids)
	for range 200 {
		state = p.Train(state, s.feedback(0, 1, 0.2))
	}
	x, y := make([]float64, p.width), make([]float64, p.width)
	contextOf(x, s.query.Input)
	expected := func() (gain, doubt float64) {
		r := p.regression(&state.Models[0])
		r.times(y, x)
		return dot(y, r.b), dot(y, x)
	}
	gain, doubt := expected()
	state = p.UpdateVersion(state, serving.ModelID{Model: s.ids[0].Model, Version: "2"})
	after, more := expected()
	if math.Abs(after-gain) > 0.02 || more < 1.9*doubt || more > 2*doubt {
		t.Errorf("the gain goes from %v to %v, and doubt from %v to %v", gain, after, doubt, more)
	}
}

func TestWhoJoinsExpectsWhatTheOthersDo(t *testing.T) {
	p, s := NewLinUCB(serving.PolicySpec{}, nil), scene(2)
	state := p.New(s.ids)
	for range 500 {
		state = p.Train(p.Train(state, s.feedback(0, 1, 0.2)), s.feedback(1, 1, 0.6))
	}
	id := serving.ModelID{Model: "n", Version: "1"}
	state = p.AddModel(state, id)
	x, y := make([]float64, p.width), make([]float64, p.width)
	contextOf(x, s.query.Input)
	r := p.regression(&state.Models[state.FindVersion(id)])
	r.times(y, x)
	if got := 1 + dot(y, r.b); math.Abs(got-0.6) > 0.02 {
		t.Errorf("between gains of 0.8 and 0.4 it expects %v", got)
	}
	if doubt := dot(y, x); math.Abs(doubt-1) > 1e-9 {
		t.Errorf("its doubt is %v, not that of no feedback", doubt)
	}
}

func TestContext(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := rapid.SliceOfN(rapid.Float64(), 0, 40).Draw(t, "numbers")
		x := make([]float64, 17)
		contextOf(x, conformance.Doubles(list...))
		if size := length(x); !(math.Abs(size-1) < 1e-9) || x[0] < 0.7 {
			t.Fatalf("%v becomes %v, of length %v", list, x, size)
		}
	})
	x, y := make([]float64, 4), make([]float64, 4)
	contextOf(x, conformance.Doubles(3, -4))
	want := []float64{6, 3, -4, 0} // and then to length 1
	for i := range x {
		if math.Abs(x[i]*math.Sqrt(61)-want[i]) > 1e-9 {
			t.Errorf("3 and -4 become %v", x)
		}
	}
	ints := serving.Input{Type: serving.Ints, Data: []byte{3, 0, 0, 0, 0xfc, 0xff, 0xff, 0xff}}
	if contextOf(y, ints); length(difference(x, y)) > 1e-9 {
		t.Errorf("as integers they become %v", y)
	}
	floats := serving.Input{Type: serving.Floats, Data: []byte{0, 0, 0x40, 0x40, 0, 0, 0x80, 0xc0}}
	if contextOf(y, floats); length(difference(x, y)) > 1e-9 {
		t.Errorf("as floats they become %v", y)
	}
}

func difference(x, y []float64) []float64 {
	d := make([]float64, len(x))
	for i := range x {
		d[i] = x[i] - y[i]
	}
	return d
}

func TestHashingSpreads(t *testing.T) {
	places, signs := make([]int, 16), 0.0
	const n = 16_000
	for i := range n {
		place, sign := bucket(i, 16)
		places[place]++
		signs += sign
	}
	for place, got := range places {
		if got < 800 || got > 1200 {
			t.Errorf("place %d gets %d of %d numbers", place, got, n)
		}
	}
	if math.Abs(signs) > 600 {
		t.Errorf("the signs add up to %v", signs)
	}
}

// FuzzContext reads inputs whose bytes anybody made.
func FuzzContext(f *testing.F) {
	f.Add(byte(serving.Doubles), []byte{1, 2, 3, 4, 5, 6, 7, 8})
	f.Add(byte(serving.Ints), []byte{1, 2, 3})
	f.Add(byte(serving.Strings), []byte("abc"))
	f.Fuzz(func(t *testing.T, kind byte, data []byte) {
		x := make([]float64, 17)
		contextOf(x, serving.Input{Type: serving.InputType(kind), Data: data})
		if !(math.Abs(length(x)-1) < 1e-9) {
			t.Errorf("the context is %v", x)
		}
	})
}

// TestFallenModelsAreAskedAgain has the probabilities say how often.
func TestFallenModelsAreAskedAgain(t *testing.T) {
	p, s := NewLinUCB(serving.PolicySpec{}, nil), scene(3)
	state := p.New(s.ids)
	for range 100 {
		state = p.Train(state, s.feedback(0, 1, 0))
		state = p.Train(state, s.feedback(1, 1, 0.1))
		state = p.Train(state, s.feedback(2, 1, 0.5))
	}
	for range 100 {
		state = p.Train(state, s.feedback(0, 1, 1))
	}
	asked := [3]int{}
	const queries = 20_000
	for range queries {
		plan := s.plan(p, state)
		asked[plan.Asks[0].Candidate]++
		want := 1 - lookAgain
		if plan.Asks[0].Candidate == 0 {
			want = lookAgain
		}
		if got := plan.Asks[0].Probability; math.Abs(got-want) > 1e-12 {
			t.Fatalf("model %d is asked with probability %v", plan.Asks[0].Candidate, got)
		}
	}
	if share := float64(asked[0]) / queries; asked[2] > 0 || math.Abs(share-lookAgain) > 0.006 {
		t.Errorf("asked %v", asked)
	}
}

package bandit

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/topsail-serving/topsail/gateway/selection"
	"github.com/topsail-serving/topsail/gateway/selection/conformance"
	"github.com/topsail-serving/topsail/serving"
)

func models(plan *selection.Plan) (names []string) {
	for _, ask := range plan.Asks {
		names = append(names, ask.ID.Model)
	}
	return names
}

func TestOnlyNamedModelsAreAsked(t *testing.T) {
	for kind, make := range kinds {
		s := scene(4)
		p := make(serving.PolicySpec{Models: []string{"m001", "m003:7"}}, nil)
		state := s.learn(p, 0)
		for range 100 {
			got := models(s.plan(p, state))
			if slices.Sort(got); !slices.Equal(got, []string{"m001", "m003"}) {
				t.Fatalf("%s plans to ask %v", kind, got)
			}
		}
		total := 0.0
		for i, one := range p.Explain(state) {
			if total += one.Share; one.Share > 0 && i%2 == 0 && kind != serving.PolicyUCB1 && kind != serving.PolicyLinUCB {
				t.Errorf("%s gives %v, which it may not ask, a share of %v", kind, s.ids[i], one.Share)
			}
		}
		s.candidates = s.candidates[:1]
		if got := s.plan(p, state); len(got.Asks) > 0 {
			t.Errorf("%s asks %v, which is not named", kind, models(got))
		}
	}
}

func TestCostDividesWorth(t *testing.T) {
	for kind, make := range kinds {
		if kind == serving.PolicyExp3 {
			continue // its probabilities follow its weights
		}
		s := scene(3)
		cheap, dear := make(serving.PolicySpec{ByCost: true, Epsilon: 1e-9, Alpha: 1e-9}, nil), make(serving.PolicySpec{Epsilon: 1e-9, Alpha: 1e-9}, nil)
		state := cheap.New(s.ids)
		for range 200 {
			for model, loss := range []float64{0.1, 0.3, 0.8} {
				state = cheap.Train(state, s.feedback(model, 1, loss))
			}
		}
		s.candidates[0].Cost, s.candidates[2].Cost = 3, 0.5 // worth 0.3, 0.7 and 0.4 for the cost
		if got := models(s.plan(cheap, state)); !slices.Equal(got, []string{"m001", "m002", "m000"}) {
			t.Errorf("%s by cost asks in the order %v", kind, got)
		}
		if got := models(s.plan(dear, state)); !slices.Equal(got, []string{"m000", "m001", "m002"}) {
			t.Errorf("%s asks in the order %v", kind, got)
		}
	}
}

func TestReserveIsOpenedByFailures(t *testing.T) {
	p, s := NewUCB1(serving.PolicySpec{}, nil), scene(3)
	plan := s.plan(p, p.New(s.ids))
	if plan.Now != 1 || len(plan.Asks) != 3 {
		t.Fatalf("%d of %d are asked at once", plan.Now, len(plan.Asks))
	}
	early, late := selection.Moment{Elapsed: time.Millisecond, Budget: 20 * time.Millisecond}, selection.Moment{Elapsed: 20 * time.Millisecond, Budget: 20 * time.Millisecond}
	final := selection.Moment{Elapsed: 20 * time.Millisecond, Budget: 20 * time.Millisecond, Final: true}
	first, second := &serving.Failure{Cause: serving.ModelError, Message: "first"}, &serving.Failure{Cause: serving.ContainerError}
	out := *conformance.Label(1)
	sure := 0.75
	out.Confidence = &sure
	for _, c := range []struct {
		name    string
		answers []selection.Answer
		at      selection.Moment
		want    selection.Decision
	}{
		{"nothing yet", []selection.Answer{{}, {}, {}}, early, selection.Decision{Open: 1}},
		{"one failed", []selection.Answer{{Failure: first}, {}, {}}, early, selection.Decision{Open: 2}},
		{"two failed", []selection.Answer{{Failure: first}, {Failure: second}, {}}, early, selection.Decision{Open: 3}},
		{"one failed, too late", []selection.Answer{{Failure: first}, {}, {}}, late,
			selection.Decision{Done: true, Verdict: selection.Verdict{Failure: first, Ended: selection.EndedDeadline}}},
		{"all failed", []selection.Answer{{Failure: first}, {Failure: second}, {Failure: second}}, early,
			selection.Decision{Done: true, Verdict: selection.Verdict{Failure: first, Ended: selection.EndedAll}}},
		{"the first answers", []selection.Answer{{Output: &out}, {}, {}}, early,
			selection.Decision{Done: true, Verdict: selection.Verdict{Output: &out, Model: plan.Asks[0].ID, Confidence: 0.75, Ended: selection.EndedAll}}},
		{"a stand-in answers", []selection.Answer{{Failure: first}, {Output: &out}, {}}, early,
			selection.Decision{Done: true, Verdict: selection.Verdict{Output: &out, Model: plan.Asks[1].ID, Confidence: 0.75, Ended: selection.EndedAll}}},
		{"the stand-in is silent", []selection.Answer{{Failure: first}, {}, {}}, final,
			selection.Decision{Done: true, Verdict: selection.Verdict{Failure: first, Ended: selection.EndedDeadline}}},
		{"all are silent", []selection.Answer{{}, {}, {}}, final,
			selection.Decision{Done: true, Verdict: selection.Verdict{Ended: selection.EndedDeadline}}},
	} {
		if got := p.Combine(nil, plan, c.answers, c.at); got != c.want {
			t.Errorf("%s: it decides %+v, not %+v", c.name, got, c.want)
		}
	}
}

func TestConfidenceIsOneOrNone(t *testing.T) {
	for given, want := range map[float64]float64{0: 0, 0.5: 0.5, 1: 1, 80: 0, -1: 0, math.Inf(1): 0} {
		if got := selection.Confidence(&serving.Output{Confidence: &given}); got != want {
			t.Errorf("confidence %v is taken for %v", given, got)
		}
	}
	nan := math.NaN()
	if got := selection.Confidence(&serving.Output{Confidence: &nan}); got != 0 {
		t.Errorf("no number is taken for %v", got)
	}
}

// TestLead draws from any probabilities: who leads was drawn with its probability, and
// an ask in reserve is reached by all draws of those before it.
func TestLead(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		weights := rapid.SliceOfN(rapid.Float64Range(0.01, 1), 1, 8).Draw(t, "weights")
		total := 0.0
		for _, w := range weights {
			total += w
		}
		var plan selection.Plan
		for i, w := range weights {
			plan.Asks = append(plan.Asks, selection.Ask{Candidate: i, Probability: w / total})
		}
		x := rapid.Float64Range(0, 0.999999).Draw(t, "x")
		lead(&plan, x)
		first, before, reached := plan.Asks[0].Candidate, 0.0, 0.0
		for _, w := range weights[:first] {
			before += w / total
		}
		if x < before-1e-9 || x > before+weights[first]/total+1e-9 {
			t.Fatalf("%v leads for %v of %v", first, x, weights)
		}
		for i, ask := range plan.Asks {
			if i > 1 && ask.Candidate < plan.Asks[i-1].Candidate {
				t.Fatalf("the reserve is not in order: %+v", plan.Asks)
			}
			reached += weights[ask.Candidate] / total
			if math.Abs(ask.Probability-reached) > 1e-9 {
				t.Fatalf("ask %d has probability %v, not %v", i, ask.Probability, reached)
			}
		}
	})
}

// TestSharesAreWhatIsAsked compares what the policies that draw explain with what they do.
func TestSharesAreWhatIsAsked(t *testing.T) {
	for _, kind := range []string{serving.PolicyEpsilonGreedy, serving.PolicyExp3, serving.PolicyThompson} {
		p, s := kinds[kind](serving.PolicySpec{}, nil), scene(4)
		state := s.learn(p, 30)
		asked, total := make([]float64, 4), 0.0
		const rounds = 20_000
		for range rounds {
			asked[s.plan(p, state).Asks[0].Candidate] += 1.0 / rounds
		}
		for i, one := range p.Explain(state) {
			if total += one.Share; math.Abs(one.Share-asked[i]) > 0.06 {
				t.Errorf("%s asks model %d for a share %.3f, and explains %.3f", kind, i, asked[i], one.Share)
			}
		}
		if math.Abs(total-1) > 1e-9 {
			t.Errorf("the shares of %s are %v together", kind, total)
		}
	}
}

func TestUCB1AsksEveryoneOnce(t *testing.T) {
	p, s := NewUCB1(serving.PolicySpec{}, nil), scene(5)
	state, seen := p.New(s.ids), map[int]bool{}
	for range 5 {
		at := s.plan(p, state).Asks[0].Candidate
		seen[at] = true
		state = p.Train(state, s.feedback(at, 1, 0))
	}
	if len(seen) != 5 {
		t.Errorf("of 5 models it has tried %v", seen)
	}
}

// TestStandInsAreNotRare keeps the favourite failing: who stands in for it is judged
// each time, by what it does and not as if that were rare.
func TestStandInsAreNotRare(t *testing.T) {
	p, s := NewExp3(serving.PolicySpec{}, nil), scene(3)
	state := p.New(s.ids)
	for range 300 { // the first is the favourite
		state = p.Train(state, s.feedback(1, 0.5, 1))
		state = p.Train(state, s.feedback(2, 0.5, 0.8))
	}
	losses := []float64{0, 0.5, 0.1} // the first only fails: nothing is known of it
	for range 2000 {
		plan := s.plan(p, state)
		ask := plan.Asks[0]
		if ask.Candidate == 0 {
			ask = plan.Asks[1]
		}
		state = p.Train(state, s.feedback(ask.Candidate, ask.Probability, losses[ask.Candidate]))
	}
	// An even footing: weights are pulled up alike and down by each one's loss.
	if logWeight(&state.Models[2]) < logWeight(&state.Models[1])+0.5 {
		t.Errorf("of two that stand in, the better one has log weight %v, and the other %v", state.Models[2].Weight, state.Models[1].Weight)
	}
}

// TestWhoIsAwayNeitherGainsNorLoses has a model that is never there: the others are told
// apart as without it.
func TestWhoIsAwayNeitherGainsNorLoses(t *testing.T) {
	p, s := NewExp3(serving.PolicySpec{}, nil), scene(4)
	state, r := p.New(s.ids), rand.New(rand.NewPCG(2, 2))
	s.candidates = s.candidates[:3]
	const rounds = 6000
	best := 0
	for round := range rounds {
		ask, loss := s.plan(p, state).Asks[0], 0.0
		if r.Float64() < errorRates[ask.Candidate] {
			loss = 1
		}
		if ask.Candidate == 0 && round >= rounds/2 {
			best++
		}
		state = p.Train(state, s.feedback(ask.Candidate, ask.Probability, loss))
	}
	if share := float64(best) / (rounds / 2); share < 0.8 {
		t.Errorf("the best is asked for a share %.3f of the queries", share)
	}
	if away := p.Explain(state)[3]; away.Share < 0.03 || away.Share > 0.9 {
		t.Errorf("who was away stands at %+v", away)
	}
}

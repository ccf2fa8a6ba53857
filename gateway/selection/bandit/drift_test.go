package bandit

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/topsail-serving/topsail/gateway/selection"
	"github.com/topsail-serving/topsail/serving"
)

// errorRates are those of the models, the best first.
var errorRates = []float64{0.03, 0.15, 0.25, 0.40, 0.50}

const (
	steps     = 12_000
	degraded  = 4_000 // when the best model goes bad
	recovered = 8_000 // and good again
)

// replay asks for one query after another and returns, for each, the place of the model
// that was asked.
func replay(p selection.Learner, seed uint64, rate func(step, model int) float64) []int {
	r := rand.New(rand.NewPCG(seed, 0))
	var ids []serving.ModelID
	var candidates []selection.Candidate
	for i := range errorRates {
		id := serving.ModelID{Model: fmt.Sprint("m", i), Version: "1"}
		ids = append(ids, id)
		candidates = append(candidates, selection.Candidate{ModelID: id, Ready: true, Cost: 1})
	}
	state, plan, asked := p.New(ids), selection.Plan{}, make([]int, steps)
	q := &selection.Query{Rand: rand.New(rand.NewPCG(seed, 1))}
	for step := range steps {
		plan.Reset()
		p.Select(state, q, candidates, &plan)
		ask := plan.Asks[0]
		loss := 0.0
		if r.Float64() < rate(step, ask.Candidate) {
			loss = 1
		}
		asked[step] = ask.Candidate
		state = p.Train(state, &selection.Feedback{Loss: loss, Outcomes: []selection.Outcome{
			{ModelID: ask.ID, Probability: ask.Probability, Loss: loss, Judged: true},
		}})
	}
	return asked
}

func drifting(step, model int) float64 {
	if model == 0 && step >= degraded && step < recovered {
		return 0.90
	}
	return errorRates[model]
}

func steady(_, model int) float64 { return errorRates[model] }

// share is how often the model that is the best at first was asked.
func share(asked []int) float64 {
	n := 0
	for _, model := range asked {
		if model == 0 {
			n++
		}
	}
	return float64(n) / float64(len(asked))
}

// TestPoliciesFollowDrift is the promise of their defaults: within 1,000 queries the
// model that has gone bad is left, and called again when it is good.
func TestPoliciesFollowDrift(t *testing.T) {
	for _, kind := range []string{serving.PolicyThompson, serving.PolicyExp3, serving.PolicyUCB1, serving.PolicyEpsilonGreedy, serving.PolicyLinUCB} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			left, stayedAway, came, stayed := newTrial("left"), newTrial("stayed away"), newTrial("came back"), newTrial("stayed")
			for seed := range seeds {
				asked := replay(kinds[kind](serving.PolicySpec{}, nil), seed, drifting)
				left.add(share(asked[degraded+800:degraded+1000]), below(0.10))
				stayedAway.add(share(asked[degraded+1000:degraded+2000]), below(0.10))
				came.add(share(asked[recovered+800:recovered+1000]), above(0.60))
				stayed.add(share(asked[recovered+1000:]), above(0.60))
			}
			left.check(t, below(0.10))
			stayedAway.check(t, below(0.10))
			came.check(t, above(0.60))
			stayed.check(t, above(0.60))
		})
	}
}

// TestPoliciesSettle lets nothing change: in the end the best model is asked the most.
func TestPoliciesSettle(t *testing.T) {
	for kind, least := range map[string]float64{
		serving.PolicyThompson: 0.90, serving.PolicyUCB1: 0.85, serving.PolicyExp3: 0.80,
		serving.PolicyEpsilonGreedy: 0.87, // of 0.92 that epsilon leaves it
		serving.PolicyLinUCB:        0.85,
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			best := newTrial("best")
			for seed := range seeds {
				best.add(share(replay(kinds[kind](serving.PolicySpec{}, nil), seed, steady)[10_000:]), above(least))
			}
			best.check(t, above(least))
		})
	}
}

// TestLinUCBPaysNothingForSteadiness has it lose no more than LinUCB that cannot follow a
// change: a discount of 0.999, which also follows, loses some hundred answers.
func TestLinUCBPaysNothingForSteadiness(t *testing.T) {
	const most = 40.0
	lost := newTrial("lost")
	for seed := range seeds {
		beyond := 0.0
		for _, model := range replay(NewLinUCB(serving.PolicySpec{}, nil), seed, steady) {
			beyond += errorRates[model] - errorRates[0]
		}
		lost.add(beyond, below(most))
	}
	lost.check(t, below(most))
}

// TestLinUCBFollowsEveryChange has the best of the models change again and again, each time
// by one becoming worse and another one better.
func TestLinUCBFollowsEveryChange(t *testing.T) {
	const period = 2_000
	for seed := range seeds {
		asked := replay(NewLinUCB(serving.PolicySpec{}, nil), seed, func(step, model int) float64 {
			if model < 2 && model == step/period%2 {
				return 0.90
			}
			return errorRates[model]
		})
		for at := 0; at < steps; at += period {
			good, n := 1-at/period%2, 0
			for _, model := range asked[at+period/2 : at+period] {
				if model == good {
					n++
				}
			}
			if share := float64(n) / (period / 2); share < 0.6 {
				t.Errorf("seed %d: after query %d the best is asked in %.2f of the queries", seed, at+period/2, share)
			}
		}
	}
}

const seeds uint64 = 10

func below(x float64) func(float64) bool { return func(y float64) bool { return y < x } }
func above(x float64) func(float64) bool { return func(y float64) bool { return y > x } }

// trial is a share of queries by seed.
type trial struct {
	name   string
	shares []float64
	good   uint64
}

func newTrial(name string) *trial { return &trial{name: name} }

func (r *trial) add(share float64, good func(float64) bool) {
	r.shares = append(r.shares, share)
	if good(share) {
		r.good++
	}
}

// check wants the mean good, and nine of ten seeds.
func (r *trial) check(t *testing.T, good func(float64) bool) {
	t.Helper()
	mean := 0.0
	for _, x := range r.shares {
		mean += x / float64(len(r.shares))
	}
	t.Logf("%s: share of the best %.3f, by seed %.3f", r.name, mean, r.shares)
	if !good(mean) || r.good < seeds-1 {
		t.Errorf("%s: share of the best %.3f, by seed %.3f", r.name, mean, r.shares)
	}
}

package kinds_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/gateway/selection"
	"github.com/topsail-serving/topsail/gateway/selection/conformance"
	"github.com/topsail-serving/topsail/gateway/selection/kinds"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/test/require"
)

// choices are how many model versions a policy chooses from.
const choices = 10

// deciding is what each kind may allocate to decide for one query whose models have all
// answered. Those that make an answer of several make an output.
var deciding = []struct {
	spec   serving.PolicySpec
	allocs float64
}{
	{serving.PolicySpec{Kind: serving.PolicySingle}, 0},
	{serving.PolicySpec{Kind: serving.PolicyVersions, Canary: "v3"}, 0},
	{serving.PolicySpec{Kind: serving.PolicyShadow, Share: 1}, 0},
	{serving.PolicySpec{Kind: serving.PolicyEpsilonGreedy}, 0},
	{serving.PolicySpec{Kind: serving.PolicyUCB1}, 0},
	{serving.PolicySpec{Kind: serving.PolicyThompson}, 0},
	{serving.PolicySpec{Kind: serving.PolicyExp3}, 0},
	{serving.PolicySpec{Kind: serving.PolicyLinUCB, Features: 16}, 0},
	{serving.PolicySpec{Kind: serving.PolicyExp4}, 5},
	{serving.PolicySpec{Kind: serving.PolicyVote}, 0},
	{serving.PolicySpec{Kind: serving.PolicyMean}, 5},
	{serving.PolicySpec{Kind: serving.PolicyMedian}, 3},
	{serving.PolicySpec{Kind: serving.PolicyBest}, 0},
	{serving.PolicySpec{Kind: serving.PolicyLogistic}, 0},
	{serving.PolicySpec{Kind: serving.PolicyStacking}, 5},
	{serving.PolicySpec{Kind: serving.PolicyGuaranteed}, 0},
	{serving.PolicySpec{Kind: serving.PolicyFirstAcceptable, Confidence: 0.95}, 0},
	{serving.PolicySpec{Kind: serving.PolicyHedge}, 0},
	{serving.PolicySpec{Kind: serving.PolicyCascade, Confidence: 0.95}, 0},
	{serving.PolicySpec{Kind: serving.PolicyPrefer}, 0},
	{serving.PolicySpec{Kind: serving.PolicyCustom, Model: "m0"}, 80}, // requests as JSON; the race detector adds some
}

// BenchmarkDecide is Select and Combine for ten models that have learned and answered.
func BenchmarkDecide(b *testing.B) {
	for _, c := range deciding {
		b.Run(c.spec.Kind, func(b *testing.B) {
			decide := decider(b, &c.spec)
			b.ReportAllocs()
			for b.Loop() {
				decide()
			}
		})
	}
}

func TestDecidingAllocatesLittle(t *testing.T) {
	for _, c := range deciding {
		if got := testing.AllocsPerRun(200, decider(t, &c.spec)); got > c.allocs {
			t.Errorf("%s allocates %v times for a query, not %v", c.spec.Kind, got, c.allocs)
		}
	}
}

func TestAllKindsAreMeasured(t *testing.T) {
	var measured []string
	for _, c := range deciding {
		measured = append(measured, c.spec.Kind)
	}
	slices.Sort(measured)
	if !slices.Equal(measured, serving.PolicyKinds()) {
		t.Errorf("measured are %v, and there are %v", measured, serving.PolicyKinds())
	}
}

// decider is one decision of a policy that has learned.
func decider(t testing.TB, spec *serving.PolicySpec) func() {
	app, candidates := appOf(spec)
	policy, err := kinds.New(app, agreeable{})
	require.NoError(t, err)
	query := &selection.Query{
		User: "ann", Budget: 20 * time.Millisecond, Now: time.Unix(1e9, 0), Rand: rand.New(rand.NewPCG(1, 1)),
		Input: conformance.Doubles(1, -2, 3, 0.5, 0, 1, 2, -1, 4, 0, 0, 1, 2, 3, 1, 1),
	}
	answers := make([]selection.Answer, choices)
	for i := range answers {
		confidence := 0.5 + float64(i)/(4*choices)
		answers[i].Output = conformance.Number(float64(i % 3))
		answers[i].Output.Confidence = &confidence
	}
	var state *selection.State
	if learner, learns := policy.(selection.Learner); learns {
		state = taught(learner, candidates, query, answers)
	}
	var plan selection.Plan
	return func() {
		plan.Reset()
		policy.Select(state, query, candidates, &plan)
		d := policy.Combine(state, &plan, answers[:len(plan.Asks)], selection.Moment{Budget: query.Budget})
		if !d.Done || d.Output == nil {
			t.Fatalf("%s decides %+v", spec.Kind, d)
		}
	}
}

// appOf is an app of ten models, or of one model in ten versions where the policy
// chooses from those.
func appOf(spec *serving.PolicySpec) (*serving.App, []selection.Candidate) {
	app := &serving.App{Name: "app", Policy: *spec, OutputType: serving.OutputNumber}
	candidates := make([]selection.Candidate, choices)
	for i := range candidates {
		c := &candidates[i]
		*c = selection.Candidate{Ready: true, Cost: 1, Median: time.Millisecond, P95: 3 * time.Millisecond}
		if c.Model, c.Version = fmt.Sprint("m", i), "1"; spec.Kind == serving.PolicyVersions {
			c.Model, c.Version = "m0", fmt.Sprint("v", i)
		}
		app.Models = append(app.Models, c.Model)
	}
	app.Models = slices.Compact(app.Models)
	return app, candidates
}

// taught is a state after feedback for each of the models.
func taught(l selection.Learner, candidates []selection.Candidate, q *selection.Query, answers []selection.Answer) *selection.State {
	var ids []serving.ModelID
	for i := range candidates {
		ids = append(ids, candidates[i].ModelID)
	}
	state := l.New(ids)
	for round := range 20 * choices {
		at := round % choices
		loss := float64(at) / choices
		state = l.Train(state, &selection.Feedback{Input: q.Input, Label: conformance.Number(1), Loss: loss, Outcomes: []selection.Outcome{
			{ModelID: ids[at], Probability: 1, Output: answers[at].Output, Loss: loss, Judged: true},
		}})
	}
	return state
}

// agreeable is a model that decides the same always, in no time.
type agreeable struct{}

func (agreeable) Ask(context.Context, string, []byte) ([]byte, error) {
	return []byte(`{"ask":["m0","m1","m2","m3","m4","m5","m6","m7","m8","m9"],"model":"m3","state":{"seen":1}}`), nil
}

package ensemble_test

import (
	"testing"

	"github.com/topsail-serving/topsail/gateway/selection"
	"github.com/topsail-serving/topsail/gateway/selection/conformance"
	"github.com/topsail-serving/topsail/gateway/selection/ensemble"
	"github.com/topsail-serving/topsail/serving"
)

// kind makes a policy of this package.
type kind func(spec serving.PolicySpec, links []string, output serving.OutputType) selection.Policy

func kinds() map[string]kind {
	return map[string]kind{
		serving.PolicyExp4:     of(ensemble.NewExp4),
		serving.PolicyVote:     of(ensemble.NewVote),
		serving.PolicyMean:     of(ensemble.NewMean),
		serving.PolicyMedian:   of(ensemble.NewMedian),
		serving.PolicyBest:     of(ensemble.NewBest),
		serving.PolicyLogistic: of(ensemble.NewLogistic),
		serving.PolicyStacking: of(ensemble.NewStacking),
	}
}

func of[P selection.Policy](make func(serving.PolicySpec, []string, serving.OutputType) P) kind {
	return func(spec serving.PolicySpec, links []string, output serving.OutputType) selection.Policy {
		return make(spec, links, output)
	}
}

func TestConformance(t *testing.T) {
	for name, c := range map[string]struct {
		kind   string
		spec   serving.PolicySpec
		output serving.OutputType
		makes  func(float64) *serving.Output
		allocs float64 // of making an output
		strict bool
	}{
		"exp4 of labels":       {kind: "exp4", output: serving.OutputLabel, makes: conformance.Label},
		"exp4 of numbers":      {kind: "exp4", output: serving.OutputNumber, makes: conformance.Number, allocs: 5},
		"exp4 of vectors":      {kind: "exp4", output: serving.OutputVector, makes: conformance.Vector, allocs: 7},
		"exp4 of two, by cost": {kind: "exp4", spec: serving.PolicySpec{Most: 2, ByCost: true}, makes: conformance.Label},
		"vote":                 {kind: "vote", makes: conformance.Label},
		"vote of vectors":      {kind: "vote", output: serving.OutputVector, makes: conformance.Vector},
		"vote of numbers":      {kind: "vote", output: serving.OutputNumber, makes: conformance.Number},
		"consensus":            {kind: "vote", spec: serving.PolicySpec{Agreement: 0.6}, makes: conformance.Label, allocs: 5, strict: true},
		"weak consensus":       {kind: "vote", spec: serving.PolicySpec{Agreement: 0.3}, makes: conformance.Label, allocs: 5, strict: true},
		"consensus in time":    {kind: "vote", spec: serving.PolicySpec{Agreement: 0.6, WithinMicros: 9000}, makes: conformance.Label},
		"mean":                 {kind: "mean", makes: conformance.Number, allocs: 5},
		"mean of vectors":      {kind: "mean", output: serving.OutputVector, makes: conformance.Vector, allocs: 7},
		"median":               {kind: "median", makes: conformance.Number, allocs: 5},
		"median of vectors":    {kind: "median", output: serving.OutputVector, makes: conformance.Vector, allocs: 7},
		"best":                 {kind: "best", makes: conformance.Label},
		"best in time":         {kind: "best", spec: serving.PolicySpec{WithinMicros: 7000}, makes: conformance.Label},
		"best by qualifier":    {kind: "best", spec: serving.PolicySpec{Qualifier: "margin"}, makes: conformance.Label},
		"logistic":             {kind: "logistic", makes: conformance.Number},
		"logistic of two":      {kind: "logistic", spec: serving.PolicySpec{Most: 2}, makes: conformance.Number},
		"stacking":             {kind: "stacking", makes: conformance.Number, allocs: 5},
		"stacking of vectors":  {kind: "stacking", output: serving.OutputVector, makes: conformance.Vector, allocs: 7},
	} {
		c.spec.Kind = c.kind
		t.Run(name, func(t *testing.T) {
			conformance.Run(t, conformance.Case{
				New:      func(links []string) selection.Policy { return kinds()[c.kind](c.spec, links, c.output) },
				Output:   c.makes,
				Ordered:  true, // it breaks ties
				Declines: c.strict,
				Allocs:   c.allocs,
			})
		})
	}
}

func BenchmarkSelectAndCombine(b *testing.B) {
	for name, c := range map[string]struct {
		kind   string
		output serving.OutputType
		makes  func(float64) *serving.Output
	}{
		"exp4":            {"exp4", serving.OutputLabel, conformance.Label},
		"exp4_of_numbers": {"exp4", serving.OutputNumber, conformance.Number},
		"vote":            {"vote", serving.OutputLabel, conformance.Label},
		"vote_on_numbers": {"vote", serving.OutputNumber, conformance.Number},
		"mean":            {"mean", serving.OutputNumber, conformance.Number},
		"mean_of_vectors": {"mean", serving.OutputVector, conformance.Vector},
		"median":          {"median", serving.OutputNumber, conformance.Number},
		"best":            {"best", serving.OutputLabel, conformance.Label},
		"logistic":        {"logistic", serving.OutputNumber, conformance.Number},
		"stacking":        {"stacking", serving.OutputNumber, conformance.Number},
	} {
		b.Run(name, func(b *testing.B) {
			q := crowd(10, c.output, c.makes)
			policy := kinds()[c.kind](serving.PolicySpec{Kind: c.kind}, q.links, c.output)
			var state *selection.State
			if l, learns := policy.(selection.Learner); learns {
				state = l.New(q.ids())
			}
			var plan selection.Plan
			b.ReportAllocs()
			for b.Loop() {
				plan.Reset()
				policy.Select(state, nil, q.candidates, &plan)
				if d := policy.Combine(state, &plan, q.answers, selection.Moment{}); !d.Done {
					b.Fatal("not decided")
				}
			}
		})
	}
}

// asking is a query with all its answers.
type asking struct {
	links      []string
	candidates []selection.Candidate
	answers    []selection.Answer
}

func crowd(n int, output serving.OutputType, makes func(float64) *serving.Output) *asking {
	q := &asking{}
	for i := range n {
		id := serving.ModelID{Model: string(rune('a' + i)), Version: "1"}
		q.links = append(q.links, id.Model)
		q.candidates = append(q.candidates, selection.Candidate{ModelID: id, Ready: true, Cost: 1})
		q.answers = append(q.answers, selection.Answer{Output: makes(float64(i % 3))})
	}
	return q
}

func (q *asking) ids() (list []serving.ModelID) {
	for i := range q.candidates {
		list = append(list, q.candidates[i].ModelID)
	}
	return list
}

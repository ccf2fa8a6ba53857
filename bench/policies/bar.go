package main

import (
	"fmt"
	"slices"

	"github.com/topsail-serving/topsail/serving"
)

// bar is something that is promised of a policy.
type bar struct {
	policy string
	what   string
	median float64
	good   int // seeds for which it holds
	enough int
}

func (b bar) String() string {
	verdict := "ok"
	if b.good < b.enough {
		verdict = "FAILED"
	}
	return fmt.Sprintf("%s: %s: median %.3f, holds for %d of %d seeds: %s", b.policy, b.what, b.median, b.good, seeds, verdict)
}

// promises of policies that follow change.
const (
	leaves   = 0.10 // the share of queries that still ask a model that has gone bad
	comeBack = 0.60 // and of those that ask it again when it has recovered
)

// judge holds what came out against what is promised.
func judge(results map[string][]*result, queries int) []bar {
	var bars []bar
	bad, good, soon := queries/3, queries*2/3, queries/12
	for _, kind := range []string{serving.PolicyThompson, serving.PolicyExp3, serving.PolicyUCB1, serving.PolicyEpsilonGreedy, serving.PolicyLinUCB} {
		r := of(results[drifting], kind)
		share := func(model string, since, from, to int, passes func(float64) bool, want string) {
			what := fmt.Sprintf("asks the %s model in %s of queries %d to %d after the change", model, want, from-since, to-since)
			bars = append(bars, newBar(kind, what, r.share(from, to), passes))
		}
		share("degraded", bad, bad+soon-window, bad+soon, under(leaves), "under 10 %")
		share("degraded", bad, bad+soon, good, under(leaves), "under 10 %")
		share("recovered", good, good+soon-window, good+soon, over(comeBack), "over 60 %")
		share("recovered", good, good+soon, queries, over(comeBack), "over 60 %")
	}
	for _, kind := range []string{serving.PolicyVote, serving.PolicyExp4} {
		r := of(results[ensembles], kind)
		bars = append(bars, newBar(kind, "errs less than the best single of five models with 16 pixels each, by", difference(r.bestErrors(), r.errors()), over(0)))
	}
	return bars
}

// newBar asks for all seeds but one.
func newBar(policy, what string, list []float64, passes func(float64) bool) bar {
	return bar{policy, what, median(list), count(list, passes), seeds - 1}
}

func difference(a, b []float64) []float64 {
	list := slices.Clone(a)
	for i := range list {
		list[i] -= b[i]
	}
	return list
}

// of is the result of a policy, which there must be.
func of(results []*result, policy string) *result {
	return results[slices.IndexFunc(results, func(r *result) bool { return r.policy == policy })]
}

// failures are an error for every promise that is not kept.
func failures(bars []bar) []error {
	var errs []error
	for _, b := range bars {
		if b.good < b.enough {
			errs = append(errs, fmt.Errorf("%v", b))
		}
	}
	return errs
}

package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/topsail-serving/topsail/serving"
)

// drilled is a result whose policy has asked model 0 in so many of each 100 queries of
// every twelfth.
func drilled(t *testing.T, policy string, percent [12]int) *result {
	r := &result{policy: policy}
	s := newTestStream(t, three(), 1, 12_000, true)
	one := &trace{}
	for q := range 12_000 {
		first := 1
		if q%100 < percent[q/1000] {
			first = 0
		}
		one.first, one.losses = append(one.first, first), append(one.losses, s.losses[first][q])
	}
	for range seeds {
		r.streams, r.traces = append(r.streams, s), append(r.traces, one)
	}
	return r
}

func TestMeasures(t *testing.T) {
	r := drilled(t, serving.PolicyUCB1, [12]int{0: 100, 1: 100, 2: 100, 3: 100, 4: 50, 8: 30, 9: 70, 10: 70, 11: 70})
	if got := r.share(4500, 5000)[0]; got != 0.5 {
		t.Errorf("share %v", got)
	}
	if got := r.until(4000, under(0.10))[0]; got != 1131 { // the window from 4,931 on has 19 of the last 50
		t.Errorf("below 10 %% after %v", got)
	}
	if got := r.until(4000, over(0.40))[0]; got != window {
		t.Errorf("above 40 %% after %v, not in the first window", got)
	}
	if got := r.until(8000, over(0.95))[0]; got != 4000 {
		t.Errorf("above 95 %% after %v, not never", got)
	}
	if got := r.regret(4000)[0]; got != 4000*(0.10-0.20) {
		t.Errorf("regret %v", got)
	}
	if best, own := r.bestErrors()[0], r.errors()[0]; best != 0.2 || own >= best || r.below() != seeds {
		t.Errorf("errors %v, of the best %v, %d below", own, best, r.below())
	}
}

func TestPromises(t *testing.T) {
	kept := [12]int{0: 95, 1: 95, 2: 95, 3: 95, 4: 9, 5: 9, 6: 9, 7: 9, 8: 61, 9: 61, 10: 61, 11: 61}
	slow, lost := kept, kept
	slow[4] = 10
	lost[8], lost[9], lost[10], lost[11] = 60, 60, 60, 60
	better := drilled(t, serving.PolicyVote, [12]int{0: 100})
	worse := drilled(t, serving.PolicyExp4, [12]int{4: 100})
	bars := judge(map[string][]*result{
		drifting:  {drilled(t, serving.PolicyThompson, kept), drilled(t, serving.PolicyExp3, slow), drilled(t, serving.PolicyUCB1, lost), drilled(t, serving.PolicyEpsilonGreedy, kept), drilled(t, serving.PolicyLinUCB, kept)},
		ensembles: {better, worse},
	}, 12_000)
	var broken []string
	for _, err := range failures(bars) {
		broken = append(broken, err.Error())
	}
	want := []string{
		"exp3: asks the degraded model in under 10 % of queries 800 to 1000 after the change: median 0.100, holds for 0 of 10 seeds: FAILED",
		"ucb1: asks the recovered model in over 60 % of queries 800 to 1000 after the change: median 0.600, holds for 0 of 10 seeds: FAILED",
		"ucb1: asks the recovered model in over 60 % of queries 1000 to 4000 after the change: median 0.600, holds for 0 of 10 seeds: FAILED",
		"exp4: errs less than the best single of five models with 16 pixels each, by: median -0.067, holds for 0 of 10 seeds: FAILED",
	}
	if !slices.Equal(broken, want) || len(bars) != 22 {
		t.Errorf("%d promises; broken:\n%s", len(bars), strings.Join(broken, "\n"))
	}
}

func TestSpread(t *testing.T) {
	if got := spread("%.1f", []float64{4, 1, 3}); got != "3.0 (1.0 to 4.0)" {
		t.Error(got)
	}
	if got := median([]float64{4, 1, 3, 2}); got != 2.5 {
		t.Error(got)
	}
}

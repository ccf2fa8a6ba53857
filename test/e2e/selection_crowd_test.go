//go:build system

package e2e

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/serving"
)

// ample is an objective for tests that are not about time.
const ample = 10 * time.Second

// loose is what answers may take beyond their objective, and what the machine is late by.
const loose = 20 * time.Millisecond

// watchLateness watches how late the machine wakes those who sleep, for others use it
// too. It returns how much later than their objective answers may be.
func watchLateness(t testing.TB) (allowed func() time.Duration) {
	ctx, cancel := context.WithCancel(t.Context())
	var worst time.Duration
	var watching sync.WaitGroup
	watching.Go(func() {
		for ctx.Err() == nil {
			start := time.Now()
			pause(ctx, time.Millisecond)
			worst = max(worst, time.Since(start))
		}
	})
	return func() time.Duration {
		cancel()
		watching.Wait()
		return loose + 2*worst
	}
}

// Ten models, of which one is silent for good: the others' answer leaves in time.
func TestAStalledModelIsMissingAndDelaysNobody(t *testing.T) {
	for _, kind := range []string{serving.PolicyVote, serving.PolicyBest} {
		t.Run(kind, func(t *testing.T) { stalls(t, kind) })
	}
}

func stalls(t *testing.T, kind string) {
	const slo = 100 * time.Millisecond
	h, stalled := newHouse(t), newGate()
	var names []string
	for i := range 10 {
		name := fmt.Sprintf("m%d", i)
		names = append(names, name)
		if i == 7 {
			h.model(name, says("dog").behind(stalled))
		} else {
			h.model(name, says([]string{"cat", "dog"}[i%2])) // 5 and 4, so that the last vote is waited for
		}
	}
	h.app("app", slo, serving.PolicySpec{Kind: kind}, names...)
	e := h.gateway("edge", memory{})
	whole := func() bool {
		a := e.ask("app", `{"input":[1]}`)
		return !a.Default && len(a.Missing) == 0
	}
	eventually(t, whole)
	stalled.shut()
	late := watchLateness(t)
	answers := e.askMany("app", 4, 50)
	alone := 0 // the machine may make others late
	for _, a := range answers {
		if !slices.Contains(a.Missing, "m7:1") {
			t.Fatalf("%s (default %v: %s), missing %v", a.Output, a.Default, a.Why, a.Missing)
		}
		if a.says() == "cat" && len(a.Missing) == 1 {
			alone++
		}
	}
	if alone < 170 {
		t.Errorf("in %d of 200 answers the stalled model alone is missing", alone)
	}
	p99 := quantile(answers, 0.99)
	t.Logf("p99 %v with an objective of %v", p99, slo)
	if len(answers) != 200 || p99 > slo+late() {
		t.Errorf("%d answers, p99 %v", len(answers), p99)
	}
	stalled.open()
	eventually(t, whole)
}

// One model of five is slow at random: who need not hear it, does not wait for it.
func TestSpeculationDoesNotWaitForTheSlowest(t *testing.T) {
	const each = 30
	speculative := map[string]serving.PolicySpec{
		"vote":             {Kind: serving.PolicyVote},
		"guaranteed":       {Kind: serving.PolicyGuaranteed, WithinMicros: 5000},
		"first_acceptable": {Kind: serving.PolicyFirstAcceptable},
	}
	measure := func(policy serving.PolicySpec) []answer {
		h := newHouse(t)
		names := []string{"m0", "m1", "m2", "m3", "m4"}
		for _, name := range names[:4] {
			h.model(name, says("cat").surely(0.9))
		}
		h.model("m4", says("cat").surely(0.5).after(pareto(10*time.Millisecond, 1.2, 150*time.Millisecond)))
		h.app("app", ample, policy, names...)
		e := h.gateway("edge", memory{})
		answers := e.askMany("app", 1, each)
		for _, a := range answers {
			if a.Default || a.says() != "cat" {
				t.Errorf("%s answers %s (%s)", policy.Kind, a.Output, a.Why)
			}
		}
		return answers
	}
	all := measure(serving.PolicySpec{Kind: serving.PolicyBest})
	t.Logf("waiting for all: p50 %v, p95 %v", quantile(all, 0.5), quantile(all, 0.95))
	for name, policy := range speculative {
		answers := measure(policy)
		p50, p95 := quantile(answers, 0.5), quantile(answers, 0.95)
		t.Logf("%s: p50 %v, p95 %v", name, p50, p95)
		if len(answers) != each || p95 > quantile(all, 0.95) || p50 > quantile(all, 0.5) {
			t.Errorf("%s: %d answers, p50 %v, p95 %v", name, len(answers), p50, p95)
		}
	}
}

// pareto draws times of a Pareto distribution with a least and a most, the same ones for
// every policy.
func pareto(least time.Duration, shape float64, most time.Duration) func() time.Duration {
	var mu sync.Mutex
	chance := rand.New(rand.NewPCG(4, 2))
	return func() time.Duration {
		mu.Lock()
		defer mu.Unlock()
		return min(most, time.Duration(float64(least)/math.Pow(1-chance.Float64(), 1/shape)))
	}
}

//go:build system

package e2e

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/serving"
)

// The fast model bounds the time of the answer, and the good one wins when it is there.
func TestGuaranteedAnswersInItsTime(t *testing.T) {
	const within = 50 * time.Millisecond
	h, slow := newHouse(t), newGate()
	h.model("fast", says("rough"))
	h.model("good", says("fine").behind(slow))
	h.app("app", ample, serving.PolicySpec{Kind: serving.PolicyGuaranteed, Models: []string{"fast", "good"}, WithinMicros: within.Microseconds()}, "good", "fast")
	e := h.gateway("edge", memory{})
	fine := func() bool { return e.ask("app", `{"input":[1]}`).says() == "fine" }
	eventually(t, fine)
	slow.shut()
	a := e.wants("app", `{"input":[2],"explain":true}`, "rough")
	if a.took < within || a.took > ample/2 || a.Explanation.Ended != "time" || fmt.Sprint(a.Missing) != "[good:1]" {
		t.Errorf("it took %v, ended by %s, missing %v", a.took, a.Explanation.Ended, a.Missing)
	}
	slow.open()
	eventually(t, fine)
}

// The expensive model is asked only when the cheap one is not sure.
func TestACascadeGoesOnWhenInDoubt(t *testing.T) {
	h := newHouse(t)
	var expensive atomic.Int64
	h.model("cheap", says("cat").sure(func(x float64) float64 {
		if x < 10 {
			return 0.95
		}
		return 0.3
	}))
	h.model("dear", says("dog").counted(&expensive))
	h.app("app", ample, serving.PolicySpec{Kind: serving.PolicyCascade, Models: []string{"cheap", "dear"}, Confidence: 0.9}, "cheap", "dear")
	e := h.gateway("edge", memory{})
	for i := range 20 {
		want := "cat"
		if i >= 10 {
			want = "dog"
		}
		e.wants("app", fmt.Sprintf(`{"input":[%d]}`, i), want)
	}
	if n := expensive.Load(); n != 10 {
		t.Errorf("the expensive model was asked %d times, want 10", n)
	}
}

// What is not needed any more is taken back: few of the questions reach the slow model.
func TestTheFirstAcceptableAnswerTakesTheOthersBack(t *testing.T) {
	h, slow := newHouse(t), newGate()
	var seen atomic.Int64
	h.model("quick", says("cat").surely(0.95))
	h.model("slow", says("dog").behind(slow).counted(&seen))
	h.app("app", ample, serving.PolicySpec{Kind: serving.PolicyFirstAcceptable}, "quick", "slow")
	h.app("slow", ample, serving.PolicySpec{}, "slow")
	e := h.gateway("edge", memory{})
	slow.shut()
	for i := range 40 {
		if a := e.wants("app", fmt.Sprintf(`{"input":[%d]}`, i), "cat"); len(a.Shed) > 0 || a.took > ample/2 {
			t.Fatalf("shed %v, after %v", a.Shed, a.took)
		}
	}
	slow.open()
	e.wants("slow", `{"input":[99]}`, "dog") // behind all that were not taken back
	if n := seen.Load(); n > 20 {
		t.Errorf("the slow model saw %d inputs of 41", n)
	}
	t.Logf("the slow model saw %d inputs of 41", seen.Load())
}

// A second replica is asked when the first takes longer than nearly all answers do.
func TestAHedgeAsksTheOtherReplica(t *testing.T) {
	h, gates := newHouse(t), []*gate{newGate(), newGate()}
	v := h.version("m", "1")
	for _, g := range gates {
		h.replica(v, says("cat").behind(g))
	}
	h.app("app", ample, serving.PolicySpec{Kind: serving.PolicyHedge, Share: 0.5}, "m")
	e := h.gateway("edge", memory{})
	e.askMany("app", 1, 50)
	for i := range 30 { // one after the other is stuck
		g := gates[i%2]
		g.shut()
		if a := e.wants("app", fmt.Sprintf(`{"input":[%d]}`, i), "cat"); a.took > ample/4 { // half of it without the policy
			t.Errorf("the answer took %v", a.took)
		}
		g.open()
	}
	if n := e.value("topsail_gateway_extra_calls_total"); n == 0 {
		t.Error("no second replica was asked")
	}
}

// A shadow is compared and never answered with, whatever it does.
func TestAShadowIsComparedOnly(t *testing.T) {
	h, stuck := newHouse(t), newGate()
	h.model("m", says("cat"))
	h.model("agrees", says("cat"))
	h.model("differs", says("dog"))
	h.model("fails", fails("no idea"))
	h.model("stuck", says("owl").behind(stuck))
	h.app("app", ample, serving.PolicySpec{Kind: serving.PolicyShadow}, "m", "agrees", "differs", "fails", "stuck")
	e := h.gateway("edge", memory{})
	stuck.shut()
	const n = 20
	for i := range n {
		if a := e.wants("app", fmt.Sprintf(`{"input":[%d]}`, i), "cat"); len(a.Missing) > 0 || a.took > ample/2 {
			t.Fatalf("missing %v, after %v", a.Missing, a.took)
		}
	}
	stuck.open()
	for model, want := range map[string][3]float64{"agrees": {n, n, n}, "differs": {n, n, 0}, "fails": {n, 0, 0}, "stuck": {n, n, 0}} {
		is := func() (is [3]float64) {
			for i, event := range []string{"asked", "answered", "agreed"} {
				is[i] = e.value(fmt.Sprintf(`topsail_selection_models_total{app="app",event=%q,model=%q,version="1"}`, event, model))
			}
			return is
		}
		eventually(t, func() bool { return is() == want })
	}
}

// Numbers are put together, and the surest answer is found.
func TestEnsemblesCombine(t *testing.T) {
	h := newHouse(t)
	var links []string
	for i, x := range []float64{1, 2, 9} {
		name := fmt.Sprintf("m%d", i)
		links = append(links, name)
		h.model(name, tells(serving.Number(x)).surely([]float64{0.4, 0.9, 0.7}[i]))
	}
	for _, kind := range []string{serving.PolicyMean, serving.PolicyMedian, serving.PolicyBest, serving.PolicyVote} {
		h.app(kind, ample, serving.PolicySpec{Kind: kind}, links...)
	}
	h.app("weighted", ample, serving.PolicySpec{Kind: serving.PolicyMean, Weights: map[string]float64{"m0": 1, "m1": 1, "m2": 2}}, links...)
	h.app("consensus", ample, serving.PolicySpec{Kind: serving.PolicyVote, Agreement: 0.5}, links...)
	e := h.gateway("edge", memory{})
	for app, want := range map[string]string{"mean": "4.0", "median": "2.0", "best": "2.0", "vote": "1.0", "weighted": "5.25"} {
		e.wants(app, `{"input":[1]}`, want)
	}
	if a := e.ask("consensus", `{"input":[1]}`); !a.Default || a.says() != "-1" {
		t.Errorf("without agreement the answer is %+v, want the default", a)
	}
}

// The explanation says who was asked and said what, with which weight, and why it ended.
func TestAnAnswerExplainsItself(t *testing.T) {
	h, stuck := newHouse(t), newGate()
	h.model("a", says("cat").surely(0.6))
	h.model("b", fails("too blue"))
	h.model("c", says("dog").behind(stuck))
	h.app("app", ample, serving.PolicySpec{Kind: serving.PolicyVote, WithinMicros: 200_000, Weights: map[string]float64{"a": 1, "b": 1, "c": 2}}, "a", "b", "c")
	e := h.gateway("edge", memory{})
	stuck.shut()
	a := e.wants("app", `{"input":[1],"explain":true}`, "cat")
	x := a.Explanation
	if x == nil || x.Policy != "vote" || x.Ended != "time" || x.Confidence != 0.25 || x.Budget <= 0 || x.Elapsed < 200_000 || len(x.Models) != 3 {
		t.Fatalf("explained by %+v", x)
	}
	for _, m := range x.Models {
		if !m.Asked || m.Cached || m.Shadow || m.Shed || m.Probability != 1 {
			t.Errorf("%+v", m)
		}
		var right bool
		switch m.Model {
		case "a:1":
			right = m.Answered && string(m.Output) == `"cat"` && m.Weight == 0.25 && m.Confidence != nil && *m.Confidence == 0.6 && m.Took > 0 && m.Failure == ""
		case "b:1":
			right = !m.Answered && m.Output == nil && m.Weight == 0.25 && m.Failure == "Model error: too blue"
		case "c:1":
			right = !m.Answered && m.Output == nil && m.Weight == 0.5 && m.Took == 0 && m.Failure == ""
		}
		if !right {
			t.Errorf("%+v", m)
		}
	}
	stuck.open()
	if a := e.ask("app", `{"input":[1]}`); a.Explanation != nil {
		t.Error("explained though nobody asked for it")
	}
}

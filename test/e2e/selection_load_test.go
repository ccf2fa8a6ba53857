//go:build system

package e2e

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/serving"
)

// Two apps ask three models, two of which cannot keep up: these are left out rather than
// objectives missed, and the apps share what there is of them by their weights.
func TestUnderLoadOptionalModelsAreLeftOut(t *testing.T) {
	const slo = 100 * time.Millisecond
	h := newHouse(t)
	h.model("quick", tells(serving.Number(3)))
	for _, name := range []string{"slow1", "slow2"} {
		v := h.version(name, "1")
		v.Batch = serving.BatchSpec{Strategy: "fixed", MaxSize: 1}
		h.replica(v, tells(serving.Number(3)).after(func() time.Duration { return 20 * time.Millisecond })) // 50 a second
	}
	policy := serving.PolicySpec{Kind: serving.PolicyMean, Weights: map[string]float64{"quick": 3, "slow1": 1, "slow2": 1}}
	h.app("gold", slo, policy, "quick", "slow1", "slow2").Weight = 3
	h.app("iron", slo, policy, "quick", "slow1", "slow2").Weight = 1
	e := h.gateway("edge", memory{})

	e.flood(1200 * time.Millisecond) // until it is known how much there is to share
	var wrong []string
	for range 3 { // others use the machine, too
		if wrong = shares(t, e, slo); len(wrong) == 0 {
			return
		}
		t.Log("once more, because of ", strings.Join(wrong, "; "))
	}
	t.Error(strings.Join(wrong, "; "))
}

// shares floods the gateway, and says what is not as it should be.
func shares(t *testing.T, e *edge, slo time.Duration) (wrong []string) {
	t.Helper()
	say := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	allowed := watchLateness(t)
	before := e.askedOf("slow1")
	for app, answers := range e.flood(2200 * time.Millisecond) {
		late := 0 // by the machine
		for _, a := range answers {
			if a.Default || slices.Contains(a.Missing, "quick:1") {
				late++
			} else if !near(a, 3) {
				t.Fatalf("%s: %s, missing %v", app, a.Output, a.Missing)
			}
			if slices.ContainsFunc(a.Shed, func(model string) bool { return !slices.Contains(a.Missing, model) }) {
				t.Fatalf("shed %v, missing %v", a.Shed, a.Missing)
			}
		}
		if late > len(answers)/20 {
			say("%s: %d of %d answers are without the quick model", app, late, len(answers))
		}
		whole := len(slices.DeleteFunc(slices.Clone(answers), func(a answer) bool { return len(a.Shed) > 0 }))
		p99 := quantile(answers, 0.99)
		t.Logf("%s: %d answers, %d of them with all models, p99 %v", app, len(answers), whole, p99)
		if whole > len(answers)*3/4 {
			say("%s: %d of %d answers are with all models, which is more than there is", app, whole, len(answers))
		}
		if p99 > slo+allowed() {
			say("%s: p99 %v, with an objective of %v", app, p99, slo)
		}
	}
	asked := e.askedOf("slow1")
	gold, iron := asked["gold"]-before["gold"], asked["iron"]-before["iron"]
	t.Logf("slow1 was asked %v and %v times", gold, iron)
	if gold < 2*iron || gold > 5*iron {
		say("slow1 was asked %v and %v times, want about 3 to 1", gold, iron)
	}
	return wrong
}

// flood has ten clients of each app ask 125 times a second together.
func (e *edge) flood(of time.Duration) map[string][]answer {
	all := map[string][]answer{}
	var mu sync.Mutex
	var running sync.WaitGroup
	for _, app := range []string{"gold", "iron"} {
		for range 10 {
			running.Go(func() {
				answers := e.askSteadily(app, 80*time.Millisecond, of)
				mu.Lock()
				defer mu.Unlock()
				all[app] = append(all[app], answers...)
			})
		}
	}
	running.Wait()
	return all
}

// askedOf is how often each app has asked a model.
func (e *edge) askedOf(model string) map[string]float64 {
	asked := map[string]float64{}
	for _, app := range []string{"gold", "iron"} {
		asked[app] = e.value(fmt.Sprintf(`topsail_selection_models_total{app=%q,event="asked",model=%q,version="1"}`, app, model))
	}
	return asked
}

// near says whether an answer is a number, but for rounding.
func near(a answer, want float64) bool {
	x, err := strconv.ParseFloat(a.says(), 64)
	return err == nil && math.Abs(x-want) < 1e-9
}

// askSteadily asks at intervals until a time is over, and later where answers take longer.
func (e *edge) askSteadily(app string, interval, of time.Duration) (answers []answer) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for end := time.Now().Add(of); time.Now().Before(end); {
		a, err := e.query(app, fmt.Sprintf(`{"input":[%d]}`, len(answers)))
		if err != nil {
			e.t.Errorf("ask %s: %v", app, err)
			return answers
		}
		answers = append(answers, a)
		<-tick.C
	}
	return answers
}

// Who has less time than a model needs, gets an answer without it; where the others are
// silent, it is the objective that was missed.
func TestWhatTakesTooLongIsLeftOut(t *testing.T) {
	h, silent := newHouse(t), newGate()
	h.model("first", says("cat"))
	h.model("slow", says("cat").after(func() time.Duration { return 400 * time.Millisecond }))
	h.model("third", says("cat"))
	h.model("m1", says("cat").behind(silent))
	h.model("m2", says("cat").behind(silent))
	best := serving.PolicySpec{Kind: serving.PolicyBest}
	h.app("app", ample, best, "first", "slow", "third")
	h.app("other", ample, best, "m1", "slow", "m2")
	e := h.gateway("edge", memory{})
	if a := e.wants("app", `{"input":[1]}`, "cat"); len(a.Missing) > 0 {
		t.Fatalf("missing %v", a.Missing)
	}
	hasty := func(app string) (a answer) {
		t.Helper()
		eventually(t, func() bool { // once a second it is tried whether it is faster now
			a = e.ask(app, `{"input":[2],"slo_micros":200000}`)
			return len(a.Shed) > 0
		})
		return a
	}
	if a := hasty("app"); a.says() != "cat" || fmt.Sprint(a.Shed) != "[slow:1]" || !slices.Contains(a.Missing, "slow:1") {
		t.Errorf("%s, shed %v, missing %v", a.Output, a.Shed, a.Missing)
	}
	silent.shut()
	a := hasty("other")
	if !a.Default || fmt.Sprint(a.Shed, a.Missing) != "[slow:1] [m1:1 slow:1 m2:1]" {
		t.Errorf("default %v, shed %v, missing %v", a.Default, a.Shed, a.Missing)
	}
	if want := (&serving.Failure{Cause: serving.MissedSLO}).Explain(); a.Why != want {
		t.Errorf("the reason is %q, want %q", a.Why, want)
	}
	silent.open()
}

package predict

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/rpc"
	"github.com/topsail-serving/topsail/serving"
)

// nests registers "app", whose last stage asks "inner", which chooses between models a and b.
func (r *rig) nests(change func(inner *serving.App), stages ...serving.Stage) {
	r.staged(func(cat *serving.Catalog) {
		inner := newApp("inner", "a", "b")
		inner.Policy = serving.PolicySpec{Kind: serving.PolicyPrefer, Order: []string{"a", "b"}}
		if change != nil {
			change(inner)
		}
		cat.Apps["inner"] = inner
	}, stages...)
}

func appStage(name, app string, after ...string) serving.Stage {
	return serving.Stage{Name: name, App: app, After: after}
}

// A stage asks another app, whose policy decides, and which counts the query as its own.
func TestAStageAsksAnApp(t *testing.T) {
	bubble(t, func(t *rig) {
		m := t.replica("rm", plus(1, time.Millisecond), m1)
		t.replica("r", by(map[string]behaviour{"a": fails(rpc.StatusModelError, "no"), "b": plus(10, 2*time.Millisecond)}), a1, b1)
		t.nests(nil, stage("first", "m"), appStage("second", "inner"), stage("third", "m"))
		q := newQuery(7)
		q.Explain = true
		p, took := t.predict(q)
		t.wantOutput(p, 19)
		if took != 4*time.Millisecond || p.Model != m1 || len(m.questions()) != 2 {
			t.Errorf("it took %v: %+v", took, p)
		}
		if e := p.Explained.Models; len(e) != 3 || e[1].App != "inner" || e[1].ModelID != b1 || string(e[1].Output) != "18.0" || e[0].App != "" {
			t.Errorf("explained %+v", e)
		}
		for _, app := range []string{"app", "inner"} {
			if n := t.metric(`topsail_gateway_answers_total{app="` + app + `",cause="ok"}`); n != 1 {
				t.Errorf("app %s counts %v answers", app, n)
			}
		}

		t.nests(nil, stage("first", "m"), appStage("last", "inner"))
		p, _ = t.predict(newQuery(8))
		t.wantOutput(p, 19)
		if p.Model != b1 {
			t.Errorf("answered by %v, want the model that the app chose", p.Model)
		}
		p, took = t.predict(newQuery(8))
		if t.wantOutput(p, 19); took != 0 || !p.Cached {
			t.Errorf("the same again took %v: %+v", took, p)
		}
	})
}

// The default of an app is no output of a stage: it fails as the app says, within its time.
func TestAnAppThatFailsAsAStage(t *testing.T) {
	tests := map[string]struct {
		change func(inner *serving.App)
		behave behaviour
		cause  serving.Cause
		why    string
		took   time.Duration
	}{
		"failure": {nil, fails(rpc.StatusModelError, "ValueError: no"), serving.ModelError, "stage last: app inner: ", 0},
		"silence": {nil, silent, serving.MissedSLO, "within the specified latency SLO", slo - 2*margin},
		"its own objective": {func(inner *serving.App) { inner.SLO = serving.Duration(10 * time.Millisecond) }, silent, serving.MissedSLO,
			"within the specified latency SLO", 9500 * time.Microsecond},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *rig) {
				t.replica("r", by(map[string]behaviour{"m": echoes(0), "a": test.behave, "b": test.behave}), m1, a1, b1)
				t.nests(test.change, stage("first", "m"), appStage("last", "inner"))
				p, took := t.predict(newQuery(7))
				t.wantDefault(p, test.cause)
				if !strings.Contains(p.Explanation, test.why) || took != test.took {
					t.Errorf("after %v: %q, want %q after %v", took, p.Explanation, test.why, test.took)
				}
			})
		})
	}
	bubble(t, func(t *rig) {
		t.replica("rm", echoes(0), m1)
		t.staged(nil, stage("first", "m"), appStage("last", "gone"))
		p, _ := t.predict(newQuery(7))
		t.wantDefault(p, serving.NoReplica)
	})
}

// A stage before an app leaves it the time that it usually takes.
func TestTheTimeThatAnAppTakesAsAStage(t *testing.T) {
	bubble(t, func(t *rig) {
		const usual = 30 * time.Millisecond
		m := t.replica("rm", echoes(0), m1)
		t.replica("r", by(map[string]behaviour{"a": plus(1, usual), "b": plus(1, usual)}), a1, b1)
		t.nests(nil, stage("first", "m"), appStage("last", "inner"))
		for x := range 20 {
			t.predict(newQuery(float64(x)))
		}
		asked := m.questions()
		if first, last := asked[0].budget, asked[len(asked)-1].budget; first < slo-2*margin || last > slo-usual || last < slo-usual-2*margin {
			t.Errorf("the first stage had %v at first, and then %v of %v", first, last, slo)
		}
	})
}

// What a client leaves, or another stage's failure ends, is taken back from the app's models. A query to learn from leaves
// no trace in the app.
func TestAnAppThatIsLeft(t *testing.T) {
	bubble(t, func(t *rig) {
		t.replica("rm", echoes(0), m1)
		f := t.replica("r", silent, a1, b1)
		t.nests(nil, stage("first", "m"), appStage("last", "inner"))
		ctx, cancel := context.WithCancel(context.Background())
		time.AfterFunc(watchAfter+5*time.Millisecond, cancel)
		if _, err := one(ctx, t.p, newQuery(7)); err == nil {
			t.Error("it got an answer")
		}
		t.settle()
		if f.cancelled() != 1 {
			t.Errorf("%d questions were taken back, want that of the app", f.cancelled())
		}
	})
	bubble(t, func(t *rig) {
		t.replica("r", by(map[string]behaviour{"m": echoes(0), "a": plus(1, 0), "b": plus(1, 0)}), m1, a1, b1)
		t.nests(nil, stage("first", "m"), appStage("last", "inner"))
		p, err := t.p.DryRun(t.ctx, newQuery(7), time.Second)
		if err != nil || p.Default || string(p.Output) != "8.0" {
			t.Errorf("%+v, error %v", p, err)
		}
		if n := t.metric(`topsail_gateway_answers_total{app="inner",cause="ok"}`); n != 0 {
			t.Errorf("%v answers are counted", n)
		}
	})
}

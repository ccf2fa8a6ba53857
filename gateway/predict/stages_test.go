package predict

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/rpc"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/test/require"
)

// plus answers with the input's first number and x more.
func plus(x float64, after time.Duration) behaviour {
	return func(q arrival) (rpc.Answer, time.Duration) { return number(q.x + x), after }
}

// staged registers "app", which asks the models of stages.
func (r *rig) staged(change func(cat *serving.Catalog), stages ...serving.Stage) {
	a := newApp("app")
	a.Stages = stages
	require.NoError(r, a.Check())
	cat := newCatalog([]*serving.App{a}, newModel(a1), newModel(b1), newModel(c1), newModel(m1))
	if change != nil {
		change(cat)
	}
	r.set(cat)
}

func stage(name, model string, after ...string) serving.Stage {
	return serving.Stage{Name: name, Model: model, After: after}
}

func TestModelsAreAskedOneAfterAnother(t *testing.T) {
	bubble(t, func(t *rig) {
		a, b := t.replica("ra", plus(10, time.Millisecond), a1), t.replica("rb", plus(100, 2*time.Millisecond), b1)
		t.staged(nil, stage("first", "a"), stage("second", "b"))
		p, took := t.predict(newQuery(7))
		t.wantOutput(p, 117)
		if took != 3*time.Millisecond || p.Model != b1 || p.Cached {
			t.Errorf("it took %v: %+v", took, p)
		}
		if q := b.questions()[0]; q.x != 17 || q.budget > slo-time.Millisecond {
			t.Errorf("the second model was asked %+v", q)
		}
		p, took = t.predict(newQuery(7))
		t.wantOutput(p, 117)
		if took != 0 || !p.Cached || len(a.questions()) != 1 {
			t.Errorf("the same again took %v: %+v", took, p)
		}
		if n := t.metric(`topsail_gateway_answers_total{app="app",cause="ok"}`); n != 2 {
			t.Errorf("%v answers counted, want those to clients", n)
		}
	})
}

func TestBranchesAreAskedSideBySide(t *testing.T) {
	bubble(t, func(t *rig) {
		t.replica("r", by(map[string]behaviour{
			"m": plus(1, time.Millisecond), "a": plus(10, 5*time.Millisecond), "b": plus(100, 7*time.Millisecond), "c": echoes(time.Millisecond),
		}), m1, a1, b1, c1)
		t.staged(func(cat *serving.Catalog) { cat.Models["c"].Versions["1"].InputLength = 2 },
			stage("decode", "m"), stage("left", "a"), stage("right", "b", "decode"), stage("rank", "c", "left", "right"))
		p, took := t.predict(newQuery(1))
		t.wantOutput(p, 12)
		if took != 9*time.Millisecond {
			t.Errorf("it took %v", took)
		}
	})
}

func TestAStageThatFailsEndsTheQuery(t *testing.T) {
	for _, c := range []struct {
		behave behaviour
		cause  serving.Cause
		why    string
		took   time.Duration
	}{
		{fails(rpc.StatusModelError, "ValueError: no"), serving.ModelError, "Model error: stage second: ValueError: no", 0},
		{silent, serving.MissedSLO, "within the specified latency SLO", slo - margin},
		{func(arrival) (rpc.Answer, time.Duration) {
			return rpc.Answer{Payload: rpc.AppendPayload(nil, serving.Text("words"))}, 0
		}, serving.ModelError, "stage third: model c: the output is neither a number", 0},
	} {
		bubble(t, func(t *rig) {
			t.replica("ra", echoes(0), a1)
			t.replica("rb", c.behave, b1)
			third := t.replica("rc", echoes(0), c1)
			t.staged(nil, stage("first", "a"), stage("second", "b"), stage("third", "c"))
			p, took := t.predict(newQuery(7))
			t.wantDefault(p, c.cause)
			if !strings.Contains(p.Explanation, c.why) || took != c.took || len(third.questions()) != 0 {
				t.Errorf("after %v: %q, want %q after %v", took, p.Explanation, c.why, c.took)
			}
		})
	}
}

func TestAFailureEndsTheOtherBranch(t *testing.T) {
	bubble(t, func(t *rig) {
		t.replica("r", by(map[string]behaviour{"a": silent, "b": fails(rpc.StatusDropped, "dull"), "c": echoes(0)}), a1, b1, c1)
		t.staged(nil, stage("left", "a"), stage("right", "b", serving.QueryInput), stage("rank", "c", "left", "right"))
		p, took := t.predict(newQuery(7))
		t.wantDefault(p, serving.Dropped)
		if p.Explanation != "Dropped: stage right: dull" || took != 0 || p.Model != b1 {
			t.Errorf("after %v: %+v", took, p)
		}
	})
}

func TestStagesWithoutTheirModels(t *testing.T) {
	bubble(t, func(t *rig) {
		t.replica("ra", echoes(0), a1)
		t.staged(func(cat *serving.Catalog) { delete(cat.Models, "b") }, stage("first", "a"), stage("second", "b"))
		p, _ := t.predict(newQuery(7))
		t.wantDefault(p, serving.NoReplica)
		t.staged(nil, stage("first", "a"), stage("second", "b"))
		p, _ = t.predict(newQuery(8))
		t.wantDefault(p, serving.NoReplica)
		q := newQuery(7)
		q.Version = "1"
		if _, err := one(context.Background(), t.p, q); err == nil {
			t.Error("a query of stages named a version, and got it")
		}
		q = newQuery(7)
		q.Input = serving.Input{Type: serving.Strings, Data: []byte("7")}
		if _, err := one(context.Background(), t.p, q); err == nil {
			t.Error("a query of another type was asked")
		}
	})
}

func TestAClientThatLeavesStages(t *testing.T) {
	bubble(t, func(t *rig) {
		t.replica("ra", echoes(time.Millisecond), a1)
		f := t.replica("rb", silent, b1)
		t.staged(nil, stage("first", "a"), stage("second", "b"))
		ctx, cancel := context.WithCancel(context.Background())
		time.AfterFunc(2*watchAfter, cancel)
		if _, err := one(ctx, t.p, newQuery(7)); err == nil {
			t.Error("it got an answer")
		}
		t.settle()
		if f.cancelled() != 1 {
			t.Errorf("%d questions were taken back, want the second stage's", f.cancelled())
		}
	})
}

// A stage that once took longer than there is for all does not keep the ones before it from
// being asked.
func TestAStageThatWasSlow(t *testing.T) {
	bubble(t, func(t *rig) {
		var takes atomic.Int64
		takes.Store(int64(5 * slo))
		a := t.replica("ra", plus(10, time.Millisecond), a1)
		t.replica("rb", func(q arrival) (rpc.Answer, time.Duration) { return number(q.x + 100), time.Duration(takes.Load()) }, b1)
		t.staged(nil, stage("first", "a"), stage("second", "b"))
		p, _ := t.predict(newQuery(1))
		t.wantDefault(p, serving.MissedSLO)
		time.Sleep(10 * slo) // until it has answered after all
		takes.Store(int64(time.Millisecond))
		p, took := t.predict(newQuery(2))
		t.wantOutput(p, 112)
		if took != 2*time.Millisecond || len(a.questions()) != 2 {
			t.Errorf("it took %v, and the first stage was asked %d times", took, len(a.questions()))
		}
	})
}

// Who comes to a stage too late asks nobody.
func TestNoTimeForAStage(t *testing.T) {
	bubble(t, func(t *rig) {
		a := t.replica("ra", plus(10, time.Millisecond), a1)
		t.staged(nil, stage("first", "a"))
		q := newQuery(1)
		q.Received = time.Now().Add(-2 * slo)
		p, _ := t.predict(q)
		t.wantDefault(p, serving.MissedSLO)
		if n := len(a.questions()); n != 0 {
			t.Errorf("the model was asked %d times", n)
		}
	})
}

func TestABatchOfStages(t *testing.T) {
	bubble(t, func(t *rig) {
		t.replica("ra", plus(10, time.Millisecond), a1)
		t.replica("rb", plus(100, time.Millisecond), b1)
		t.staged(nil, stage("first", "a"), stage("second", "b"))
		qs := []serving.Query{*newQuery(1), *newQuery(2), *newQuery(3)}
		qs[1].Explain = true
		start := time.Now()
		for i, p := range t.batch(qs) {
			t.wantOutput(p, float64(111+i))
			if e := p.Explained; i == 1 && (len(e.Models) != 2 || string(e.Models[0].Output) != "12.0" || e.Models[1].Took != time.Millisecond) {
				t.Errorf("it is explained as %+v", e)
			}
		}
		if took := time.Since(start); took != 2*time.Millisecond {
			t.Errorf("the batch took %v", took)
		}
	})
}

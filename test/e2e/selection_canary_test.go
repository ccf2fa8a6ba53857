//go:build system

package e2e

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/serving"
)

// canary is a house where version 2 of a model is tried with half of the queries.
func canary(t *testing.T, tried model) (h *house, app *serving.App, bad *atomic.Int64) {
	h, bad = newHouse(t), &atomic.Int64{}
	h.replica(h.version("m", "1"), says("cat"))
	h.replica(h.version("m", "2"), tried.counted(bad))
	return h, h.app("app", 2*time.Second, serving.PolicySpec{Kind: serving.PolicyVersions, Canary: "2", Share: 0.5}, "m"), bad
}

// A version that fails is asked no more, and no client has seen an error meanwhile.
func TestACanaryThatFailsIsStopped(t *testing.T) {
	h, _, bad := canary(t, fails("broken"))
	e, in := h.learner()
	start := time.Now()
	for i := 0; ; i++ {
		e.wants("app", fmt.Sprintf(`{"input":[%d]}`, i), "cat")
		if s, _ := e.explain(in, "app", ""); s.Note != "" {
			break
		}
		if time.Since(start) > 20*time.Second {
			t.Fatalf("after %d bad answers the version is still tried", bad.Load())
		}
		pause(t.Context(), 15*time.Millisecond)
	}
	took, n := time.Since(start), bad.Load()
	t.Logf("stopped after %d bad answers and %v", n, took)
	if n > 50 && took > 10*time.Second {
		t.Errorf("stopped after %d bad answers and %v", n, took)
	}
	e.backOnTheOld(in, bad, "failed or came late")
}

// A version that is wrong is asked no more when feedback has said so.
func TestACanaryThatIsWrongIsStopped(t *testing.T) {
	h, _, bad := canary(t, says("dog"))
	e, in := h.learner()
	for i := range 300 {
		a := e.ask("app", fmt.Sprintf(`{"input":[%d]}`, i))
		e.teach("app", fmt.Sprintf(`{"query_id":%d,"label":"cat"}`, a.QueryID))
	}
	n := bad.Load()
	t.Logf("stopped after %d bad answers", n)
	if n > 50 {
		t.Errorf("%d answers were bad", n)
	}
	e.backOnTheOld(in, bad, "mean loss")
}

// A version that is silent is asked no more.
func TestACanaryThatIsSilentIsStopped(t *testing.T) {
	silent := newGate()
	silent.shut()
	h, app, bad := canary(t, says("cat").behind(silent))
	app.SLO = serving.Duration(400 * time.Millisecond)
	e, in := h.learner()
	start := time.Now()
	defaults := 0
	eventually(t, func() bool {
		for _, a := range e.askMany("app", 4, 5) {
			if a.Default {
				defaults++
			}
		}
		s, _ := e.explain(in, "app", "")
		return s.Note != ""
	})
	t.Logf("stopped after %d late answers and %v", defaults, time.Since(start))
	e.backOnTheOld(in, bad, "failed or came late")
}

// A version that is as good as the other is not stopped.
func TestACanaryThatIsWellGoesOn(t *testing.T) {
	h, _, good := canary(t, says("cat"))
	e, in := h.learner()
	for i := range 150 {
		a := e.wants("app", fmt.Sprintf(`{"input":[%d]}`, i), "cat")
		e.teach("app", fmt.Sprintf(`{"query_id":%d,"label":"cat"}`, a.QueryID))
	}
	if n := good.Load(); n < 40 || n > 110 {
		t.Errorf("version 2 had %d of 150 queries, want about half", n)
	}
	before := good.Load()
	e.wants("app", `{"input":[1],"version":"2"}`, "cat")
	if good.Load() != before+1 {
		t.Error("a query that names version 2 did not go there")
	}
	if s, _ := e.explain(in, "app", ""); s.Note != "" {
		t.Errorf("stopped: %s", s.Note)
	}
}

// backOnTheOld wants all queries to go to version 1, and the reason to be told.
func (e *edge) backOnTheOld(in memory, bad *atomic.Int64, why string) {
	e.t.Helper()
	eventually(e.t, func() bool { // the last who was asked of version 2 has come, and the gateway knows
		before := bad.Load()
		e.askMany("app", 1, 20)
		return bad.Load() == before
	})
	for i := range 50 {
		e.wants("app", fmt.Sprintf(`{"input":[%d]}`, 1000+i), "cat")
	}
	s, standings := e.explain(in, "app", "")
	if !strings.Contains(s.Note, "version 2 was stopped") || !strings.Contains(s.Note, why) {
		e.t.Errorf("the note is %q, want %q in it", s.Note, why)
	}
	if len(standings) != 2 || standings[0].Share != 1 || standings[1].Share != 0 {
		e.t.Errorf("the shares are %+v", standings)
	}
}

package predict

import (
	"testing"
	"time"

	"github.com/topsail-serving/topsail/serving"
)

// again is a query that is asked anew after a default that may pass.
func again(x float64) *serving.Query {
	q := newQuery(x)
	q.Again = true
	return q
}

// A replica has three objectives more for what is retried, and whoever asks does not.
func TestAReplicaHasLongerForWhatIsAskedAgain(t *testing.T) {
	for name, c := range map[string]struct {
		again   bool
		timeout time.Duration
		took    time.Duration
		budget  time.Duration
	}{
		"a query":                      {took: slo - margin, budget: slo - margin},
		"one that is retried":          {again: true, took: slo - margin, budget: 4*slo - margin},
		"with a limit of the client's": {again: true, timeout: slo / 2, took: slo/2 - margin, budget: slo/2 + 3*slo - margin},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *rig) {
				f := t.replica("a", silent, m1)
				t.serves(nil, m1)
				q := newQuery(1)
				q.Again, q.Timeout = c.again, c.timeout
				p, took := t.predict(q)
				t.wantDefault(p, serving.MissedSLO)
				if took != c.took {
					t.Errorf("whoever asked waited %v, want %v", took, c.took)
				}
				if asked := f.questions(); len(asked) != 1 || asked[0].budget != c.budget {
					t.Errorf("the replica was asked %+v, want a budget of %v", asked, c.budget)
				}
			})
		})
	}
}

// What comes within that time is the answer to the next try, and not late; the next try
// joins the question while it is open.
func TestWhatIsAskedAgainTakesTheOutputThatComesLater(t *testing.T) {
	bubble(t, func(t *rig) {
		f := t.replica("a", echoes(3*slo), m1)
		t.serves(nil, m1)
		for tries := range 4 {
			p, _ := t.predict(again(7))
			if tries < 3 {
				t.wantDefault(p, serving.MissedSLO)
			} else {
				t.wantOutput(p, 7)
			}
		}
		if n := len(f.questions()); n != 1 {
			t.Errorf("the replica was asked %d times", n)
		}
		if n := t.metric(`topsail_gateway_late_outputs_total{app="app"}`); n > 0 {
			t.Errorf("%v outputs were late", n)
		}
	})
}

// A replica that fails within the longer time has another one asked, after the first try
// has ended.
func TestWhatIsAskedAgainGoesToAnotherReplica(t *testing.T) {
	bubble(t, func(t *rig) {
		t.serves(nil, m1)
		dying := t.replica("a", silent, m1)
		p, _ := t.predict(again(7))
		t.wantDefault(p, serving.MissedSLO)
		other := t.replica("b", echoes(0), m1)
		t.stop(dying)
		t.settle()
		if n := len(other.questions()); n != 1 {
			t.Errorf("the other replica was asked %d times", n)
		}
		p, took := t.predict(again(7))
		t.wantOutput(p, 7)
		if took != 0 || !p.Cached {
			t.Errorf("it took %v: %+v", took, p)
		}
	})
}

// Each stage that is asked has that longer time, too.
func TestAStageHasLongerForWhatIsAskedAgain(t *testing.T) {
	bubble(t, func(t *rig) {
		f := t.replica("a", silent, a1)
		t.staged(nil, stage("first", "a"))
		p, took := t.predict(again(1))
		t.wantDefault(p, serving.MissedSLO)
		if took > slo {
			t.Errorf("it took %v", took)
		}
		if asked := f.questions(); len(asked) != 1 || asked[0].budget <= 3*slo {
			t.Errorf("the stage was asked %+v, want a budget above %v", asked, 3*slo)
		}
	})
}

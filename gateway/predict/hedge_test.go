package predict

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/rpc"
	"github.com/topsail-serving/topsail/serving"
)

// inTurn is the behaviour of several replicas together: the first question that
// reaches any of them is treated by the first behaviour, and so on; the last stays.
func inTurn(behaviours ...behaviour) behaviour {
	var n atomic.Int64
	return func(q arrival) (rpc.Answer, time.Duration) {
		return behaviours[min(int(n.Add(1)), len(behaviours))-1](q)
	}
}

// both are the questions that reached two replicas, the earlier first, and whether
// each got one.
func both(a, b *fake) (asked []arrival, each bool) {
	x, y := a.questions(), b.questions()
	if len(x) > 0 && len(y) > 0 && y[0].at.Before(x[0].at) {
		x, y = y, x
	}
	return append(x, y...), len(x) == 1 && len(y) == 1
}

func TestAHedgeGoesOutAtHalfOfWhatIsLeft(t *testing.T) {
	bubble(t, func(t *rig) {
		behave := inTurn(silent, echoes(time.Millisecond))
		a, b := t.replica("a", behave, m1), t.replica("b", behave, m1)
		t.serves(nil, m1)
		q := newQuery(7)
		q.User = "somebody"
		time.Sleep(20 * time.Millisecond) // on the way to the predictor
		start := time.Now()
		got, took := t.predict(q)
		t.wantOutput(got, 7)
		left := slo - margin - 20*time.Millisecond
		if took != left/2+time.Millisecond {
			t.Errorf("it took %v, want %v", took, left/2+time.Millisecond)
		}
		asked, each := both(a, b)
		if !each || asked[0].at != start || asked[1].at != start.Add(left/2) {
			t.Fatalf("asked %+v", asked)
		}
		if asked[0].budget != left || asked[1].budget != left-left/2 || asked[1].user != "somebody" {
			t.Errorf("asked %+v, want what is left of the time each time", asked)
		}
		t.settle()
		if a.cancelled()+b.cancelled() != 1 {
			t.Errorf("%d were told that nobody waits, want the loser", a.cancelled()+b.cancelled())
		}
		if n := t.metric("topsail_gateway_extra_calls_total"); n != 1 {
			t.Errorf("%v extra calls counted", n)
		}
	})
}

// The first replica may still win; then the second is told.
func TestTheFirstMayWinAgainstItsHedge(t *testing.T) {
	bubble(t, func(t *rig) {
		behave := inTurn(echoes(60*time.Millisecond), silent)
		a, b := t.replica("a", behave, m1), t.replica("b", behave, m1)
		t.serves(nil, m1)
		got, took := t.predict(newQuery(7))
		t.wantOutput(got, 7)
		if took != 60*time.Millisecond {
			t.Errorf("it took %v", took)
		}
		t.settle()
		asked, each := both(a, b)
		second := b
		if len(b.questions()) > 0 && len(a.questions()) > 0 && b.questions()[0].at.Before(a.questions()[0].at) {
			second = a
		}
		if !each || second.cancelled() != 1 || a.cancelled()+b.cancelled() != 1 {
			t.Errorf("asked %+v, cancelled %d and %d", asked, a.cancelled(), b.cancelled())
		}
	})
}

func TestNoHedgeWithoutNeed(t *testing.T) {
	tests := map[string]struct {
		replicas int
		behave   behaviour
		want     serving.Cause
	}{
		"an answer just before":        {2, echoes((slo-margin)/2 - 1), serving.OK},
		"no second replica":            {1, silent, serving.MissedSLO},
		"a model that says no at once": {2, fails(rpc.StatusModelError, "no"), serving.ModelError},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *rig) {
				var fakes []*fake
				for _, name := range []string{"a", "b"}[:test.replicas] {
					fakes = append(fakes, t.replica(name, test.behave, m1))
				}
				t.serves(nil, m1)
				if a, _ := t.predict(newQuery(7)); a.Cause != test.want {
					t.Errorf("got %+v", a)
				}
				asked := 0
				for _, f := range fakes {
					asked += len(f.questions())
				}
				if n := t.metric("topsail_gateway_extra_calls_total"); asked != 1 || n != 0 {
					t.Errorf("%d questions, %v counted as extra", asked, n)
				}
				for i := range 5 { // nor is the only replica blamed for its silence
					t.predict(newQuery(float64(i)))
				}
				for _, st := range t.table.Replicas() {
					if st.Ejected {
						t.Errorf("%s is ejected", st.Replica)
					}
				}
			})
		})
	}
}

// With one replica of two frozen, every query gets its output, in half of its time
// at the worst, and the frozen one is left alone after a few.
func TestAFrozenReplicaIsHedgedAndThenLeftAlone(t *testing.T) {
	bubble(t, func(t *rig) {
		frozen, good := t.replica("frozen", silent, m1), t.replica("good", echoes(time.Millisecond), m1)
		t.serves(nil, m1)
		for i := range 500 {
			a, took := t.predict(newQuery(float64(i)))
			t.wantOutput(a, float64(i))
			if took > (slo-margin)/2+time.Millisecond {
				t.Errorf("query %d took %v", i, took)
			}
		}
		if n := len(frozen.questions()); n == 0 || n > 10 {
			t.Errorf("the frozen replica was asked %d times", n)
		}
		if n := len(good.questions()); n != 500 {
			t.Errorf("the good replica was asked %d times", n)
		}
		for round := range 3 { // while a question is in flight there it gets no other
			var all sync.WaitGroup // many at once, so that the frozen one gets some
			for i := range 20 {
				all.Go(func() {
					a, _ := t.predict(newQuery(float64(i), float64(round)))
					t.wantOutput(a, float64(i))
				})
			}
			all.Wait()
			time.Sleep(time.Minute) // until it is given up
		}
		for _, st := range t.table.Replicas() {
			if st.Ejected != (st.Replica == "frozen") {
				t.Errorf("%s is ejected: %v", st.Replica, st.Ejected)
			}
		}
	})
}

// Each query of a batch has its own time for its hedge.
func TestAHedgeOfABatch(t *testing.T) {
	bubble(t, func(t *rig) {
		behave := inTurn(silent, silent, echoes(time.Millisecond))
		t.replica("a", behave, m1)
		t.replica("b", behave, m1)
		t.serves(nil, m1)
		qs := []serving.Query{*newQuery(1), *newQuery(2)}
		qs[1].Timeout = 10 * time.Millisecond
		for i, a := range t.batch(qs) {
			t.wantOutput(a, float64(i+1))
		}
	})
}

// TestTheBudgetOfExtraCalls sends 10000 queries to two replicas that both fail
// every one: the extra calls stay within 5 % and what was saved up.
func TestTheBudgetOfExtraCalls(t *testing.T) {
	for name, behave := range map[string]behaviour{
		"both refuse":     fails(rpc.StatusFull, "full"),
		"both are frozen": silent,
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *rig) {
				a, b := t.replica("a", behave, m1), t.replica("b", behave, m1)
				t.serves(func(a *serving.App) { a.SLO = serving.Duration(10 * time.Millisecond) }, m1)
				const queries, parallel = 10_000, 20
				var all sync.WaitGroup
				for g := range parallel {
					all.Go(func() {
						for i := range queries / parallel {
							if a, _ := t.predict(newQuery(float64(g), float64(i))); !a.Default {
								t.Errorf("got %+v", a)
							}
						}
					})
				}
				all.Wait()
				extra := len(a.questions()) + len(b.questions()) - queries
				limit := queries/extraEvery + extraSaved
				if extra > limit || extra < limit*9/10 {
					t.Errorf("%d extra calls, the budget is %d", extra, limit)
				}
				if n := t.metric("topsail_gateway_extra_calls_total"); int(n) != extra {
					t.Errorf("%v extra calls counted, want %d", n, extra)
				}
			})
		})
	}
}

// Slow replicas that answer are hedged within the budget, and never ejected for
// their slowness: that would only move the load about.
func TestSlowReplicasAreNotEjected(t *testing.T) {
	bubble(t, func(t *rig) {
		t.replica("a", echoes(60*time.Millisecond), m1)
		t.replica("b", echoes(60*time.Millisecond), m1)
		t.serves(nil, m1)
		for i := range 10 { // until both are known to be slow
			t.predict(newQuery(-1, float64(i)))
		}
		var all sync.WaitGroup
		for g := range 50 {
			all.Go(func() {
				for i := range 20 {
					a, _ := t.predict(newQuery(float64(g), float64(i)))
					t.wantOutput(a, float64(g))
					for _, st := range t.table.Replicas() {
						if st.Ejected {
							t.Errorf("%s is ejected", st.Replica)
						}
					}
				}
			})
		}
		all.Wait()
	})
}

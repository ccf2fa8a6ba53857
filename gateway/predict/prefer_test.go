package predict

import (
	"slices"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/rpc"
	"github.com/topsail-serving/topsail/serving"
)

// preferring is an app that would have its answers from a.
func preferring(a *serving.App) {
	a.Policy = serving.PolicySpec{Kind: serving.PolicyPrefer, Order: []string{"a", "b"}}
	a.Cache.Off = true
}

// An answer names the model that gave it, and why the one before it did not.
func TestPreferNamesWhoAnswered(t *testing.T) {
	const left = slo - margin
	for name, test := range map[string]struct {
		big  behaviour
		want serving.Cause // why it does not answer
		took time.Duration // until the other answers
	}{
		"it answers":              {says(1, time.Millisecond), serving.OK, time.Millisecond},
		"it refuses":              {fails(rpc.StatusLate, "would be late"), serving.RefusedLate, time.Millisecond},
		"its queue is full":       {fails(rpc.StatusFull, "full"), serving.RefusedFull, time.Millisecond},
		"it fails":                {fails(rpc.StatusModelError, "no"), serving.ModelError, time.Millisecond},
		"it is silent":            {silent, serving.MissedSLO, left},
		"it comes at the last":    {says(1, left-1), serving.OK, left - 1},
		"it gives up at the last": {func(arrival) (rpc.Answer, time.Duration) { return rpc.Answer{Status: rpc.StatusLate}, left - 1 }, serving.RefusedLate, left - 1},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *rig) {
				t.replica("r", by(map[string]behaviour{"a": test.big, "b": says(2, time.Millisecond)}), a1, b1)
				t.links(preferring, a1, b1)
				p, took := t.predict(newQuery(7))
				model, over := a1, []serving.PassedOver(nil)
				if test.want != serving.OK {
					model, over = b1, []serving.PassedOver{{ModelID: a1, Why: test.want}}
				}
				if p.Default || !p.Ranked || p.Model != model || !slices.Equal(p.PassedOver, over) || took != test.took {
					t.Errorf("after %v: %+v", took, p)
				}
			})
		})
	}
}

// What the reserve was asked for is taken back when the first model answers after all.
func TestPreferTakesBackTheReserve(t *testing.T) {
	const left = slo - margin
	bubble(t, func(t *rig) {
		t.replica("a", says(1, left-time.Millisecond), a1)
		reserve := t.replica("b", silent, b1)
		t.links(preferring, a1, b1)
		if p, took := t.predict(newQuery(7)); p.Model != a1 || p.PassedOver != nil || took != left-time.Millisecond {
			t.Errorf("after %v: %+v", took, p)
		}
		t.settle()
		if len(reserve.questions()) != 1 || reserve.cancelled() != 1 {
			t.Errorf("the reserve has %d questions, and %d were taken back", len(reserve.questions()), reserve.cancelled())
		}
	})
}

// All of that within the objective; and with no answer at all, a default that says why there is none of any.
func TestPreferWithoutAnAnswer(t *testing.T) {
	bubble(t, func(t *rig) {
		t.replica("r", by(map[string]behaviour{"a": fails(rpc.StatusLate, "late"), "b": silent}), a1, b1)
		t.links(preferring, a1, b1)
		q := newQuery(7)
		q.Explain = true
		p, took := t.predict(q)
		t.wantDefault(p, serving.MissedSLO)
		if want := []serving.PassedOver{{ModelID: a1, Why: serving.RefusedLate}, {ModelID: b1, Why: serving.MissedSLO}}; !slices.Equal(p.PassedOver, want) || took != slo-margin {
			t.Errorf("after %v: %+v", took, p)
		}
	})
}

// A model that has no replica is not asked. It is woken, and its demand is counted; the last resort is woken only
// when it is needed.
func TestPreferWhereAModelIsNotThere(t *testing.T) {
	wantDemand(t, func(t *rig) {
		woken, kept := t.wakes(nil), &records{}
		t.p.Records = kept
		f := t.replica("r", echoes(took), b1)
		t.links(preferring, a1, b1)
		q := newQuery(7)
		q.Explain = true
		p, _ := t.predict(q)
		t.wantOutput(p, 7)
		if p.Model != b1 || !slices.Equal(p.PassedOver, []serving.PassedOver{{ModelID: a1, Why: serving.NoReplica}}) || named(p.Missing) != "a" || p.Explained.Models[0].Asked {
			t.Errorf("%+v, %+v", p, p.Explained)
		}
		if asked := kept.list[0].Asked; versionsOf(f) != "b:1" || len(asked) != 1 || asked[0].ModelID != b1 {
			t.Errorf("asked %s, recorded %+v", versionsOf(f), asked)
		}
		t.settle()
		if woken.times(a1) == nil {
			t.Error("it was not woken")
		}
	}, serving.Demand{ModelID: a1, Arrivals: 1, Diverted: 1}, serving.Demand{ModelID: b1, Arrivals: 1, Concurrency: took})
	bubble(t, func(t *rig) {
		woken := t.wakes(nil)
		t.replica("r", inTurn(repeated(200, echoes(0), fails(rpc.StatusFull, "full"))...), a1)
		t.links(preferring, a1, b1)
		for range 200 {
			if p, _ := t.predict(newQuery(7)); p.Model != a1 || p.PassedOver != nil {
				t.Fatalf("%+v", p)
			}
		}
		if woken.times(b1) != nil {
			t.Error("the last resort was woken without need")
		}
		p, _ := t.predict(newQuery(7))
		t.wantDefault(p, serving.RefusedFull)
		t.settle()
		if woken.times(b1) == nil {
			t.Error("it was not woken when it was needed")
		}
	})
}

func repeated(n int, first, then behaviour) []behaviour {
	return append(slices.Repeat([]behaviour{first}, n), then)
}

// Where no model has a replica, a query waits for any.
func TestPreferAtAColdStart(t *testing.T) {
	bubble(t, func(t *rig) {
		t.links(func(a *serving.App) {
			preferring(a)
			a.ColdStart = serving.Duration(10 * time.Second)
		}, a1, b1)
		done := make(chan struct{})
		go func() {
			defer close(done)
			p, took := t.predict(newQuery(7))
			t.wantOutput(p, 7)
			if p.Model != b1 || took != 2*time.Second+time.Millisecond {
				t.Errorf("after %v: %+v", took, p)
			}
		}()
		time.Sleep(2 * time.Second)
		t.replica("r", echoes(time.Millisecond), b1)
		<-done
	})
}

// What goes on to the next model is demand that the one before it could not serve.
func TestDivertedDemand(t *testing.T) {
	wantDemand(t, func(t *rig) {
		t.replica("r", by(map[string]behaviour{"a": inTurn(fails(rpc.StatusLate, "late"), echoes(0)), "b": echoes(0)}), a1, b1)
		t.links(preferring, a1, b1)
		t.predict(newQuery(1))
		t.predict(newQuery(2))
	}, serving.Demand{ModelID: a1, Arrivals: 2, Defaults: 1, Diverted: 1}, serving.Demand{ModelID: b1, Arrivals: 1})
}

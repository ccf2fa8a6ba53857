package predict

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/rpc"
	"github.com/topsail-serving/topsail/serving"
)

func TestWhatIsTriedAgainElsewhere(t *testing.T) {
	nan := rpc.Answer{Payload: rpc.AppendPayload(nil, serving.Number(math.NaN()))}
	empty := rpc.Answer{Payload: rpc.AppendPayload(nil)}
	answers := func(a rpc.Answer) behaviour { return func(arrival) (rpc.Answer, time.Duration) { return a, 0 } }
	tests := map[string]struct {
		first     behaviour
		elsewhere bool
		cause     serving.Cause // when both say so, or nobody else is asked
		explain   string
	}{
		"a container error":    {fails(rpc.StatusContainer, "it died"), true, serving.ContainerError, "Container error: it died"},
		"no container":         {fails(rpc.StatusNoContainer, "none"), true, serving.NoReplica, "No connected models found for query"},
		"an unknown model":     {fails(rpc.StatusUnknownModel, "which?"), true, serving.NoReplica, "No connected models found for query"},
		"a full queue":         {fails(rpc.StatusFull, "the queue is full"), true, serving.RefusedFull, "Refused: the queue is full"},
		"no time":              {fails(rpc.StatusLate, "too late"), true, serving.RefusedLate, "Refused: too late"},
		"draining":             {fails(rpc.StatusDraining, "stopping"), true, serving.Draining, "Refused: stopping"},
		"an empty payload":     {answers(empty), true, serving.ContainerError, "Container error: rpc: "},
		"a model error":        {fails(rpc.StatusModelError, "ValueError: too blue"), false, serving.ModelError, "Model error: ValueError: too blue"},
		"a drop":               {fails(rpc.StatusDropped, "dull"), false, serving.Dropped, "Dropped: dull"},
		"a bad input":          {fails(rpc.StatusBadInput, "too long"), false, serving.BadInput, "Bad input: too long"},
		"an output that is no": {answers(nan), false, serving.ModelError, "Model error: output is NaN or infinite, which JSON cannot carry"},
		"an expired one":       {fails(rpc.StatusExpired, "expired"), false, serving.MissedSLO, "Failed to retrieve a prediction response within the specified latency SLO"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *rig) {
				behave := inTurn(test.first, echoes(time.Millisecond))
				a, b := t.replica("a", behave, m1), t.replica("b", behave, m1)
				t.serves(nil, m1)
				got, took := t.predict(newQuery(7))
				asked, each := both(a, b)
				if test.elsewhere {
					t.wantOutput(got, 7)
					if !each || took != time.Millisecond {
						t.Errorf("it took %v, asked %+v", took, asked)
					}
				} else {
					t.wantDefault(got, test.cause)
					if len(asked) != 1 || took != 0 {
						t.Errorf("it took %v, asked %+v", took, asked)
					}
				}
			})
			bubble(t, func(t *rig) { // where both do the same, there is one failure, at once
				a, b := t.replica("a", test.first, m1), t.replica("b", test.first, m1)
				t.serves(nil, m1)
				got, took := t.predict(newQuery(7))
				t.wantDefault(got, test.cause)
				if !strings.HasPrefix(got.Explanation, test.explain) || took != 0 {
					t.Errorf("after %v: %q, want %q", took, got.Explanation, test.explain)
				}
				limit := 2
				if test.cause == serving.Draining {
					limit += maxRefusals
				}
				if asked, _ := both(a, b); len(asked) > limit {
					t.Errorf("asked %+v", asked)
				}
				if n := t.metric(`topsail_gateway_answers_total{app="app",cause="` + test.cause.String() + `"}`); n != 1 {
					t.Errorf("%v answers of this cause counted", n)
				}
			})
		})
	}
}

func TestNobodyElseToAsk(t *testing.T) {
	bubble(t, func(t *rig) {
		f := t.replica("a", fails(rpc.StatusContainer, "it died"), m1)
		t.serves(nil, m1)
		got, took := t.predict(newQuery(7))
		t.wantDefault(got, serving.ContainerError)
		if n := len(f.questions()); n != 1 || took != 0 {
			t.Errorf("asked %d times, after %v", n, took)
		}
	})
}

func TestALostConnectionIsTriedElsewhere(t *testing.T) {
	bubble(t, func(t *rig) {
		behave := inTurn(silent, echoes(time.Millisecond))
		a, b := t.replica("a", behave, m1), t.replica("b", behave, m1)
		t.serves(nil, m1)
		time.AfterFunc(10*time.Millisecond, func() {
			for _, f := range []*fake{a, b} {
				if len(f.questions()) > 0 {
					f.kill()
				}
			}
		})
		got, took := t.predict(newQuery(7))
		t.wantOutput(got, 7)
		if took != 11*time.Millisecond {
			t.Errorf("it took %v", took)
		}
	})
}

// A failure that comes after the deadline is nobody's business any more.
func TestAFailureAfterTheDeadlineIsNotTriedElsewhere(t *testing.T) {
	bubble(t, func(t *rig) {
		late := func(arrival) (rpc.Answer, time.Duration) {
			return rpc.Answer{Status: rpc.StatusContainer}, slo
		}
		a := t.replica("a", late, m1)
		t.serves(nil, m1)
		got, _ := t.predict(newQuery(7))
		t.wantDefault(got, serving.MissedSLO)
		b := t.replica("b", echoes(0), m1)
		time.Sleep(slo)
		if len(a.questions()) != 1 || len(b.questions()) != 0 {
			t.Errorf("asked %d and %d times", len(a.questions()), len(b.questions()))
		}
		if t.cache.Open() != 0 {
			t.Error("the question is still open")
		}
	})
}

// Replicas that are stopping are expected to refuse: that costs no budget, however
// many queries run into it.
func TestDrainingCostsNoBudget(t *testing.T) {
	bubble(t, func(t *rig) {
		t.replica("a", fails(rpc.StatusDraining, "stopping"), m1)
		t.replica("b", fails(rpc.StatusDraining, "stopping"), m1)
		t.serves(nil, m1)
		for i := range 2 * extraSaved {
			a, _ := t.predict(newQuery(float64(i)))
			t.wantDefault(a, serving.Draining)
		}
		if n := t.metric("topsail_gateway_extra_calls_total"); n != 2*extraSaved*(1+maxRefusals) {
			t.Errorf("%v extra calls", n)
		}
		if !t.p.dispatch.Extra.Spend() {
			t.Error("the budget is spent")
		}
	})
}

// Once the second was asked as well, there is no third, and what the model says is
// taken at once although the first is still silent.
func TestTheSecondHasTheLastWord(t *testing.T) {
	const hedged = (slo - margin) / 2
	tests := map[string]struct {
		second behaviour
		want   serving.Cause
		took   time.Duration
	}{
		"its model error is the answer":       {fails(rpc.StatusModelError, "no"), serving.ModelError, hedged},
		"its failure leaves the first a hope": {fails(rpc.StatusContainer, "it died"), serving.OK, 90 * time.Millisecond},
		"its refusal too":                     {fails(rpc.StatusFull, "full"), serving.OK, 90 * time.Millisecond},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *rig) {
				behave := inTurn(echoes(90*time.Millisecond), test.second, fails(rpc.StatusContainer, "a third"))
				var fakes []*fake
				for _, name := range []string{"a", "b", "c"} {
					fakes = append(fakes, t.replica(name, behave, m1))
				}
				t.serves(nil, m1)
				got, took := t.predict(newQuery(7))
				if got.Cause != test.want || took != test.took {
					t.Errorf("after %v: %+v", took, got)
				}
				t.settle()
				asked, cancelled := 0, 0
				for _, f := range fakes {
					asked += len(f.questions())
					cancelled += f.cancelled()
				}
				if wantCancelled := test.want == serving.ModelError; asked != 2 || (cancelled == 1) != wantCancelled {
					t.Errorf("%d questions, %d cancelled", asked, cancelled)
				}
			})
		})
	}
}

// Several replicas stop at once, and none has said so yet: the one that goes on
// is found all the same.
func TestSeveralReplicasStopAtOnce(t *testing.T) {
	bubble(t, func(t *rig) {
		refuses := fails(rpc.StatusDraining, "stopping")
		behave := inTurn(refuses, refuses, refuses, refuses, echoes(time.Millisecond))
		for _, name := range []string{"a", "b", "c"} {
			t.replica(name, behave, m1)
		}
		t.serves(nil, m1)
		got, took := t.predict(newQuery(7))
		t.wantOutput(got, 7)
		if took != time.Millisecond {
			t.Errorf("it took %v", took)
		}
		t.wantQueued(0)
	})
}

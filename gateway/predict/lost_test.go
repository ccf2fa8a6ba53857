package predict

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/gateway/selection"
	"github.com/topsail-serving/topsail/rpc"
	"github.com/topsail-serving/topsail/serving"
)

// The only replica dies with questions in flight: they are sent again when there is
// one, in the time that they have.
func TestQuestionsOfALostReplicaAreSentAgain(t *testing.T) {
	bubble(t, func(t *rig) {
		a := t.replica("a", silent, m1)
		t.serves(nil, m1)
		var lost []*result
		for i := range 10 {
			lost = append(lost, t.later(newQuery(float64(i))))
		}
		time.Sleep(10 * time.Millisecond)
		t.stop(a)
		t.wantQueued(10)
		time.Sleep(20 * time.Millisecond)
		b := t.replica("b", echoes(time.Millisecond), m1)
		for i, res := range lost {
			res.wait()
			t.wantOutput(res.Prediction, float64(i))
		}
		for _, q := range b.questions() {
			if q.budget > slo-margin-30*time.Millisecond {
				t.Errorf("asked %+v", q)
			}
		}
		if n := t.metric("topsail_gateway_extra_calls_total"); n != 10 {
			t.Errorf("%v extra calls", n)
		}
	})
}

// When none comes, the answer says what became of the question.
func TestWhyALostQuestionEnds(t *testing.T) {
	bubble(t, func(t *rig) {
		a := t.replica("a", silent, m1)
		t.serves(nil, m1)
		res := t.later(newQuery(1))
		t.stop(a)
		t.wantQueued(1)
		res.wait()
		t.wantDefault(res.Prediction, serving.ContainerError)
		if !strings.Contains(res.Explanation, "the connection to the replica was lost") || res.took != slo-margin {
			t.Errorf("after %v: %s", res.took, res.Explanation)
		}
		t.wantQueued(0)
	})
}

// A question that may have killed its replica, the only one, goes to one more.
func TestAQuestionThatKillsIsSentAgainOnce(t *testing.T) {
	bubble(t, func(t *rig) {
		t.serves(nil, m1)
		var fakes []*fake
		start := func() {
			f := t.replica(fmt.Sprint(len(fakes)), silent, m1)
			fakes = append(fakes, f)
		}
		start()
		res := t.later(newQuery(1))
		for range 4 {
			time.Sleep(10 * time.Millisecond)
			t.stop(fakes[len(fakes)-1])
			start()
		}
		res.wait()
		t.wantDefault(res.Prediction, serving.ContainerError)
		asked := 0
		for _, f := range fakes {
			asked += len(f.questions())
		}
		if asked != 2 {
			t.Errorf("it was sent %d times", asked)
		}
	})
}

// What is sent again is within the budget of extra calls; the rest ends at once.
func TestLostQuestionsAreWithinTheBudget(t *testing.T) {
	bubble(t, func(t *rig) {
		a := t.replica("a", silent, m1)
		t.serves(nil, m1)
		const n = extraSaved + 100
		var all []*result
		for i := range n {
			all = append(all, t.later(newQuery(float64(i))))
		}
		a.kill()
		t.wantQueued(extraSaved)
		time.Sleep(time.Millisecond)
		t.replica("b", echoes(0), m1)
		outputs := 0
		for _, res := range all {
			if res.wait(); !res.Default {
				outputs++
				continue
			}
			t.wantDefault(res.Prediction, serving.ContainerError)
			if res.took != 0 {
				t.Errorf("it took %v", res.took)
			}
		}
		if outputs != extraSaved {
			t.Errorf("%d outputs", outputs)
		}
	})
}

// A replica that says that it is stopping refuses what is still on its way to it.
// Such questions wait for the next replica, whatever their number.
func TestRefusedByAStoppingReplica(t *testing.T) {
	for name, status := range map[string]rpc.Status{"it drains": rpc.StatusDraining, "it has no container": rpc.StatusNoContainer} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *rig) {
				a := t.replica("a", func(arrival) (rpc.Answer, time.Duration) {
					return rpc.Answer{Status: status, Message: []byte("stopping")}, time.Millisecond
				}, m1)
				t.serves(nil, m1)
				var all []*result
				for i := range 2 * extraSaved {
					all = append(all, t.later(newQuery(float64(i))))
				}
				a.announce(rpc.StateDraining)
				time.Sleep(20 * time.Millisecond)
				t.wantQueued(2 * extraSaved)
				b := t.replica("b", echoes(0), m1)
				for i, res := range all {
					res.wait()
					t.wantOutput(res.Prediction, float64(i))
				}
				if n := len(b.questions()); n != 2*extraSaved {
					t.Errorf("the next was asked %d times", n)
				}
			})
		})
	}
}

// The refusal can come before the replica says how it is doing. It is not asked in
// vain again and again meanwhile.
func TestARefusalBeforeTheAnnouncement(t *testing.T) {
	bubble(t, func(t *rig) {
		a := t.replica("a", fails(rpc.StatusDraining, "stopping"), m1)
		t.serves(nil, m1)
		first := t.later(newQuery(1))
		t.wantQueued(1)
		second := t.later(newQuery(2))
		t.wantQueued(2)
		if n := len(a.questions()); n != 1 {
			t.Errorf("it was asked %d times", n)
		}
		a.announce(rpc.StateDraining)
		time.Sleep(2 * refusedPause)
		t.wantQueued(2)
		t.replica("b", echoes(0), m1)
		for _, res := range []*result{first, second} {
			res.wait()
			if res.Default || res.took != 2*refusedPause {
				t.Errorf("after %v: %+v", res.took, res.Prediction)
			}
		}
		if n := len(a.questions()); n != 1 {
			t.Errorf("it was asked %d times", n)
		}
	})
	bubble(t, func(t *rig) { // news of any replica ends the pause
		t.replica("a", inTurn(fails(rpc.StatusDraining, "stopping"), echoes(0)), m1)
		t.serves(nil, m1)
		res := t.later(newQuery(1))
		t.wantQueued(1)
		t.replica("b", echoes(0), m2) // the table has changed
		res.wait()
		t.wantOutput(res.Prediction, 1)
		if res.took != 0 {
			t.Errorf("it took %v", res.took)
		}
	})
	bubble(t, func(t *rig) { // one that never says anything has its own word at last
		a := t.replica("a", fails(rpc.StatusDraining, "stopping"), m1)
		t.serves(nil, m1)
		got, took := t.predict(newQuery(1))
		t.wantDefault(got, serving.Draining)
		if took != refusedPause || len(a.questions()) != 2 {
			t.Errorf("after %v it was asked %d times", took, len(a.questions()))
		}
	})
}

// Without a word from the resolver, what a replica announces is enough: it is asked
// nothing more, answers what it has, and may come back.
func TestADrainingReplicaThatIsStillListed(t *testing.T) {
	bubble(t, func(t *rig) {
		a := t.replica("a", echoes(20*time.Millisecond), m1)
		t.serves(nil, m1)
		inHand := t.later(newQuery(1))
		a.announce(rpc.StateDraining)
		t.settle()
		waiting := t.later(newQuery(2))
		t.wantQueued(1)
		inHand.wait()
		t.wantOutput(inHand.Prediction, 1)
		if inHand.took != 20*time.Millisecond || len(a.questions()) != 1 {
			t.Errorf("it took %v, %d questions", inHand.took, len(a.questions()))
		}
		a.announce(rpc.StateReady)
		waiting.wait()
		t.wantOutput(waiting.Prediction, 2)
		if n := len(a.questions()); n != 2 || waiting.took != 40*time.Millisecond {
			t.Errorf("it took %v, %d questions", waiting.took, n)
		}
	})
}

// A winner ends the question: what becomes of the loser's replica then is nobody's
// business, and nothing is held for it.
func TestALoserIsNotQueued(t *testing.T) {
	bubble(t, func(t *rig) {
		behave := inTurn(silent, echoes(time.Millisecond))
		a, b := t.replica("a", behave, m1), t.replica("b", behave, m1)
		t.serves(nil, m1)
		got, _ := t.predict(newQuery(7))
		t.wantOutput(got, 7)
		a.kill()
		t.wantQueued(0)
		b.kill()
		t.wantQueued(0)
	})
}

// A question that was held when nobody waited for it any more is given up by itself.
func TestAnOrphanIsGivenUp(t *testing.T) {
	bubble(t, func(t *rig) {
		t.replica("a", says(1, time.Millisecond), a1)
		b := t.replica("b", silent, b1)
		t.decides(&scripted{combine: func(answers []selection.Answer, at selection.Moment) selection.Decision {
			d := acceptable(answers, at)
			d.Ended = selection.EndedCertain // which is answered, and takes nothing back
			return d
		}}, a1, b1)
		p, _ := t.predict(newQuery(7))
		t.wantOutput(p, 1)
		b.kill()
		t.wantQueued(1)
		time.Sleep(slo + orphanAfter)
		t.wantQueued(0)
	})
}

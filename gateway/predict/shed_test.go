package predict

import (
	"strings"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/gateway/selection"
	"github.com/topsail-serving/topsail/rpc"
	"github.com/topsail-serving/topsail/serving"
)

// press makes a version look short of capacity to who can do without it.
func (r *rig) press(id serving.ModelID) {
	quota, now := &r.version(id).Quota, time.Now()
	for quota.Refused(now); quota.Allow(serving.Class{App: "app", Weight: 1}, 0, slo, now); { // what it may ask in this moment
	}
}

// What is short is left out, from the end as if it had never been wanted, and the
// answer says so.
func TestSheddingFromTheEnd(t *testing.T) {
	bubble(t, func(t *rig) {
		f := t.replica("r", by(map[string]behaviour{"a": says(1, 0), "b": says(2, 0), "c": says(3, 0)}), a1, b1, c1)
		s := &scripted{combine: func(answers []selection.Answer, at selection.Moment) selection.Decision {
			if len(answers) != 1 {
				panic("the policy sees what was left out")
			}
			return all(answers, at)
		}}
		t.decides(s, a1, b1, c1)
		t.press(b1)
		t.press(c1)
		q := newQuery(7)
		q.Explain = true
		p, took := t.predict(q)
		t.wantOutput(p, 1)
		if took != 0 || versionsOf(f) != "a:1" || named(p.Shed) != "cb" || named(p.Missing) != "cb" {
			t.Errorf("asked %s, shed %v, missing %v", versionsOf(f), p.Shed, p.Missing)
		}
		if m := p.Explained.Models; len(m) != 3 || m[0].Shed || !m[1].Shed || !m[2].Shed || m[1].Asked {
			t.Errorf("explained as %+v", m)
		}
		if n := t.metric(`topsail_selection_shed_total{app="app",model="b",version="1"}`); n != 1 || t.member("b", "asked") != 0 {
			t.Errorf("counted %v times as shed, %v as asked", n, t.member("b", "asked"))
		}
	})
}

// In the middle the policy sees a failure. Where the others are silent, it is the objective that was missed.
func TestSheddingInTheMiddle(t *testing.T) {
	bubble(t, func(t *rig) {
		f := t.replica("r", by(map[string]behaviour{"a": inTurn(says(1, 0), silent), "b": says(2, 0), "c": inTurn(says(3, 0), silent)}), a1, b1, c1)
		s := &scripted{combine: func(answers []selection.Answer, at selection.Moment) selection.Decision {
			if len(answers) != 3 || answers[1].Failure != left {
				panic("the policy does not see what was left out")
			}
			return all(answers, at)
		}}
		t.decides(s, a1, b1, c1)
		t.press(b1)
		p, _ := t.predict(newQuery(7))
		t.wantOutput(p, 1)
		if versionsOf(f) != "a:1 c:1" || named(p.Shed) != "b" || named(p.Missing) != "b" {
			t.Errorf("asked %s, shed %v, missing %v", versionsOf(f), p.Shed, p.Missing)
		}
		p, _ = t.predict(newQuery(8))
		t.wantDefault(p, serving.MissedSLO)
		if named(p.Shed) != "b" || named(p.Missing) != "abc" {
			t.Errorf("shed %v, missing %v", p.Shed, p.Missing)
		}
	})
}

// The first, a reserve for who has failed, what costs nothing, and dry runs are never
// left out.
func TestWhatIsNeverShed(t *testing.T) {
	bubble(t, func(t *rig) {
		f := t.replica("r", by(map[string]behaviour{"a": fails(rpc.StatusModelError, ""), "b": says(2, 0), "c": says(3, 0)}), a1, b1, c1)
		reserve := &scripted{
			arrange: func(_ []selection.Candidate, plan *selection.Plan) { plan.Now = 1 },
			combine: func(answers []selection.Answer, at selection.Moment) selection.Decision {
				d := all(answers, at)
				if answers[0].Come() {
					d.Open = 2
				}
				return d
			},
		}
		t.decides(reserve, a1, b1)
		t.press(a1)
		t.press(b1)
		p, _ := t.predict(newQuery(7))
		t.wantOutput(p, 2)
		if versionsOf(f) != "a:1 b:1" || p.Shed != nil {
			t.Errorf("asked %s, shed %v", versionsOf(f), p.Shed)
		}
		t.decides(&scripted{}, b1, c1)
		t.predict(newQuery(8)) // c is not short, and b the first
		t.press(c1)
		if p, _ := t.predict(newQuery(8)); p.Shed != nil || !p.Cached {
			t.Errorf("what the cache has was left out: %+v", p)
		}
		if p, err := t.p.DryRun(t.Context(), newQuery(9), time.Second); err != nil || p.Shed != nil || len(p.Explained.Models) != 2 {
			t.Errorf("%+v, %v", p, err)
		}
	})
}

// A version that takes longer than there is time is left out, but for one query now and
// then: so that it comes back when it has got faster.
func TestWhoIsTooSlowComesBack(t *testing.T) {
	bubble(t, func(t *rig) {
		slow := slo * 3
		f := t.replica("r", func(q arrival) (rpc.Answer, time.Duration) {
			if q.version == a1 {
				return number(1), 0
			}
			return number(2), slow
		}, a1, b1)
		t.decides(&scripted{combine: func(answers []selection.Answer, at selection.Moment) selection.Decision {
			d := all(answers, at)
			if answers[0].Output != nil {
				d.Done, d.Ended = true, selection.EndedCertain
			}
			return d
		}}, a1, b1)
		ask := func(queries int) (shed int) {
			for i := range queries {
				q := newQuery(float64(i))
				q.NoCache = true // else one joins another
				if p, _ := t.predict(q); p.Shed != nil {
					shed++
				}
				time.Sleep(20 * time.Millisecond)
			}
			return shed
		}
		ask(50)
		if shed := ask(40); shed != 32 {
			t.Errorf("%d of 40 left out a model that comes too late", shed)
		}
		slow = time.Millisecond
		ask(400)
		if shed := ask(40); shed != 0 {
			t.Errorf("%d of 40 leave out a model that is fast again", shed)
		}
		if strings.Count(versionsOf(f), "b") == 0 {
			t.Error("it was never asked")
		}
	})
}

// A replica that refuses because a client's own time is short is not short of capacity.
func TestImpatientClientsPressNobody(t *testing.T) {
	bubble(t, func(t *rig) {
		t.replica("r", func(q arrival) (rpc.Answer, time.Duration) {
			if q.budget < 10*time.Millisecond {
				return rpc.Answer{Status: rpc.StatusLate}, 0
			}
			return number(q.x), 10 * time.Millisecond
		}, a1, b1)
		t.decides(&scripted{}, a1, b1)
		for i := range 20 {
			t.predict(newQuery(float64(i)))
			q := newQuery(float64(-i))
			q.Timeout = 5 * time.Millisecond
			t.predict(q)
		}
		now := time.Now()
		for range 100 {
			if !t.version(b1).Quota.Allow(serving.Class{App: "app", Weight: 1}, 0, slo, now) {
				t.Fatal("the version counts as short of capacity")
			}
		}
	})
}

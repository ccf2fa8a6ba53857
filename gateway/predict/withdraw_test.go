package predict

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/gateway/selection"
	"github.com/topsail-serving/topsail/rpc"
	"github.com/topsail-serving/topsail/serving"
)

// An answer that is good enough takes back the other questions.
func TestAnAcceptableAnswerWithdrawsTheRest(t *testing.T) {
	bubble(t, func(t *rig) {
		f := t.replica("r", by(map[string]behaviour{"a": says(1, time.Millisecond), "b": silent}), a1, b1)
		t.decides(&scripted{combine: acceptable}, a1, b1)
		p, took := t.predict(newQuery(7))
		t.wantOutput(p, 1)
		if took != time.Millisecond || p.Missing != nil {
			t.Errorf("it took %v, missing %v", took, p.Missing)
		}
		t.settle()
		if f.cancelled() != 1 || t.cache.Open() != 0 {
			t.Errorf("%d cancelled, %d open, want 1 and nobody to join what was", f.cancelled(), t.cache.Open())
		}
		if p, took := t.predict(newQuery(7)); took != 0 || !p.Cached {
			t.Errorf("again it took %v: %+v", took, p)
		}
	})
}

// What somebody else waits for goes on, and so does what is certain but not all there.
func TestWhatIsNotWithdrawn(t *testing.T) {
	bubble(t, func(t *rig) {
		f := t.replica("r", by(map[string]behaviour{"a": says(1, 10*time.Millisecond), "b": says(2, 20*time.Millisecond)}), a1, b1)
		waits, hasty := &scripted{}, &scripted{combine: acceptable}
		t.decides(waits, a1, b1)
		slow := (*t.p.apps.Load())["app"]
		var all sync.WaitGroup
		all.Go(func() {
			p, took := t.predict(newQuery(7))
			t.wantOutput(p, 1)
			if took != 20*time.Millisecond || p.Missing != nil {
				t.Errorf("who waits for both took %v, missing %v", took, p.Missing)
			}
		})
		t.settle()
		t.decides(hasty, a1, b1)
		all.Go(func() {
			if _, took := t.predict(newQuery(7)); took != 10*time.Millisecond {
				t.Errorf("who is content with one took %v", took)
			}
		})
		all.Wait()
		if f.cancelled() != 0 || len(f.questions()) != 2 {
			t.Errorf("%d of %d questions cancelled", f.cancelled(), len(f.questions()))
		}
		hasty.combine = func(answers []selection.Answer, at selection.Moment) selection.Decision {
			d := acceptable(answers, at)
			d.Ended = selection.EndedCertain
			return d
		}
		if p, _ := t.predict(newQuery(8)); p.Missing != nil {
			t.Errorf("missing %v though it could change nothing", p.Missing)
		}
		time.Sleep(slo)
		if f.cancelled() != 0 || slow.metrics == nil {
			t.Errorf("%d cancelled", f.cancelled())
		}
		t.decides(waits, a1, b1)
		if p, took := t.predict(newQuery(8)); took != 0 || !p.Cached {
			t.Errorf("what came late is not in the cache: it took %v", took)
		}
	})
}

// A question that was taken back and refused is not asked of another replica.
func TestAWithdrawnQuestionIsNotAskedAgain(t *testing.T) {
	bubble(t, func(t *rig) {
		cancelled := func(arrival) (rpc.Answer, time.Duration) {
			return rpc.Answer{Status: rpc.StatusCancelled}, 5 * time.Millisecond
		}
		behave := by(map[string]behaviour{"a": says(1, time.Millisecond), "b": cancelled})
		x, y := t.replica("x", behave, a1, b1), t.replica("y", behave, a1, b1)
		t.decides(&scripted{combine: acceptable}, a1, b1)
		t.predict(newQuery(7))
		time.Sleep(20 * time.Millisecond)
		if n := len(x.questions()) + len(y.questions()); n != 2 {
			t.Errorf("%d questions, want 2", n)
		}
		if n := t.metric("topsail_gateway_extra_calls_total"); n != 0 {
			t.Errorf("%v extra calls", n)
		}
	})
}

// A held question that is taken back is not sent when a replica comes.
func TestAHeldQuestionIsWithdrawn(t *testing.T) {
	bubble(t, func(t *rig) {
		t.replica("r", says(1, time.Millisecond), a1)
		t.decides(&scripted{combine: acceptable}, a1, b1)
		p, _ := t.predict(newQuery(7))
		t.wantOutput(p, 1)
		if n := t.p.dispatch.Queued(); n != 0 {
			t.Errorf("%d questions are held", n)
		}
		late := t.replica("late", says(2, 0), b1)
		time.Sleep(slo)
		if n := len(late.questions()); n != 0 {
			t.Errorf("%d questions reached the replica that came", n)
		}
	})
}

// Shadows are asked, never waited for, and compared when their answer comes.
func TestShadows(t *testing.T) {
	d1 := id("d", "1")
	bubble(t, func(t *rig) {
		f := t.replica("r", by(map[string]behaviour{
			"a": says(1, time.Millisecond), "b": says(1, 50*time.Millisecond), "c": says(3, 200*time.Millisecond), "d": fails(rpc.StatusModelError, "no"),
		}), a1, b1, c1, d1)
		t.links(func(a *serving.App) { a.Policy = serving.PolicySpec{Kind: serving.PolicyShadow, Model: "a"} }, a1, b1, c1, d1)
		q := newQuery(7)
		q.Explain = true
		p, took := t.predict(q)
		t.wantOutput(p, 1)
		if took != time.Millisecond || p.Missing != nil || p.Model != a1 {
			t.Errorf("it took %v: %+v", took, p)
		}
		if m := p.Explained.Models; len(m) != 4 || m[0].Shadow || !m[1].Shadow || !m[2].Shadow || !m[3].Shadow || m[1].Output != nil {
			t.Errorf("explained as %+v", m)
		}
		time.Sleep(time.Second)
		if n := len(f.questions()); n != 4 || f.cancelled() != 0 {
			t.Errorf("%d questions, %d cancelled: shadows are asked to the end", n, f.cancelled())
		}
		for _, event := range []struct {
			model, event string
			want         float64
		}{{"a", "agreed", 1}, {"b", "answered", 1}, {"b", "agreed", 1}, {"c", "answered", 1}, {"c", "agreed", 0}, {"d", "asked", 1}, {"d", "answered", 0}} {
			if n := t.member(event.model, event.event); n != event.want {
				t.Errorf("%s %s %v times, want %v", event.model, event.event, n, event.want)
			}
		}
	})
}

// Nobody waits for a shadow, so that it is not hedged either.
func TestShadowsAreNotHedged(t *testing.T) {
	bubble(t, func(t *rig) {
		behave := by(map[string]behaviour{"a": says(1, 80*time.Millisecond), "b": says(1, 80*time.Millisecond)})
		x, y := t.replica("x", behave, a1, b1), t.replica("y", behave, a1, b1)
		t.links(func(a *serving.App) { a.Policy = serving.PolicySpec{Kind: serving.PolicyShadow, Model: "a"} }, a1, b1)
		t.predict(newQuery(7))
		time.Sleep(slo)
		asked := map[string]int{}
		for _, q := range append(x.questions(), y.questions()...) {
			asked[q.version.Model]++
		}
		if asked["a"] != 2 || asked["b"] != 1 {
			t.Errorf("asked %v, want a twice and b once", asked)
		}
	})
}

// A query that its caller gives up leaves nothing behind.
func TestACallerGivesUpOnSeveral(t *testing.T) {
	bubble(t, func(t *rig) {
		t.replica("r", silent, a1)
		t.decides(&scripted{}, a1, b1)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		qs := make([]serving.Query, 3*maxKept)
		for i := range qs {
			qs[i] = *newQuery(float64(i))
		}
		if _, err := t.p.Predict(ctx, qs...); err != context.DeadlineExceeded {
			t.Errorf("got %v", err)
		}
		if n := t.p.dispatch.Queued(); n != 0 {
			t.Errorf("%d questions are held for nobody", n)
		}
	})
}

// What a client asked that has left is taken back, unless another waits for it.
func TestWhoLeavesTakesBackItsQuestions(t *testing.T) {
	for _, joined := range []bool{false, true} {
		bubble(t, func(t *rig) {
			f := t.replica("r", silent, m1)
			t.serves(nil, m1)
			leaving, leave := context.WithCancelCause(t.Context())
			var all sync.WaitGroup
			all.Go(func() {
				if _, err := one(leaving, t.p, newQuery(7)); !errors.Is(err, errLeft) {
					t.Errorf("it ended in %v", err)
				}
			})
			t.settle()
			if joined {
				all.Go(func() { t.predict(newQuery(7)) })
				t.settle()
			}
			time.Sleep(2 * watchAfter)
			leave(errLeft)
			t.settle()
			if got := f.cancelled(); (got == 1) == joined || (t.cache.Open() == 1) != joined {
				t.Errorf("%d cancelled, %d open, where another waits: %v", got, t.cache.Open(), joined)
			}
			all.Wait()
		})
	}
}

var errLeft = errors.New("the client has left")

// asked counts who wants to know when a context ends.
type asked struct {
	context.Context
	times int
}

func (a *asked) Done() <-chan struct{} {
	a.times++
	return a.Context.Done()
}

// Quick queries do not look for their client, which would cost more than they do.
func TestQuickQueriesDoNotWatch(t *testing.T) {
	for took, want := range map[time.Duration]int{watchAfter - time.Millisecond: 0, watchAfter + time.Millisecond: 1} {
		bubble(t, func(t *rig) {
			t.replica("r", says(1, took), m1)
			t.serves(nil, m1)
			ctx := &asked{Context: t.Context()}
			if p, err := one(ctx, t.p, newQuery(7)); err != nil || p.Default || ctx.times != want {
				t.Errorf("after %v: %+v, %v; it looked %d times", took, p, err, ctx.times)
			}
		})
	}
}

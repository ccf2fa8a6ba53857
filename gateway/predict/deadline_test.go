package predict

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/rpc"
	"github.com/topsail-serving/topsail/serving"
)

// The default comes exactly when the answer must leave: the SLO or the client's own
// shorter limit, less what sending takes.
func TestTheDefaultComesAtTheDeadline(t *testing.T) {
	tests := map[string]struct{ slo, timeout, want time.Duration }{
		"the SLO":                        {100 * time.Millisecond, 0, 99500 * time.Microsecond},
		"a long SLO":                     {10 * time.Second, 0, 10*time.Second - maxMargin},
		"a short SLO":                    {2 * time.Millisecond, 0, 1900 * time.Microsecond},
		"the shortest SLO":               {100 * time.Microsecond, 0, 95 * time.Microsecond},
		"a client with less time":        {100 * time.Millisecond, 20 * time.Millisecond, 19500 * time.Microsecond},
		"a client with hardly any time":  {100 * time.Millisecond, time.Millisecond, 950 * time.Microsecond},
		"a client with more time":        {100 * time.Millisecond, time.Second, 99500 * time.Microsecond},
		"a client with a nonsense limit": {100 * time.Millisecond, -time.Second, 99500 * time.Microsecond},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *rig) {
				f := t.replica("a", silent, m1)
				t.serves(func(a *serving.App) { a.SLO = serving.Duration(test.slo) }, m1)
				q := newQuery(1)
				q.Timeout = test.timeout
				a, took := t.predict(q)
				t.wantDefault(a, serving.MissedSLO)
				if a.Explanation != "Failed to retrieve a prediction response within the specified latency SLO" {
					t.Errorf("explained by %q", a.Explanation)
				}
				if took != test.want {
					t.Errorf("it took %v, want %v", took, test.want)
				}
				if asked := f.questions(); len(asked) != 1 || asked[0].budget != test.want {
					t.Errorf("the replica was asked %+v, want a budget of %v", asked, test.want)
				}
			})
		})
	}
}

// Time that passed before the predictor saw the query counts.
func TestTheDeadlineCountsFromTheReceipt(t *testing.T) {
	bubble(t, func(t *rig) {
		t.replica("a", silent, m1)
		t.serves(nil, m1)
		q := newQuery(1)
		time.Sleep(60 * time.Millisecond)
		if a, took := t.predict(q); took != 40*time.Millisecond-margin {
			t.Errorf("it took %v: %+v", took, a)
		}
		a, took := t.predict(q) // whose time is up
		t.wantDefault(a, serving.MissedSLO)
		if took != 0 {
			t.Errorf("a query without time took %v", took)
		}
	})
}

func TestAnAnswerJustInTimeIsGiven(t *testing.T) {
	bubble(t, func(t *rig) {
		t.replica("a", echoes(slo-margin-1), m1)
		t.serves(nil, m1)
		a, took := t.predict(newQuery(7))
		t.wantOutput(a, 7)
		if took != slo-margin-1 || a.Cached || a.Model != m1 {
			t.Errorf("it took %v: %+v", took, a)
		}
	})
}

// A query in the cache is answered although its time is up: it costs nothing.
func TestTheCacheAnswersALateQuery(t *testing.T) {
	bubble(t, func(t *rig) {
		t.replica("a", echoes(0), m1)
		t.serves(nil, m1)
		t.predict(newQuery(7))
		q := newQuery(7)
		time.Sleep(2 * slo)
		a, _ := t.predict(q)
		t.wantOutput(a, 7)
	})
}

func TestACancelledContextEndsTheWait(t *testing.T) {
	bubble(t, func(t *rig) {
		f := t.replica("a", echoes(50*time.Millisecond), m1)
		t.serves(nil, m1)
		gone := errors.New("the client has gone")
		ctx, cancel := context.WithCancelCause(context.Background())
		time.AfterFunc(45*time.Millisecond, func() { cancel(gone) })
		start := time.Now()
		if _, err := one(ctx, t.p, newQuery(7)); !errors.Is(err, gone) || time.Since(start) != 45*time.Millisecond {
			t.Errorf("after %v: %v", time.Since(start), err)
		}
		if _, err := t.p.Predict(ctx, *newQuery(1), *newQuery(2)); !errors.Is(err, gone) {
			t.Errorf("a batch: %v", err)
		}
		t.settle()
		if f.cancelled() != 3 {
			t.Errorf("%d questions were taken back, want 3", f.cancelled())
		}
		// What comes all the same is there for others.
		time.Sleep(50 * time.Millisecond)
		a, took := t.predict(newQuery(7))
		t.wantOutput(a, 7)
		if !a.Cached || took != 0 {
			t.Errorf("it took %v: %+v", took, a)
		}
		if n := len(f.questions()); n != 3 {
			t.Errorf("%d questions were asked, want 3", n)
		}
	})
}

// The timer that a query leaves set does not make the next one late, and a ring that brings nothing asks no policy.
func TestTimersStaySet(t *testing.T) {
	bubble(t, func(t *rig) {
		t.replica("a", func(q arrival) (rpc.Answer, time.Duration) {
			return number(q.x), time.Duration(q.x) * time.Millisecond
		}, a1)
		s := &scripted{}
		t.decides(s, a1)
		for i := range 30 { // rings among them
			for _, x := range []float64{1, 90} {
				a, took := t.predict(newQuery(x, float64(i)))
				t.wantOutput(a, x)
				if took != time.Duration(x)*time.Millisecond {
					t.Errorf("an answer after %v took %v", x, took)
				}
			}
			short := newQuery(50, float64(i))
			short.Timeout = time.Duration(i+1) * time.Millisecond
			a, took := t.predict(short)
			t.wantDefault(a, serving.MissedSLO)
			if took > short.Timeout || took < short.Timeout*9/10 {
				t.Errorf("a default within %v took %v", short.Timeout, took)
			}
		}
		if looks := len(s.moments()); looks != 30*3*2 {
			t.Errorf("the policy was asked %d times, and something was new %d times", looks, 30*3*2)
		}
	})
}

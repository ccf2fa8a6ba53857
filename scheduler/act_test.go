package scheduler_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/serving/catalog"
)

func (w *world) fail(err error) {
	w.lock(func() { w.set = func(context.Context, serving.ModelID) error { return err } })
}

func (w *world) work() { w.lock(func() { w.set = nil }) }

// TestBlocked is told by the list of jobs, or when it tries.
func TestBlocked(t *testing.T) {
	for _, listed := range []bool{true, false} {
		t.Run(fmt.Sprint("listed ", listed), func(t *testing.T) {
			in(t, func(w *world) {
				w.deployed(m1, &serving.ScaleSpec{Min: 1, Max: 5}, 1)
				w.lead()
				time.Sleep(time.Minute)
				if listed {
					w.lock(func() { w.jobs[m1].Blocked = "a deployment is active" })
				}
				w.fail(fmt.Errorf("a deployment is active: %w", serving.ErrJobBlocked))
				time.Sleep(2 * time.Second)
				w.apply(catalog.SetScale{ID: m1, Scale: &serving.ScaleSpec{Min: 3, Max: 5}})
				time.Sleep(119 * time.Second)
				w.wantJournal("blocked", "m:1 1→3 min blocked; ")
				if s, _ := w.s.Explain(m1); s.Alarm != "" || s.Blocked.IsZero() || s.Decision.Outcome != "blocked" {
					t.Errorf("after 119 s: %+v", s.Decision.Outcome)
				}
				time.Sleep(3 * time.Second)
				if s, _ := w.s.Explain(m1); !strings.Contains(s.Alarm, "could not be changed for 2m0s") || !strings.Contains(s.Alarm, "a deployment is active") {
					t.Errorf("after 122 s the alarm is %q", s.Alarm)
				}
				w.wantMetric("blocked", `topsail_scheduler_alarm{model="m",version="1"} 1`, `topsail_scheduler_blocked_seconds{model="m",version="1"} 1`)
				if tries := len(w.asked(m1)); listed != (tries == 0) {
					t.Errorf("%d tries", tries)
				}
				w.work()
				w.lock(func() { w.jobs[m1].Blocked = "" })
				time.Sleep(1200 * time.Millisecond)
				w.wantCount("as soon as it can be", m1, 3)
				w.wantJournal("then", "m:1 1→3 min applied; ")
				if s, _ := w.s.Explain(m1); s.Alarm != "" || !s.Blocked.IsZero() {
					t.Errorf("then: %q", s.Alarm)
				}
			})
		})
	}
}

// TestConflict has somebody else change the job between a look and a change.
func TestConflict(t *testing.T) {
	in(t, func(w *world) {
		w.deployed(m1, &serving.ScaleSpec{Min: 1, Max: 9}, 1)
		w.lead()
		time.Sleep(time.Minute + 500*time.Millisecond)
		w.lock(func() { w.jobs[m1] = w.newJob(m1, 2, 0) })
		w.apply(catalog.SetScale{ID: m1, Scale: &serving.ScaleSpec{Min: 4, Max: 9}})
		w.wantJournal("at once", "m:1 1→4 min conflict; ")
		w.wantCount("at once", m1, 2)
		time.Sleep(100 * time.Millisecond)
		w.wantCount("after another look", m1, 4)
		w.wantJournal("then", "m:1 2→4 min applied; ")
	})
}

// TestConflictForGood never gets to see the job as it is, and does not hammer.
func TestConflictForGood(t *testing.T) {
	in(t, func(w *world) {
		w.fail(serving.ErrJobChanged)
		w.apply(version(m1, nil, 1))
		w.lead()
		time.Sleep(10 * time.Second)
		if n := w.countCalls(); n < 5 || n > 15 {
			t.Errorf("%d tries in 10 s", n)
		}
	})
}

// TestOldList is on its way while a version is woken, and is not trusted after.
func TestOldList(t *testing.T) {
	in(t, func(w *world) {
		w.deployed(m1, &serving.ScaleSpec{Max: 5}, 0)
		w.listing = 500 * time.Millisecond
		w.lead()
		time.Sleep(10*time.Second + 300*time.Millisecond)
		w.wakes <- m1
		time.Sleep(5 * time.Second)
		w.wantJournal("woken", "m:1 0→1 wake applied; ")
		if n := w.countCalls(); n != 1 {
			t.Errorf("%d changes", n)
		}
	})
}

// TestRefused backs off, until there is another reason to ask.
func TestRefused(t *testing.T) {
	in(t, func(w *world) {
		w.deployed(m1, &serving.ScaleSpec{Min: 1, Max: 9}, 1)
		w.lead()
		time.Sleep(time.Minute)
		w.fail(fmt.Errorf("no such device: %w", serving.ErrJobRefused))
		w.apply(catalog.SetScale{ID: m1, Scale: &serving.ScaleSpec{Min: 4, Max: 9}})
		time.Sleep(time.Hour)
		if n := len(w.asked(m1)); n < 6 || n > 10 {
			t.Errorf("asked %d times in an hour", n)
		}
		w.wantJournal("for an hour", "m:1 1→4 min failed; ")
		if s, _ := w.s.Explain(m1); !strings.Contains(s.Alarm, "no such device") || s.Decision.Outcome != "failed" {
			t.Errorf("%q, %q", s.Alarm, s.Decision.Outcome)
		}
		w.work()
		w.apply(catalog.SetScale{ID: m1, Scale: &serving.ScaleSpec{Min: 5, Max: 9}})
		w.wantCount("once it is changed", m1, 5)
	})
}

// TestFailure tries again soon.
func TestFailure(t *testing.T) {
	in(t, func(w *world) {
		w.deployed(m1, &serving.ScaleSpec{Min: 1, Max: 9}, 1)
		w.lead()
		time.Sleep(time.Minute)
		w.fail(errAway)
		w.apply(catalog.SetScale{ID: m1, Scale: &serving.ScaleSpec{Min: 4, Max: 9}})
		time.Sleep(10 * time.Minute)
		if n := len(w.asked(m1)); n < 15 || n > 30 {
			t.Errorf("asked %d times in 10 min", n)
		}
		w.work()
		time.Sleep(31 * time.Second)
		w.wantCount("when it works again", m1, 4)
	})
}

// TestHangingChange holds up nobody else, and ends.
func TestHangingChange(t *testing.T) {
	in(t, func(w *world) {
		w.lead()
		w.lock(func() {
			w.set = func(ctx context.Context, id serving.ModelID) error {
				if id == m1 {
					<-ctx.Done()
					return ctx.Err()
				}
				return nil
			}
		})
		w.apply(version(m1, nil, 1))
		time.Sleep(time.Second)
		other := serving.ModelID{Model: "n", Version: "1"}
		w.apply(version(other, nil, 2))
		w.wantCount("another version", other, 2)
		time.Sleep(10 * time.Second)
		w.wantJournal("after its time is up", "n:1 0→2 fixed applied; m:1 0→1 fixed failed; ")
	})
}

// TestEightAtOnce starts twenty jobs with a fleet that takes a second for each.
func TestEightAtOnce(t *testing.T) {
	in(t, func(w *world) {
		busy, most := 0, 0
		w.set = func(ctx context.Context, _ serving.ModelID) error {
			w.lock(func() { busy++; most = max(most, busy) })
			time.Sleep(time.Second)
			w.lock(func() { busy-- })
			return nil
		}
		for i := range 20 {
			w.apply(version(serving.ModelID{Model: fmt.Sprint("m", i), Version: "1"}, nil, 1))
		}
		w.lead()
		time.Sleep(3100 * time.Millisecond)
		if n := w.countJobs(); n != 20 || most != 8 {
			t.Errorf("%d jobs, %d at once", n, most)
		}
	})
}

// TestTermIsOver asks for nothing once the term is not valid, even before Run is told.
func TestTermIsOver(t *testing.T) {
	in(t, func(w *world) {
		w.deployed(m1, &serving.ScaleSpec{Min: 1, Max: 9}, 1)
		other := serving.ModelID{Model: "o", Version: "1"}
		w.apply(version(other, nil, 0))
		w.lead()
		time.Sleep(time.Minute)
		w.valid.Store(false)
		w.apply(catalog.SetScale{ID: m1, Scale: &serving.ScaleSpec{Min: 4, Max: 9}}, version(serving.ModelID{Model: "n", Version: "1"}, nil, 2))
		w.lock(func() { w.jobs[other] = w.newJob(other, 1, 0) })
		time.Sleep(time.Hour)
		if got := w.asked(m1); len(got) > 0 || w.countJobs() != 2 || w.servingNow("o") != "" {
			t.Errorf("%v, %d jobs, version %q serves", got, w.countJobs(), w.servingNow("o"))
		}
		w.wantJournal("then", "")
		w.stop()
		if s := w.s.Status(); len(s) != 0 {
			t.Errorf("between terms there is a status: %v", s)
		}
		w.wantMetric("between terms", "topsail_scheduler_leader 0")
		w.valid.Store(true)
		w.fence = 8
		w.again()
		time.Sleep(time.Second)
		w.wantCount("in another term", m1, 4)
		w.wantMetric("in another term", "topsail_scheduler_leader 1")
		if all := w.journaled(); len(all) == 0 || all[0].Fence != 8 {
			t.Errorf("decisions %s", outcomes(all))
		}
	})
}

// TestEndOfTerm has a change under way: it is ended, waited for and recorded.
func TestEndOfTerm(t *testing.T) {
	in(t, func(w *world) {
		w.set = func(ctx context.Context, _ serving.ModelID) error { <-ctx.Done(); return ctx.Err() }
		w.apply(version(m1, nil, 1))
		w.lead()
		time.Sleep(time.Second)
		w.stop()
		w.wantJournal("at the end", "m:1 0→1 fixed failed; ")
	})
}

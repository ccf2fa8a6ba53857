package scheduler_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"topsail/scheduler"
	"topsail/serving"
	"topsail/serving/catalog"
)

// outcomes is what became of decisions, in order, as "from→to outcome".
func outcomes(all []serving.Decision) string {
	var b strings.Builder
	for _, d := range all {
		fmt.Fprintf(&b, "%s %d→%d %s %s; ", d.ModelID, d.From, d.To, d.Rule, d.Outcome)
	}
	return b.String()
}

func (w *world) wantJournal(when, want string) {
	w.Helper()
	if got := outcomes(w.journaled()); got != want {
		w.Errorf("%s, decisions are\n%s, want\n%s", when, got, want)
	}
}

func (w *world) fail(err error) {
	w.lock(func() { w.set = func(context.Context, serving.ModelID) error { return err } })
}

func (w *world) work() { w.lock(func() { w.set = nil }) }

func TestJournal(t *testing.T) {
	in(t, func(w *world) {
		w.lead()
		time.Sleep(1500 * time.Millisecond)
		w.apply(version(m1, &serving.ScaleSpec{Min: 2, Max: 5}, 0))
		all := w.journaled()
		want := serving.Decision{ModelID: m1, At: time.Now(), To: 2, Rule: "rollout", Outcome: "applied", Leader: "s1", Fence: 7}
		if len(all) == 1 {
			all[0].Reason, all[0].At = "", all[0].At.Local()
			want.Rule = all[0].Rule
		}
		if len(all) != 1 || all[0] != want {
			t.Errorf("decisions %#v, want %#v", all, want)
		}
		time.Sleep(time.Hour)
		w.wantJournal("when nothing changes", "")
	})
}

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

// TestOldList is on its way while a version is woken, and is not believed after.
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

func TestDryRun(t *testing.T) {
	in(t, func(w *world) {
		w.deployed(m1, &serving.ScaleSpec{Min: 1, Max: 9}, 1)
		w.apply(version(m2, nil, 3))
		w.lock(func() {
			w.jobs[serving.ModelID{Model: "gone", Version: "1"}] = w.newJob(serving.ModelID{Model: "gone", Version: "1"}, 1, 0)
		})
		w.lead(func(c *scheduler.Config) { c.DryRun = true })
		time.Sleep(10 * time.Minute)
		if n := w.countCalls(); n != 0 || w.servingNow("m") != "1" {
			t.Errorf("%d changes, version %s serves", n, w.servingNow("m"))
		}
		got := w.journaled()
		if text := outcomes(got); len(got) != 2 || !strings.Contains(text, "m:2 0→3 fixed dry_run; ") || !strings.Contains(text, "gone:1 1→0 gone dry_run; ") {
			t.Errorf("decisions %s", text)
		}
	})
}

// TestRemove deletes a version, and then all of them.
func TestRemove(t *testing.T) {
	in(t, func(w *world) {
		w.lead()
		for i := range 6 {
			w.apply(version(serving.ModelID{Model: fmt.Sprint("m", i), Version: "1"}, nil, 1))
		}
		time.Sleep(10 * time.Second)
		m0 := serving.ModelID{Model: "m0", Version: "1"}
		w.apply(catalog.DeleteVersion{ID: m0})
		w.wantCount("deleted", m0, -1)
		time.Sleep(time.Second)
		if _, ok := w.s.Explain(m0); ok {
			t.Error("a version that is gone is still shown")
		}
		w.wantMetric("after that", `! topsail_scheduler_desired_replicas{model="m0"`, `topsail_scheduler_desired_replicas{model="m1",version="1"} 1`, "topsail_scheduler_removals_held 0")

		full := w.cat
		w.lock(func() {
			w.cat = &serving.Catalog{Revision: full.Revision + 1}
			close(w.newCat)
			w.newCat = make(chan struct{})
		})
		time.Sleep(4*time.Minute + 55*time.Second)
		if w.countJobs() != 5 {
			t.Fatalf("%d of 5 jobs are left just after the catalog was emptied", w.countJobs())
		}
		w.wantMetric("meanwhile", "topsail_scheduler_removals_held 1")
		w.lock(func() { w.cat = full; close(w.newCat); w.newCat = make(chan struct{}) })
		time.Sleep(10 * time.Minute)
		if w.countJobs() != 5 {
			t.Fatalf("%d of 5 jobs are left after an accident that was mended", w.countJobs())
		}
		w.wantMetric("then", "topsail_scheduler_removals_held 0")
		w.lock(func() {
			w.cat = &serving.Catalog{Revision: full.Revision + 2}
			close(w.newCat)
			w.newCat = make(chan struct{})
		})
		time.Sleep(5*time.Minute + 5*time.Second)
		if w.countJobs() != 0 {
			t.Errorf("%d jobs are left of an empty catalog that is meant", w.countJobs())
		}
	})
}

// TestEmptyStore has jobs and a catalog that never had anything in it.
func TestEmptyStore(t *testing.T) {
	in(t, func(w *world) {
		w.jobs[m1] = w.newJob(m1, 1, 0)
		w.lead()
		time.Sleep(time.Hour)
		w.wantCount("kept", m1, 1)
		w.wantMetric("meanwhile", "topsail_scheduler_removals_held 1")
		w.apply(version(serving.ModelID{Model: "n", Version: "1"}, nil, 1))
		w.wantCount("once there is something in it", m1, -1)
	})
}

// TestSlowHistory takes two seconds to read what a new leader wants to know.
func TestSlowHistory(t *testing.T) {
	in(t, func(w *world) {
		w.deployed(m1, &serving.ScaleSpec{Max: 20}, 4)
		w.apply(app("m"))
		w.setLoad(m1, steady(2000))
		w.lead(func(c *scheduler.Config) { c.Demand = slow{w} })
		time.Sleep(5 * time.Second)
		w.wantCount("as the load of the last minute needs", m1, 8)
	})
}

// slow takes 20 ms for a second's reports.
type slow struct{ w *world }

func (s slow) ReadDemand(ctx context.Context, from, to time.Time) ([]serving.DemandReport, error) {
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-time.After(to.Sub(from) / 50):
		return s.w.ReadDemand(ctx, from, to)
	}
}

// TestOutdated brings jobs up to date, one after the other.
func TestOutdated(t *testing.T) {
	in(t, func(w *world) {
		var ids []serving.ModelID
		for i := range 3 {
			id := serving.ModelID{Model: fmt.Sprint("m", i), Version: "1"}
			ids = append(ids, id)
			w.deployed(id, nil, 2)
			w.lock(func() { w.jobs[id].Outdated = true })
		}
		w.lead()
		time.Sleep(20 * time.Second)
		if n := w.countCalls(); n != 1 {
			t.Errorf("%d updates in the first seconds", n)
		}
		time.Sleep(70 * time.Second)
		if n := w.countCalls(); n != 3 {
			t.Errorf("%d updates, want 3", n)
		}
		for _, d := range w.journaled() {
			if d.Rule != "update" || d.From != 2 || d.To != 2 || d.Outcome != "applied" {
				t.Errorf("decided %s", outcomes([]serving.Decision{d}))
			}
		}
		w.lock(func() {
			w.jobs[ids[0]].Outdated = true
			w.jobs[ids[1]].Outdated = true
			w.jobs[ids[2]].Blocked = "a deployment"
		})
		time.Sleep(time.Hour)
		if n := w.countCalls(); n != 3 {
			t.Errorf("%d updates, want none more while one is not through", n-3)
		}
		w.lock(func() { w.jobs[ids[1]].Outdated, w.jobs[ids[2]].Blocked, w.reverts = false, "", true })
		time.Sleep(time.Hour)
		if n := w.countCalls() - 3; n < 5 || n > 7 {
			t.Errorf("%d updates in an hour of a job that is taken back", n)
		}
	})
}

// TestHint has jobs looked at before the next second.
func TestHint(t *testing.T) {
	in(t, func(w *world) {
		w.deployed(m1, nil, 2)
		w.lead()
		time.Sleep(10*time.Second + 300*time.Millisecond)
		w.lock(func() { w.jobs[m1] = w.newJob(m1, 5, 0) })
		for range 10 {
			w.hints <- struct{}{}
		}
		time.Sleep(100 * time.Millisecond)
		w.wantCount("a moment later", m1, 2)
	})
}

// TestManyHints with a slow list keep no second from being looked at.
func TestManyHints(t *testing.T) {
	in(t, func(w *world) {
		counted := &counting{w: w}
		w.listing = 170 * time.Millisecond
		w.lead(func(c *scheduler.Config) { c.Demand = counted })
		for range 3000 {
			w.hints <- struct{}{}
			time.Sleep(10 * time.Millisecond)
		}
		synctest.Wait()
		if counted.reads < 29 || counted.reads > 31 {
			t.Errorf("the demand was read %d times in 30 s", counted.reads)
		}
	})
}

type counting struct {
	w     *world
	reads int
}

func (c *counting) ReadDemand(ctx context.Context, from, to time.Time) ([]serving.DemandReport, error) {
	c.reads++
	return c.w.ReadDemand(ctx, from, to)
}

// TestSlowReaders hang; wakes and changes of the catalog do not wait for them.
func TestSlowReaders(t *testing.T) {
	in(t, func(w *world) {
		w.deployed(m1, &serving.ScaleSpec{Max: 5}, 0)
		w.lead(func(c *scheduler.Config) { c.Demand = hanging{} })
		time.Sleep(time.Minute + 300*time.Millisecond)
		w.wakes <- m1
		w.wantCount("woken", m1, 1)
		w.apply(version(serving.ModelID{Model: "n", Version: "1"}, nil, 2))
		w.wantCount("registered", serving.ModelID{Model: "n", Version: "1"}, 2)
	})
}

type hanging struct{}

func (hanging) ReadDemand(ctx context.Context, _, _ time.Time) ([]serving.DemandReport, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// TestJournals has one that fails and one that hangs beside one that works.
func TestJournals(t *testing.T) {
	in(t, func(w *world) {
		w.lead(func(c *scheduler.Config) { c.Journals = []scheduler.Journal{broken{}, stuck{}, w} })
		w.apply(version(m1, nil, 1))
		w.wantJournal("at once", "m:1 0→1 fixed applied; ")
		time.Sleep(3 * time.Second)
		w.wantMetric("lost to two of three", "topsail_scheduler_unrecorded_total 2", `topsail_scheduler_decisions_total{outcome="applied",rule="fixed"} 1`)
	})
}

type broken struct{}

func (broken) AddDecision(context.Context, serving.Decision) error { return errAway }

type stuck struct{}

func (stuck) AddDecision(ctx context.Context, _ serving.Decision) error {
	<-ctx.Done()
	return ctx.Err()
}

// TestWatchersThatEnd are begun again.
func TestWatchersThatEnd(t *testing.T) {
	in(t, func(w *world) {
		w.lead(func(c *scheduler.Config) { c.Catalog = &once{world: w} })
		time.Sleep(500 * time.Millisecond)
		w.apply(version(m1, nil, 1))
		time.Sleep(time.Second)
		w.wantCount("seen by the second watch", m1, 1)
	})
}

// once fails the first watch.
type once struct {
	*world
	failed bool
}

func (o *once) Watch(ctx context.Context, update func(*serving.Catalog)) error {
	if !o.failed {
		o.failed = true
		return errAway
	}
	return o.world.Watch(ctx, update)
}

// TestDemandUnknownMetric counts for how long.
func TestDemandUnknownMetric(t *testing.T) {
	in(t, func(w *world) {
		w.deployed(m1, nil, 1)
		w.lead()
		time.Sleep(10 * time.Second)
		synctest.Wait()
		w.wantMetric("known", "topsail_scheduler_demand_unknown_seconds 0")
		w.lock(func() { w.deaf = errAway })
		time.Sleep(60 * time.Second)
		w.wantMetric("not known", "topsail_scheduler_demand_unknown_seconds 5")
	})
}

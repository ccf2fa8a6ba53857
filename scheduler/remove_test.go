package scheduler_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/serving/catalog"
)

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

// TestRedefined: what clients make of versions reaches their replicas at once, however many they are and however often.
func TestRedefined(t *testing.T) {
	in(t, func(w *world) {
		var ids []serving.ModelID
		for i := range 3 {
			ids = append(ids, serving.ModelID{Model: fmt.Sprint("m", i), Version: "1"})
			w.deployed(ids[i], nil, 2)
		}
		w.lead()
		time.Sleep(time.Minute)
		made := 0
		redefine := func(id serving.ModelID) {
			made++
			v := version(id, nil, 2)
			v.Version.Container.Command, v.Replace = []string{"model", fmt.Sprint(made)}, true
			w.apply(v)
			w.lock(func() { w.jobs[id].Redefined = true })
		}
		for range 4 {
			for _, id := range ids {
				redefine(id)
			}
			time.Sleep(2 * time.Second)
			if n := w.countCalls(); n != made {
				t.Errorf("%d of %d redefinitions have reached their replicas", n, made)
			}
			time.Sleep(6 * time.Second)
		}

		w.lock(func() {
			w.set = func(context.Context, serving.ModelID) error { time.Sleep(3 * time.Second); return nil }
		})
		redefine(ids[0])
		time.Sleep(time.Second) // it is being replaced
		redefine(ids[0])
		time.Sleep(3 * time.Second)
		w.lock(func() { w.jobs[ids[0]].Redefined, w.set = true, nil }) // by the earlier of the two
		time.Sleep(2 * time.Second)
		if n := w.countCalls(); n != made {
			t.Errorf("%d of %d redefinitions, of which one came while another was carried out", n, made)
		}

		w.lock(func() { w.reverts = true })
		redefine(ids[1])
		time.Sleep(time.Hour)
		if n := w.countCalls() - made + 1; n < 5 || n > 7 {
			t.Errorf("%d updates in an hour of a job that is taken back", n)
		}
	})
}

package nomadfleet

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/nomad/api"

	"github.com/topsail-serving/topsail/jobs"
	"github.com/topsail-serving/topsail/serving"
)

// asked is the version of tests whose replicas do nothing.
var asked = &serving.Version{
	ModelID: serving.ModelID{Model: "m", Version: "1"}, InputType: serving.Doubles, Replicas: 1,
	Container: serving.Container{Command: []string{"/bin/sh", "-c", "exec sleep 1000"}},
}

// after has time go by, and asks for the job of the version then.
func after(t *testing.T, d time.Duration, f *Fleet) *serving.Job {
	t.Helper()
	time.Sleep(d)
	list, err := f.Jobs(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(list) == 0 {
		return nil
	}
	return &list[0]
}

// must sets the count of the version at an index.
func must(t *testing.T, f *Fleet, count int, index uint64) {
	t.Helper()
	if err := f.SetCount(t.Context(), asked, 0, serving.JobChange{Count: count, Index: index}); err != nil {
		t.Fatal(err)
	}
}

// TestRestartOfAReplicaThatStarts is made once it runs.
func TestRestartOfAReplicaThatStarts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newFakeNomad(t)
		f := n.fleet("")
		must(t, f, 1, 0)
		began := time.Now()
		if err := f.Restart(t.Context(), n.only(f).ID); err != nil || time.Since(began) != startsIn {
			t.Errorf("got error %v after %v; want none after %v", err, time.Since(began), startsIn)
		}
		if r := n.only(f); r.Restarts != 1 || r.State != Running {
			t.Errorf("got %+v; want one restart", r)
		}
	})
}

// TestNoRoom: replicas that no node takes are a problem in words, until one does.
func TestNoRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newFakeNomad(t)
		f := n.fleet("")
		n.set(func() { n.room = 1 })
		must(t, f, 3, 0)
		const want = "no node has 64 MB of memory free"
		if job := after(t, time.Second, f); job.Running != 1 || job.Problem != want {
			t.Errorf("got %d that run, and the problem %q; want 1, and %q", job.Running, job.Problem, want)
		}
		if d, err := f.Diagnose(t.Context()); err != nil || d.Lacking != want {
			t.Errorf("got %+v, error %v; want that it lacks %q", d, err, want)
		}
		if text, err := f.Plan(t.Context(), asked, 0); err != nil || text != jobs.ID(asked.ModelID)+": 1 cannot start: "+want+", 1 to start" {
			t.Errorf("got %q, error %v; want that 1 cannot start", text, err)
		}
		n.set(func() { n.room = 3 })
		after(t, 0, f)
		if job := after(t, time.Second, f); job.Running != 3 || job.Problem != "" {
			t.Errorf("got %d that run, and the problem %q; want 3, and none", job.Running, job.Problem)
		}
	})
}

// TestDiagnoseWhileAllocationsChange: for a moment Nomad takes two allocations to hold
// the same port, and no node to have room.
func TestDiagnoseWhileAllocationsChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newFakeNomad(t)
		plans := 0
		n.intercept(func(w http.ResponseWriter, r *http.Request) bool {
			if !strings.HasSuffix(r.URL.Path, "/plan") {
				return false
			}
			if plans++; plans > 2 {
				return false
			}
			fmt.Fprintf(w, `{"FailedTGAllocs": {%q: {"NodesEvaluated": 1, "DimensionExhausted": {"network: port collision": 1}}}}`, jobs.Group)
			return true
		})
		if d, err := n.fleet("").Diagnose(t.Context()); err != nil || d.Lacking != "" || plans != 3 {
			t.Errorf("got %q after %d plans, error %v", d.Lacking, plans, err)
		}
	})
}

// TestUpdateIsTakenBack: one whose replicas do not get healthy leaves the old ones running, forbids other changes until
// Nomad gives it up, and is not tried again.
func TestUpdateIsTakenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, f, index := runs(t)
		after(t, time.Second, f)
		newer := n.fleet("newer")
		n.set(func() { n.broken = true })
		must(t, newer, 1, index)
		job := after(t, 10*time.Second, newer)
		if want := "a rollout is running for 10s: 0 of 1 replicas are healthy, 0 failed"; job.Blocked != want || job.Running != 1 {
			t.Errorf("got %d that run, blocked: %q; want 1, blocked: %q", job.Running, job.Blocked, want)
		}
		for count := range 3 {
			if err := newer.SetCount(t.Context(), asked, 0, serving.JobChange{Count: count, Index: job.Index}); !errors.Is(err, serving.ErrJobBlocked) {
				t.Errorf("%d replicas during a rollout: got %v; want %v", count, err, serving.ErrJobBlocked)
			}
		}
		job = after(t, progressBy, newer)
		if want := "an update of the job was rolled back: Failed due to progress deadline - rolling back to job version 0"; job.Problem != want || job.Outdated || job.Running != 1 || job.Blocked != "" {
			t.Errorf("got %d that run, blocked: %q, outdated: %t, and the problem %q; want 1, and %q", job.Running, job.Blocked, job.Outdated, job.Problem, want)
		}
		n.set(func() { n.broken = false })
		must(t, newer, 2, job.Index)
		if job := after(t, time.Second, newer); job.Running != 2 || job.Blocked != "" {
			t.Errorf("got %d that run, blocked: %q; want 2, as before", job.Running, job.Blocked)
		}
	})
}

// TestRedefined: a version that is defined anew is seen, and its replicas are replaced whatever else goes on, for no gateway asks
// them; what else changes of it waits for a rollout that is under way.
func TestRedefined(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newFakeNomad(t)
		f, newer := n.fleet(""), n.fleet("newer")
		v := *asked
		f.version = func(serving.ModelID) *serving.Version { return &v }
		newer.version = f.version
		define := func(change func(v *serving.Version)) {
			next := v
			change(&next)
			v = next
			clear(f.specs) // which are told apart by their pointers
			clear(newer.specs)
		}
		set := func(f *Fleet) {
			t.Helper()
			index := uint64(0)
			if job := after(t, 0, f); job != nil {
				index = job.Index
			}
			if err := f.SetCount(t.Context(), &v, 0, serving.JobChange{Count: 1, Index: index}); err != nil {
				t.Fatal(err)
			}
		}
		want := func(when string, f *Fleet, redefined, blocked bool) {
			t.Helper()
			if job := after(t, 0, f); job.Redefined != redefined || (job.Blocked != "") != blocked {
				t.Errorf("%s: redefined: %t, blocked: %q; want %t, %t", when, job.Redefined, job.Blocked, redefined, blocked)
			}
		}

		v.Generation = "a"
		set(f)
		after(t, time.Second, f)
		want("as registered", f, false, false)

		define(func(v *serving.Version) { v.Batch.MaxSize = 7 })
		want("with other batches", f, true, false)
		set(f)
		define(func(v *serving.Version) { v.Batch.MaxSize = 8 })
		want("with others again, while it is rolled out", f, true, true)
		define(func(v *serving.Version) { v.Generation = "b" })
		want("anew, while it is rolled out", f, true, false)
		set(f)
		want("anew", f, false, false)
		if job := after(t, time.Second, f); job.Running != 1 {
			t.Errorf("%d replicas of the new definition run", job.Running)
		}

		n.set(func() { n.broken = true })
		set(newer)
		if job := after(t, progressBy+time.Second, newer); job.Problem == "" || job.Redefined || job.Outdated {
			t.Errorf("an update that was taken back: %+v", job)
		}
		n.set(func() { n.broken = false })
		define(func(v *serving.Version) { v.Generation = "c" })
		want("anew, after an update that was taken back", newer, true, false)
		set(newer)
		if job := after(t, time.Second, newer); job.Running != 1 || job.Redefined || job.Outdated {
			t.Errorf("its replicas: %+v", job)
		}
	})
}

// TestChangedBetweenTwoCalls: a job that another scheduler changes after it was read is left as that made it.
func TestChangedBetweenTwoCalls(t *testing.T) {
	id := jobs.ID(asked.ModelID)
	for name, test := range map[string]struct {
		release string // of the Fleet that is late
		on      string // its call, before which the job is changed
	}{
		"scale": {"", "/v1/job/" + id + "/scale"},
		"roll":  {"newer", "/v1/jobs"},
	} {
		synctest.Test(t, func(t *testing.T) {
			n, _, index := runs(t)
			n.intercept(func(_ http.ResponseWriter, r *http.Request) bool {
				if r.Method == http.MethodPut && r.URL.Path == test.on {
					n.set(func() { n.put(through[*api.Job](n.jobs[id].present())) })
				}
				return false
			})
			late := n.fleet(test.release)
			err := late.SetCount(t.Context(), asked, 0, serving.JobChange{Count: 2, Index: index})
			if job := after(t, 0, late); !errors.Is(err, serving.ErrJobChanged) || job.Count != 1 {
				t.Errorf("%s: got %v, and %d replicas; want %v, and 1", name, err, job.Count, serving.ErrJobChanged)
			}
		})
	}
}

// TestSLOReachesTheJob: replicas run on, and have longer to end.
func TestSLOReachesTheJob(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, f, _ := runs(t)
		job := after(t, time.Second, f)
		const slo = 30 * time.Second
		if err := f.SetCount(t.Context(), asked, slo, serving.JobChange{Count: 1, Index: job.Index}); err != nil {
			t.Fatal(err)
		}
		j := n.jobs[jobs.ID(asked.ModelID)]
		if got, want := *j.present().TaskGroups[0].ShutdownDelay, jobs.ShutdownDelay(slo); got != want || len(j.allocs) != 1 {
			t.Errorf("got a delay of %v after %d replicas; want %v after 1", got, len(j.allocs), want)
		}
	})
}

// TestFailedReplicaIsReplaced: why it failed is a problem until then.
func TestFailedReplicaIsReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, f, _ := runs(t)
		n.set(func() { n.broken = true })
		const want = "replica 00000002 failed: the container ended with exit code 3"
		if job := after(t, startsIn, f); job.Problem != want {
			t.Errorf("got the problem %q; want %q", job.Problem, want)
		}
		if job := after(t, rescheduledIn, f); job.Running != 0 || job.Problem != "" {
			t.Errorf("got the problem %q while another one starts; want none", job.Problem)
		}
	})
}

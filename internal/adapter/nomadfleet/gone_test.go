package nomadfleet

import (
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/nomad/api"

	"github.com/topsail-serving/topsail/jobs"
)

// TestGoneBetweenTwoCalls: a job that is purged between two calls of one look is not there, and is no error.
func TestGoneBetweenTwoCalls(t *testing.T) {
	job := "/v1/job/" + jobs.ID(asked.ModelID)
	for on, test := range map[string]struct { // the call before which the job is purged
		fails string // a replica of it, or an update
		left  int    // jobs in the list
	}{
		job:                  {"", 0},
		job + "/versions":    {"update", 0},
		job + "/deployments": {"", 1}, // none, is what Nomad says
		job + "/allocations": {"replica", 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			n, _, index := runs(t)
			newer := n.fleet("newer")
			switch test.fails {
			case "update":
				after(t, time.Second, newer)
				n.set(func() { n.broken = true })
				must(t, newer, 1, index)
				after(t, progressBy, newer)
			case "replica":
				n.set(func() { n.broken = true })
				after(t, startsIn, newer)
			}
			purged := n.purgedOn(on)
			list, err := n.fleet("newer").Jobs(t.Context())
			if err != nil || len(list) != test.left || !purged.Load() {
				t.Errorf("%s: got %v, error %v, purged: %t; want %d jobs", on, list, err, purged.Load(), test.left)
			}
		})
	}
}

// purgedOn purges all jobs when a call comes, before it is answered, and notes that.
func (n *fakeNomad) purgedOn(path string) *atomic.Bool {
	var purged atomic.Bool
	n.intercept(func(_ http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path == path {
			n.set(func() { clear(n.jobs) })
			purged.Store(true)
		}
		return false
	})
	return &purged
}

// TestReplicaGoneBetweenTwoCalls: what Nomad has forgotten since it was found is not there.
func TestReplicaGoneBetweenTwoCalls(t *testing.T) {
	for name, test := range map[string]struct {
		path string
		do   func(t *testing.T, f *Fleet, id string) error
	}{
		"restart": {"/v1/client/allocation/%/restart", func(t *testing.T, f *Fleet, id string) error { return f.Restart(t.Context(), id) }},
		"drain":   {"/v1/allocation/%/stop", func(t *testing.T, f *Fleet, id string) error { return f.Drain(t.Context(), id) }},
	} {
		synctest.Test(t, func(t *testing.T) {
			n := newFakeNomad(t)
			f := n.fleet("")
			must(t, f, 1, 0)
			id := n.only(f).ID
			purged := n.purgedOn(strings.Replace(test.path, "%", id, 1))
			if err := test.do(t, f, id); !errors.Is(err, ErrNoReplica) || !purged.Load() {
				t.Errorf("%s: got %v, purged: %t; want %v", name, err, purged.Load(), ErrNoReplica)
			}
		})
	}
}

// only is the only replica.
func (n *fakeNomad) only(f *Fleet) Replica {
	n.Helper()
	list, err := f.Replicas(n.Context())
	if err != nil || len(list) != 1 {
		n.Fatalf("got %+v, error %v; want one replica", list, err)
	}
	return list[0]
}

// TestReplicaWithoutANode: one that says nothing of its node or tasks is starting, and Nomad's own reason is passed on
// when it cannot be restarted.
func TestReplicaWithoutANode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newFakeNomad(t)
		f := n.fleet("")
		must(t, f, 1, 0)
		n.set(func() {
			a := n.jobs[jobs.ID(asked.ModelID)].allocs[0]
			a.NodeName, a.ClientStatus = "", api.AllocClientStatusUnknown
		})
		r := n.only(f)
		if r.Node != "" || r.State != Starting || r.Reason != "its node does not answer Nomad; it may still serve" {
			t.Errorf("got %+v; want one that is starting, on no node", r)
		}
		n.intercept(func(w http.ResponseWriter, r *http.Request) bool {
			restarts := strings.HasSuffix(r.URL.Path, "/restart")
			if restarts {
				http.Error(w, "No path to node", http.StatusInternalServerError)
			}
			return restarts
		})
		if err := f.Restart(t.Context(), r.ID); err == nil || err.Error() != "restart replica 00000002: No path to node" {
			t.Errorf("got %v; want what Nomad said", err)
		}
	})
}

// TestVersionOfAReplicaThatEnded: it is known until Nomad collects it, and never of what is not ours.
func TestVersionOfAReplicaThatEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newFakeNomad(t)
		f := n.fleet("")
		must(t, f, 1, 0)
		id := n.only(f).ID
		change := func(change func(*api.AllocationListStub)) {
			n.set(func() { change(n.jobs[jobs.ID(asked.ModelID)].allocs[0]) })
		}
		change(func(a *api.AllocationListStub) {
			a.DesiredStatus, a.ClientStatus = api.AllocDesiredStatusStop, api.AllocClientStatusComplete
		})
		if got, err := f.VersionOf(t.Context(), id); err != nil || got != asked.ModelID {
			t.Errorf("got %v, error %v; want %v", got, err, asked.ModelID)
		}
		for what, foreign := range map[string]func(*api.AllocationListStub){
			"another group":     func(a *api.AllocationListStub) { a.TaskGroup = "other" },
			"another namespace": func(a *api.AllocationListStub) { a.Namespace = "other" },
		} {
			before := api.AllocationListStub{}
			change(func(a *api.AllocationListStub) { before = *a; foreign(a) })
			for call, do := range map[string]func() error{
				"its version": func() error { _, err := f.VersionOf(t.Context(), id); return err },
				"its logs":    func() error { _, err := f.Logs(t.Context(), id, LogQuery{}); return err },
			} {
				if err := do(); !errors.Is(err, ErrNoReplica) {
					t.Errorf("%s, of %s: %v", call, what, err)
				}
			}
			change(func(a *api.AllocationListStub) { *a = before })
		}
		for _, id := range []string{"", id[:35], "../job/topsail-m-12345678/aaaaaaaaaaaa", strings.Repeat("/", 36)} {
			if _, err := f.VersionOf(t.Context(), id); !errors.Is(err, ErrNoReplica) {
				t.Errorf("%q: %v", id, err)
			}
		}
		n.intercept(func(w http.ResponseWriter, r *http.Request) bool {
			if strings.HasPrefix(r.URL.Path, "/v1/client/fs/logs/") {
				http.Error(w, "Unknown allocation \""+id+"\"", http.StatusNotFound)
				return true
			}
			return false
		})
		if _, err := f.Logs(t.Context(), id, LogQuery{}); !errors.Is(err, ErrNoReplica) {
			t.Errorf("logs that its node has collected: %v", err)
		}
	})
}

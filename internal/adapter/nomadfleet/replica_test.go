//go:build servers

package nomadfleet

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/jobs"
	"github.com/topsail-serving/topsail/serving"
)

// replicasOf are the replicas of a version.
func replicasOf(t *testing.T, f *Fleet, id serving.ModelID) []Replica {
	t.Helper()
	list, err := f.Replicas(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(list, func(r Replica) bool { return r.Job != jobs.ID(id) })
}

// awaitReplica waits for a replica of a version that is as wanted.
func awaitReplica(t *testing.T, f *Fleet, id serving.ModelID, what string, as func(Replica) bool) Replica {
	t.Helper()
	until := time.Now().Add(waitFor)
	for poll := time.Tick(50 * time.Millisecond); ; <-poll {
		list := replicasOf(t, f, id)
		if i := slices.IndexFunc(list, as); i >= 0 {
			return list[i]
		}
		if time.Now().After(until) {
			t.Fatalf("no replica of %v is %s: %+v", id, what, list)
		}
	}
}

// TestRestartAndDrain: a container that is restarted comes back in its place, and a
// replica that is drained makes way for another one.
func TestRestartAndDrain(t *testing.T) {
	t.Parallel()
	f := open(t, settings(t))
	v := sleeper("restarted")
	start(t, f, v)
	first := awaitReplica(t, f, v.ModelID, "running", func(r Replica) bool { return r.State == Running && r.Node != "" })
	if err := f.Restart(t.Context(), first.ID); err != nil {
		t.Fatal(err)
	}
	awaitReplica(t, f, v.ModelID, "restarted", func(r Replica) bool {
		return r.ID == first.ID && r.State == Running && r.Since.After(first.Since)
	})
	if err := f.Drain(t.Context(), first.ID); err != nil {
		t.Fatal(err)
	}
	awaitReplica(t, f, v.ModelID, "another one", func(r Replica) bool { return r.ID != first.ID && r.State == Running })
	for name, do := range map[string]func(id string) error{
		"restart": func(id string) error { return f.Restart(t.Context(), id) },
		"drain":   func(id string) error { return f.Drain(t.Context(), id) },
	} {
		if err := do("00000000-0000-0000-0000-000000000000"); !errors.Is(err, ErrNoReplica) {
			t.Errorf("%s nobody: %v", name, err)
		}
	}
}

// TestFailedReplica: a replica that cannot start says why.
func TestFailedReplica(t *testing.T) {
	t.Parallel()
	f := open(t, settings(t))
	v := sleeper("failed-replica")
	v.Container = serving.Container{Command: []string{"/bin/sh", "-c", "exit 3"}}
	register(t, f, v, 1)
	r := awaitReplica(t, f, v.ModelID, "in trouble", func(r Replica) bool { return r.Restarts > 0 || r.State == Failed })
	if r.Reason == "" {
		t.Errorf("no reason: %+v", r)
	}
}

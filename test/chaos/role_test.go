//go:build faults

package chaos

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/test/harness"
	"github.com/topsail-serving/topsail/test/require"

	nomad "github.com/hashicorp/nomad/api"
)

func TestKilledGateway(t *testing.T) {
	want(t, cluster.under(t, "a gateway is killed", func(t *testing.T) {
		signal(t, cluster.pick(t, "topsail-gateway", "gateway").PID, syscall.SIGKILL)
		time.Sleep(settle)
	}), 0)
}

func TestStoppedGateway(t *testing.T) {
	want(t, cluster.under(t, "a gateway's allocation is stopped", func(t *testing.T) {
		alloc := cluster.pick(t, "topsail-gateway", "gateway").Alloc
		if _, err := cluster.Rig.Jobs.Allocations().Stop(&nomad.Allocation{ID: alloc}, nil); err != nil {
			t.Fatal(err)
		}
		time.Sleep(settle)
	}), 0)
}

func TestKilledLeader(t *testing.T) {
	want(t, cluster.under(t, "the leading scheduler is killed", func(t *testing.T) {
		jobs := cluster.jobs(t)
		old := cluster.leader(t)
		killed := false
		for _, one := range harness.Tasks(cluster.Dir) {
			if one.Job == "topsail-scheduler" && strings.Contains(old, one.Alloc) {
				signal(t, one.PID, syscall.SIGKILL)
				killed = true
			}
		}
		if !killed {
			t.Fatalf("the leader %q does not run", old)
		}
		begun := time.Now()
		for cluster.leader(t) == old || cluster.leader(t) == "" {
			if time.Since(begun) > 25*time.Second {
				t.Fatal("nobody leads 25 s after the leader was killed")
			}
			time.Sleep(50 * time.Millisecond)
		}
		t.Logf("another one leads after %v", time.Since(begun))
		time.Sleep(settle)
		if now := cluster.jobs(t); now != jobs {
			t.Errorf("jobs were changed: %s, before: %s", now, jobs)
		}
	}), 0)
}

// leader is what the lock in Consul says; empty where nobody holds it.
func (r *world) leader(t *testing.T) string {
	t.Helper()
	pair, _, err := r.Services.KV().Get("topsail/scheduler/leader", nil)
	require.NoError(t, err)
	if pair == nil || pair.Session == "" {
		return ""
	}
	return string(pair.Value) + pair.Session
}

func TestDrainedNode(t *testing.T) {
	want(t, cluster.under(t, "a Nomad client is drained", func(t *testing.T) {
		node := cluster.node(t, cluster.pick(t, cluster.Model("1"), "sidecar").Alloc)
		spec := &nomad.DrainSpec{Deadline: 2 * time.Minute}
		if _, err := cluster.Rig.Jobs.Nodes().UpdateDrainOpts(node, &nomad.DrainOptions{DrainSpec: spec}, nil); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		err := cluster.Await(ctx, func(context.Context) error {
			n, _, err := cluster.Rig.Jobs.Nodes().Info(node, nil)
			if err == nil && n.DrainStrategy != nil {
				err = fmt.Errorf("node %s still drains", node)
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
		if _, err := cluster.Rig.Jobs.Nodes().ToggleEligibility(node, true, nil); err != nil {
			t.Fatal(err)
		}
	}), 0)
}

func (r *world) node(t *testing.T, alloc string) string {
	t.Helper()
	a, _, err := r.Rig.Jobs.Allocations().Info(alloc, nil)
	require.NoError(t, err)
	return a.NodeID
}

func TestUpgrade(t *testing.T) {
	old := filepath.Join(cluster.Dir, "previous", "topsail")
	cluster.previous(t, old)
	cluster.run(t, old)
	want(t, cluster.under(t, "gateways and sidecars are upgraded", func(t *testing.T) { cluster.run(t, cluster.Program) }), 0)
}

// run brings all roles to a program, and waits until they run it.
func (r *world) run(t *testing.T, program string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	for _, job := range []string{"gateway", "scheduler"} {
		require.NoError(t, r.RunJob(ctx, job, program))
	}
	err := r.Await(ctx, func(ctx context.Context) error {
		for _, one := range harness.Tasks(r.Dir) {
			if one.Name == "container" {
				continue
			}
			if exe := one.Executable(); exe != program {
				return fmt.Errorf("%s of %s runs %s", one.Name, one.Job, exe)
			}
		}
		return r.Whole(ctx)
	})
	require.NoError(t, err)
}

// previous builds the commit before this one.
func (r *world) previous(t *testing.T, program string) {
	t.Helper()
	tree, before := filepath.Join(r.Dir, "previous", "tree"), "HEAD~1"
	if exec.CommandContext(t.Context(), "git", "rev-parse", "--verify", before).Run() != nil {
		t.Log("the clone is shallow, so that the upgrade is from this commit to itself; for the one before: git fetch --unshallow")
		before = "HEAD"
	}
	for _, args := range [][]string{
		{"git", "worktree", "add", "--detach", tree, before},
		{"go", "build", "-C", tree, "-o", program, "./cmd/topsail"},
		{"git", "worktree", "remove", "--force", tree},
	} {
		if out, err := exec.CommandContext(t.Context(), args[0], args[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", args, err, out)
		}
	}
}

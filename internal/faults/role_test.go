package faults

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	nomad "github.com/hashicorp/nomad/api"
)

func TestKilledGateway(t *testing.T) {
	world.under(t, "a gateway is killed", func(t *testing.T) {
		signal(t, world.pick(t, "topsail-gateway", "gateway").pid, syscall.SIGKILL)
		time.Sleep(settle)
	}).want(t, 0)
}

func TestStoppedGateway(t *testing.T) {
	world.under(t, "a gateway's allocation is stopped", func(t *testing.T) {
		alloc := world.pick(t, "topsail-gateway", "gateway").alloc
		if _, err := world.nomad.Allocations().Stop(&nomad.Allocation{ID: alloc}, nil); err != nil {
			t.Fatal(err)
		}
		time.Sleep(settle)
	}).want(t, 0)
}

func TestKilledLeader(t *testing.T) {
	world.under(t, "the leading scheduler is killed", func(t *testing.T) {
		jobs := world.jobs(t)
		old := world.leader(t)
		killed := false
		for _, one := range tasks(world.dir) {
			if one.job == "topsail-scheduler" && strings.Contains(old, one.alloc) {
				signal(t, one.pid, syscall.SIGKILL)
				killed = true
			}
		}
		if !killed {
			t.Fatalf("the leader %q does not run", old)
		}
		begun := time.Now()
		for world.leader(t) == old || world.leader(t) == "" {
			if time.Since(begun) > 25*time.Second {
				t.Fatal("nobody leads 25 s after the leader was killed")
			}
			time.Sleep(50 * time.Millisecond)
		}
		t.Logf("another one leads after %v", time.Since(begun))
		time.Sleep(settle)
		if now := world.jobs(t); now != jobs {
			t.Errorf("jobs were changed: %s, before: %s", now, jobs)
		}
	}).want(t, 0)
}

// leader is what the lock in Consul says; empty where nobody holds it.
func (r *rig) leader(t *testing.T) string {
	t.Helper()
	pair, _, err := r.consul.KV().Get("topsail/scheduler/leader", nil)
	if err != nil {
		t.Fatal(err)
	}
	if pair == nil || pair.Session == "" {
		return ""
	}
	return string(pair.Value) + pair.Session
}

func TestDrainedNode(t *testing.T) {
	world.under(t, "a Nomad client is drained", func(t *testing.T) {
		node := world.node(t, world.pick(t, world.model("1"), "sidecar").alloc)
		spec := &nomad.DrainSpec{Deadline: 2 * time.Minute}
		if _, err := world.nomad.Nodes().UpdateDrainOpts(node, &nomad.DrainOptions{DrainSpec: spec}, nil); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		err := world.await(ctx, func(context.Context) error {
			n, _, err := world.nomad.Nodes().Info(node, nil)
			if err == nil && n.DrainStrategy != nil {
				err = fmt.Errorf("node %s still drains", node)
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
		if _, err := world.nomad.Nodes().ToggleEligibility(node, true, nil); err != nil {
			t.Fatal(err)
		}
	}).want(t, 0)
}

func (r *rig) node(t *testing.T, alloc string) string {
	t.Helper()
	a, _, err := r.nomad.Allocations().Info(alloc, nil)
	if err != nil {
		t.Fatal(err)
	}
	return a.NodeID
}

func TestUpgrade(t *testing.T) {
	old := filepath.Join(world.dir, "previous", "topsail")
	world.previous(t, old)
	world.run(t, old)
	world.under(t, "gateways and sidecars are upgraded", func(t *testing.T) { world.run(t, world.topsail) }).want(t, 0)
}

// run brings all roles to a program, and waits until they run it.
func (r *rig) run(t *testing.T, program string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	for _, job := range []string{"gateway", "scheduler"} {
		if err := r.runJob(ctx, job, program); err != nil {
			t.Fatal(err)
		}
	}
	err := r.await(ctx, func(ctx context.Context) error {
		for _, one := range tasks(r.dir) {
			if one.name == "container" {
				continue
			}
			if exe := one.executable(); exe != program {
				return fmt.Errorf("%s of %s runs %s", one.name, one.job, exe)
			}
		}
		return r.whole(ctx)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// previous builds the commit before this one.
func (r *rig) previous(t *testing.T, program string) {
	t.Helper()
	tree := filepath.Join(r.dir, "previous", "tree")
	for _, args := range [][]string{
		{"git", "worktree", "add", "--detach", tree, "HEAD~1"},
		{"go", "build", "-C", tree, "-o", program, "./cmd/topsail"},
		{"git", "worktree", "remove", "--force", tree},
	} {
		if out, err := exec.CommandContext(t.Context(), args[0], args[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", args, err, out)
		}
	}
}

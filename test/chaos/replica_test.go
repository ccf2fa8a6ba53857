//go:build faults

package chaos

import (
	"context"
	"syscall"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/test/harness"
	"github.com/topsail-serving/topsail/test/require"
)

const (
	slo     = 250 * time.Millisecond
	settle  = 3 * time.Second // of steady load before and after a fault
	recover = 2 * time.Minute
)

// under puts steady load on the cluster, does something to it, waits until all is
// whole again, and reports what the clients saw.
func (r *world) under(t *testing.T, fault string, do func(t *testing.T)) harness.Report {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), recover)
	defer cancel()
	if err := r.Await(ctx, r.Whole); err != nil {
		t.Fatalf("the cluster was not whole before: %v", err)
	}
	require.NoError(t, r.Await(ctx, r.sized))
	l := harness.StartLoad("sum", harness.Rate, r.Gateways)
	time.Sleep(settle)
	do(t)
	ctx, cancel = context.WithTimeout(t.Context(), recover)
	defer cancel()
	begun := time.Now()
	err := r.Await(ctx, r.Whole)
	took := time.Since(begun)
	time.Sleep(settle)
	one := l.End(fault)
	one.Recovered = took
	r.mu.Lock()
	r.reports = append(r.reports, one)
	r.mu.Unlock()
	t.Log(one)
	if err != nil {
		t.Errorf("the cluster does not get whole again: %v", err)
	}
	if err := r.sized(t.Context()); err != nil {
		t.Errorf("scaled on missing data: %v", err)
	}
	return one
}

// want holds a report to the promise: no errors, every query answered by its SLO
// with a little for the network, and no more defaults than so many. What the machine
// itself stood still is on nobody's account, nor is one query of a thousand: only this
// process sees when it stands still, and others may.
func want(t *testing.T, one harness.Report, defaults int) {
	t.Helper()
	defer func() {
		if t.Failed() {
			t.Logf("since the load began:\n%s", cluster.Story(one.Begun))
		}
	}()
	defaults += one.Sent / 1000
	if one.Stall > slack/2 {
		defaults += int(3 * harness.Rate * one.Stall.Seconds())
	}
	if one.Errors > 0 {
		t.Errorf("%d queries got no answer, the first: %v", one.Errors, one.First)
	}
	if one.AllDefaults() > defaults {
		t.Errorf("%d defaults, and at most %d may be: %v", one.AllDefaults(), defaults, one.Defaults)
	}
	if longest := slo + slack + 3*one.Stall; one.Longest > longest {
		t.Errorf("the longest answer took %v, and at most %v may be", one.Longest, longest)
	}
}

const (
	slack = 50 * time.Millisecond
	// inFlight is how many queries one of the replicas may hold within an SLO.
	inFlight = int(harness.Rate * slo / time.Second / harness.Replicas)
)

// pick finds a running process of a job's task.
func (r *world) pick(t *testing.T, job, name string) harness.Task {
	t.Helper()
	for _, one := range harness.Tasks(r.Dir) {
		if one.Job == job && one.Name == name {
			return one
		}
	}
	t.Fatalf("no task %s of %s runs", name, job)
	return harness.Task{}
}

func TestKilledContainer(t *testing.T) {
	want(t, cluster.under(t, "a container is killed", func(t *testing.T) {
		signal(t, cluster.pick(t, cluster.Model("1"), "container").PID, syscall.SIGKILL)
	}), inFlight)
}

// A container that says nothing any more is ended and started anew by Nomad.
func TestFrozenContainer(t *testing.T) {
	want(t, cluster.under(t, "a container freezes for good", func(t *testing.T) {
		pid := cluster.pick(t, cluster.Model("1"), "container").PID
		signal(t, pid, syscall.SIGSTOP)
		begun := time.Now()
		for syscall.Kill(pid, 0) == nil {
			if time.Since(begun) > recover {
				t.Fatalf("it is still there after %v", recover)
			}
			time.Sleep(100 * time.Millisecond)
		}
		t.Logf("it was ended after %v", time.Since(begun).Round(time.Second))
	}), inFlight)
}

func TestKilledSidecar(t *testing.T) {
	want(t, cluster.under(t, "a sidecar is killed", func(t *testing.T) {
		signal(t, cluster.pick(t, cluster.Model("1"), "sidecar").PID, syscall.SIGKILL)
	}), inFlight)
}

func TestFrozenSidecar(t *testing.T) {
	want(t, cluster.under(t, "a sidecar freezes for the outage", func(t *testing.T) {
		pid := cluster.pick(t, cluster.Model("1"), "sidecar").PID
		signal(t, pid, syscall.SIGSTOP)
		time.Sleep(*outage)
		_ = syscall.Kill(pid, syscall.SIGCONT) // Nomad may have replaced it by then
	}), inFlight)
}

func TestKilledAllocation(t *testing.T) {
	want(t, cluster.under(t, "an allocation is killed", cluster.killAllocation), inFlight)
}

// killAllocation kills all tasks of a replica at once.
func (r *world) killAllocation(t *testing.T) {
	t.Helper()
	alloc := r.pick(t, r.Model("1"), "sidecar").Alloc
	for _, one := range harness.Tasks(r.Dir) {
		if one.Alloc == alloc {
			signal(t, one.PID, syscall.SIGKILL)
		}
	}
}

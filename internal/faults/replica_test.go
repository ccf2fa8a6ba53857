package faults

import (
	"context"
	"syscall"
	"testing"
	"time"
)

const (
	settle  = 3 * time.Second // of steady load before and after a fault
	recover = 60 * time.Second
)

// under puts steady load on the cluster, does something to it, waits until all is
// whole again, and reports what the clients saw.
func (r *rig) under(t *testing.T, fault string, do func(t *testing.T)) report {
	t.Helper()
	return r.underUntil(t, fault, do, r.whole)
}

func (r *rig) underUntil(t *testing.T, fault string, do func(t *testing.T), good func(context.Context) error) report {
	t.Helper()
	following, stop := context.WithCancel(context.Background())
	defer stop()
	ctx, cancel := context.WithTimeout(t.Context(), recover)
	defer cancel()
	if err := r.await(ctx, r.whole); err != nil {
		t.Fatalf("the cluster was not whole before: %v", err)
	}
	go r.followGateways(following)
	for len(r.gateways()) < 2 {
		time.Sleep(10 * time.Millisecond)
	}
	l := startLoad("sum", r.gateways)
	time.Sleep(settle)
	do(t)
	ctx, cancel = context.WithTimeout(t.Context(), recover)
	defer cancel()
	begun := time.Now()
	err := r.await(ctx, good)
	took := time.Since(begun)
	time.Sleep(settle)
	one := l.end(fault)
	one.Recovered = took
	r.mu.Lock()
	r.reports = append(r.reports, one)
	r.mu.Unlock()
	t.Log(one)
	if err != nil {
		t.Errorf("the cluster does not get whole again: %v", err)
	}
	return one
}

// want holds a report to the promise: no errors, every query answered by its SLO
// with a little for the network, and no more defaults than so many.
func (one report) want(t *testing.T, defaults int) {
	t.Helper()
	if one.Errors > 0 {
		t.Errorf("%d queries got no answer, the first: %v", one.Errors, one.first)
	}
	if one.defaults() > defaults {
		t.Errorf("%d defaults, and at most %d were in flight on what broke: %v", one.defaults(), defaults, one.Defaults)
	}
	if one.Longest > slo+slack {
		t.Errorf("the longest answer took %v of %v", one.Longest, slo)
	}
}

const (
	slack = 50 * time.Millisecond
	// inFlight is how many queries one of the replicas may hold within an SLO.
	inFlight = int(rate * slo / time.Second / replicas)
)

// pick finds a running process of a job's task.
func (r *rig) pick(t *testing.T, job, name string) task {
	t.Helper()
	for _, one := range tasks(r.dir) {
		if one.job == job && one.name == name {
			return one
		}
	}
	t.Fatalf("no task %s of %s runs", name, job)
	return task{}
}

func TestKilledContainer(t *testing.T) {
	world.under(t, "a container is killed", func(t *testing.T) {
		signal(t, world.pick(t, world.model("1"), "container").pid, syscall.SIGKILL)
	}).want(t, inFlight)
}

func TestKilledSidecar(t *testing.T) {
	world.under(t, "a sidecar is killed", func(t *testing.T) {
		signal(t, world.pick(t, world.model("1"), "sidecar").pid, syscall.SIGKILL)
	}).want(t, inFlight)
}

func TestFrozenSidecar(t *testing.T) {
	world.under(t, "a sidecar freezes for the outage", func(t *testing.T) {
		pid := world.pick(t, world.model("1"), "sidecar").pid
		signal(t, pid, syscall.SIGSTOP)
		time.Sleep(*outage)
		signal(t, pid, syscall.SIGCONT)
	}).want(t, inFlight)
}

func TestKilledAllocation(t *testing.T) {
	world.under(t, "an allocation is killed", func(t *testing.T) {
		alloc := world.pick(t, world.model("1"), "sidecar").alloc
		for _, one := range tasks(world.dir) {
			if one.alloc == alloc {
				signal(t, one.pid, syscall.SIGKILL)
			}
		}
	}).want(t, inFlight)
}

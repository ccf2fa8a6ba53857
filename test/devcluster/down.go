package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/topsail-serving/topsail/test/servers"
)

// down stops everything and removes its data.
func down(_ context.Context, o options) error {
	s, err := o.load()
	if err != nil {
		return err
	}
	if _, err := os.Stat(o.dir); len(s.Servers) == 0 && err != nil {
		fmt.Println("no cluster is up")
		return nil
	}
	if err := stop(o); err != nil {
		return err
	}
	if err := os.RemoveAll(o.dir); err != nil {
		return err
	}
	fmt.Println("the cluster is down, and nothing of it is left")
	return nil
}

// stop stops jobs, servers, and whatever of them is left. It is not bound to the
// command's context: an interrupted start is cleaned up too.
func stop(o options) error {
	stopJobs(o)
	s, err := o.load()
	if err != nil {
		return err
	}
	for _, one := range slices.Backward(s.Servers) {
		if slices.Contains(servers.Leftovers(o.dir), one.PID) { // a number may have come to be another's
			end(one.PID, 20*time.Second)
		}
	}
	servers.Sweep(o.dir)
	if err := os.Remove(o.stateFile()); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

const jobsStopWithin = 45 * time.Second

// stopJobs stops all jobs in the orderly way, as far as Nomad answers. The gateway
// goes first, while there are replicas to answer what it has.
func stopJobs(o options) {
	nomad, err := servers.Binary("nomad")
	if err != nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), jobsStopWithin)
	defer cancel()
	for _, first := range []string{"topsail-scheduler", "topsail-gateway"} {
		_ = o.command(ctx, nomad, "job", "stop", "-purge", first) // there may be none
	}
	cmd := exec.CommandContext(ctx, nomad, "job", "status")
	cmd.Env = append(os.Environ(), o.environment()...)
	out, err := cmd.Output()
	if err != nil {
		return
	}
	for line := range strings.Lines(string(out)) {
		if name, _, _ := strings.Cut(line, " "); strings.HasPrefix(name, "topsail-") {
			_ = o.command(ctx, nomad, "job", "stop", "-purge", name)
		}
	}
}

// end ends a process, in the orderly way at first.
func end(pid int, grace time.Duration) {
	deadline := time.Now().Add(grace)
	_ = syscall.Kill(pid, syscall.SIGCONT)
	_ = syscall.Kill(pid, syscall.SIGTERM)
	for servers.Alive(pid) {
		if time.Now().After(deadline) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"topsail/internal/servers"
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
	slices.Reverse(s.Servers)
	for _, one := range s.Servers {
		end(one.PID, 20*time.Second)
	}
	for _, pid := range o.leftovers() {
		end(pid, 3*time.Second)
	}
	if err := o.unmount(); err != nil {
		return err
	}
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
	for alive(pid) {
		if time.Now().After(deadline) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// alive is false for a process that has ended, whether or not it was waited for.
func alive(pid int) bool {
	b, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return false
	}
	rest := b[bytes.LastIndexByte(b, ')')+1:]
	return len(rest) < 2 || rest[1] != 'Z'
}

// leftovers are processes that work in the cluster's folder or were started with
// a path in it: Nomad's executors and the tasks under them.
func (o options) leftovers() []int {
	var pids []int
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		if o.owns(filepath.Join("/proc", e.Name())) {
			pids = append(pids, pid)
		}
	}
	return pids
}

func (o options) owns(proc string) bool {
	if cwd, err := os.Readlink(filepath.Join(proc, "cwd")); err == nil && strings.HasPrefix(cwd, o.dir+"/") {
		return true
	}
	for _, file := range []string{"cmdline", "environ"} {
		if b, err := os.ReadFile(filepath.Join(proc, file)); err == nil && bytes.Contains(b, []byte(o.dir+"/nomad-client")) {
			return true
		}
	}
	return false
}

// unmount takes away what Nomad mounted into its tasks' folders.
func (o options) unmount() error {
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		return nil // nothing is mounted where there is no such file
	}
	var errs []error
	for line := range strings.Lines(string(mounts)) {
		if fields := strings.Fields(line); len(fields) > 1 && strings.HasPrefix(fields[1], o.dir+"/") {
			if err := syscall.Unmount(fields[1], syscall.MNT_DETACH); err != nil {
				errs = append(errs, fmt.Errorf("unmount %s: %w", fields[1], err))
			}
		}
	}
	return errors.Join(errs...)
}

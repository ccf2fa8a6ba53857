package faults

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"testing"
)

// task is a running process of a Nomad task.
type task struct {
	pid   int
	alloc string
	name  string // of the task
	job   string
}

// tasks lists the main processes of the tasks that Nomad runs in dir: those whose
// parent is not of the same task.
func tasks(dir string) []task {
	all := map[int]task{}
	parents := map[int]int{}
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		env, err := os.ReadFile(filepath.Join("/proc", e.Name(), "environ"))
		if err != nil || !bytes.Contains(env, []byte("NOMAD_ALLOC_DIR="+dir)) {
			continue
		}
		all[pid] = task{pid: pid, alloc: variable(env, "NOMAD_ALLOC_ID"), name: variable(env, "NOMAD_TASK_NAME"), job: variable(env, "NOMAD_JOB_ID")}
		parents[pid] = parent(e.Name())
	}
	var list []task
	for pid, t := range all {
		if p, ok := all[parents[pid]]; !ok || p.alloc != t.alloc || p.name != t.name {
			list = append(list, t)
		}
	}
	slices.SortFunc(list, func(a, b task) int { return a.pid - b.pid })
	return list
}

// executable is the program that the task runs.
func (t task) executable() string {
	exe, _ := os.Readlink(filepath.Join("/proc", strconv.Itoa(t.pid), "exe"))
	return exe
}

func variable(environ []byte, name string) string {
	for entry := range bytes.SplitSeq(environ, []byte{0}) {
		if value, ok := bytes.CutPrefix(entry, []byte(name+"=")); ok {
			return string(value)
		}
	}
	return ""
}

func parent(pid string) int {
	b, err := os.ReadFile(filepath.Join("/proc", pid, "stat"))
	if err != nil {
		return 0
	}
	fields := bytes.Fields(b[bytes.LastIndexByte(b, ')')+1:])
	if len(fields) < 2 {
		return 0
	}
	p, _ := strconv.Atoi(string(fields[1]))
	return p
}

func signal(t *testing.T, pid int, sig syscall.Signal) {
	t.Helper()
	if err := syscall.Kill(pid, sig); err != nil {
		t.Fatalf("signal %v to process %d: %v", sig, pid, err)
	}
}

package harness

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strconv"
)

// Task is a running process of a Nomad task.
type Task struct {
	PID   int
	Alloc string
	Name  string
	Job   string
}

// Tasks lists the main processes of the tasks that Nomad runs in dir: those whose
// parent is not of the same task.
func Tasks(dir string) []Task {
	all := map[int]Task{}
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
		all[pid] = Task{PID: pid, Alloc: variable(env, "NOMAD_ALLOC_ID"), Name: variable(env, "NOMAD_TASK_NAME"), Job: variable(env, "NOMAD_JOB_ID")}
		parents[pid] = parent(e.Name())
	}
	var list []Task
	for pid, t := range all {
		if p, ok := all[parents[pid]]; !ok || p.Alloc != t.Alloc || p.Name != t.Name {
			list = append(list, t)
		}
	}
	slices.SortFunc(list, func(a, b Task) int { return a.PID - b.PID })
	return list
}

// Executable is the program that the task runs.
func (t Task) Executable() string {
	exe, _ := os.Readlink(filepath.Join("/proc", strconv.Itoa(t.PID), "exe"))
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

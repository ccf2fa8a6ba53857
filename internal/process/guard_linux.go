package process

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// adoptOrphans makes every descendant whose parent ends a child of ours.
func adoptOrphans() error {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("cannot become a child subreaper: %w", err)
	}
	return nil
}

func groupLeader() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: unix.SIGKILL}
}

// killOrphans kills and reaps until there is no child. Then there is no
// descendant either: those of a child that died are our children by the time
// that we reap it, and meet the next round.
func killOrphans() {
	for {
		for _, pid := range children() {
			_ = unix.Kill(pid, unix.SIGKILL)
		}
		if !reapDead() {
			return
		}
	}
}

// reapDead waits for one child to die and reaps all that are dead. It is false
// when there is no child.
func reapDead() bool {
	for options := 0; ; options = syscall.WNOHANG {
		pid, err := syscall.Wait4(-1, nil, options, nil)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return false
		case pid == 0: // the others are alive
			return true
		}
	}
}

// children lists our direct children. The shorter way, the kernel's own lists
// in /proc/self/task/*/children, is not built into every kernel.
func children() []int {
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	self := strconv.Itoa(os.Getpid())
	var pids []int
	for _, path := range stats {
		stat, err := os.ReadFile(path)
		if err != nil {
			continue // it ended
		}
		if pid, parent := parseStat(stat); parent == self {
			pids = append(pids, pid)
		}
	}
	return pids
}

// parseStat reads "pid (name) state parent ..."; a name may hold anything.
func parseStat(stat []byte) (pid int, parent string) {
	first, _, _ := bytes.Cut(stat, []byte(" "))
	nameEnd := bytes.LastIndexByte(stat, ')')
	fields := bytes.Fields(stat[nameEnd+1:])
	if nameEnd < 0 || len(fields) < 2 {
		return 0, ""
	}
	pid, _ = strconv.Atoi(string(first))
	return pid, string(fields[1])
}

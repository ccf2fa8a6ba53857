package process

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestUsages has a command whose child computes.
func TestUsages(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), "sh", "-c", `(while :; do :; done) & echo; wait`)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_, _ = out.Read(make([]byte, 1))
	pid := cmd.Process.Pid
	defer func() {
		for _, p := range Usages([]int{pid})[pid].Processes {
			if process, err := os.FindProcess(p); err == nil {
				_ = process.Kill()
			}
		}
		_ = cmd.Wait()
	}()
	deadline := time.Now().Add(time.Minute)
	for {
		all := Usages([]int{pid, os.Getpid(), 1 << 30})
		u := all[pid]
		if u.CPU >= 100*time.Millisecond && u.Memory > 0 && len(u.Processes) >= 2 && slices.Contains(u.Processes, pid) {
			if _, there := all[1<<30]; there {
				t.Error("there is a process that is not")
			}
			if own := all[os.Getpid()]; own.Memory < 1<<20 || !slices.Contains(own.Processes, pid) {
				t.Errorf("this process: %+v", own)
			}
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%+v", u)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func TestParseUsage(t *testing.T) {
	stat := "42 (a) b) S 7 42 42 0 -1 4194560 9 0 0 0 150 50 25 25 20 0 1 0 100 1000000 10 18446744073709551615 1 1"
	pid, parent, u := parseUsage([]byte(stat))
	if pid != 42 || parent != 7 || u.CPU != 2500*time.Millisecond || u.Memory != 10*int64(os.Getpagesize()) {
		t.Errorf("%d of %d: %+v", pid, parent, u)
	}
	for _, bad := range []string{"", "42", "42 (", strings.Repeat(" ", 99), stat[:40]} {
		if pid, _, _ := parseUsage([]byte(bad)); pid != 0 {
			t.Errorf("%q is process %d", bad, pid)
		}
	}
}

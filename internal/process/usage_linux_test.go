package process

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/topsail-serving/topsail/test/require"
)

// TestUsages has a command whose child computes, says so, and stays.
func TestUsages(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), "sh", "-c", `(i=0; while [ $i -lt 200000 ]; do i=$((i + 1)); done; echo; exec sleep 600) & wait`)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	pid := cmd.Process.Pid
	defer func() {
		for _, p := range Usages([]int{pid})[pid].Processes {
			_ = unix.Kill(p, unix.SIGKILL)
		}
		_ = cmd.Wait()
	}()
	if n, err := out.Read(make([]byte, 1)); n != 1 {
		t.Fatal(err)
	}
	all := Usages([]int{pid, os.Getpid(), 1 << 30})
	if u := all[pid]; u.CPU < 20*time.Millisecond || u.Memory < 1<<16 || len(u.Processes) != 2 || u.Processes[0] != pid {
		t.Errorf("%+v", u)
	}
	if own := all[os.Getpid()]; own.Memory < 1<<20 || own.CPU < all[pid].CPU || !slices.Contains(own.Processes, pid) {
		t.Errorf("this process: %+v", own)
	}
	if _, there := all[1<<30]; there {
		t.Error("there is a process that is not")
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

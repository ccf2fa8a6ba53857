package process

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/topsail-serving/topsail/test/require"
	"github.com/topsail-serving/topsail/test/wait"
)

// family is a command whose processes leave it in every way there is. Each
// writes its pid to a file in dir; the command itself is the last to do so.
func family(dir string) []string {
	return sh(strings.ReplaceAll(`
		say() { echo $1 >DIR/$2; }
		sleep 300 & say $! background
		(sleep 300 & say $! orphan)
		setsid sh -c 'echo $$ >DIR/session; trap "" TERM HUP; sleep 300 & echo $! >DIR/in_session; wait' &
		setsid sh -c 'setsid sh -c "echo \$\$ >DIR/double; sleep 300 & wait" & exit 0' &
		sh -c 'sh -c "sh -c \"setsid sleep 300 & echo \\\$! >DIR/deep\" & wait" & wait' &
		say $PPID guard
		say $$ command
		wait`, "DIR", dir))
}

var familyNames = []string{"background", "orphan", "session", "in_session", "double", "deep", "guard", "command"}

// familyPIDs waits until all have written their pids.
func familyPIDs(t *testing.T, dir string) map[string]int {
	t.Helper()
	pids := make(map[string]int)
	wait.Until(t, "the processes", func() bool {
		for _, name := range familyNames {
			text, _ := os.ReadFile(filepath.Join(dir, name))
			if pid, err := strconv.Atoi(string(bytes.TrimSpace(text))); err == nil {
				pids[name] = pid
			}
		}
		return len(pids) == len(familyNames)
	})
	return pids
}

func readPID(t *testing.T, file string) int {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	pid, err := strconv.Atoi(string(bytes.TrimSpace(text)))
	require.NoError(t, err)
	return pid
}

// living are the names of those that have not ended; a zombie has.
func living(pids map[string]int) (names []string) {
	for name, pid := range pids {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err == nil && !bytes.Contains(stat, []byte(") Z ")) {
			names = append(names, name)
		}
	}
	return names
}

func kill(t *testing.T, pid int) {
	t.Helper()
	require.NoError(t, syscall.Kill(pid, syscall.SIGKILL))
}

func TestParentKilledLeavesNobody(t *testing.T) {
	dir := t.TempDir()
	parent := exec.Command(os.Args[0], append([]string{"parent"}, family(dir)...)...)
	require.NoError(t, parent.Start())
	t.Cleanup(func() { _ = parent.Process.Kill() })
	pids := familyPIDs(t, dir)
	if left := living(pids); len(left) != len(pids) {
		t.Fatalf("only %q are alive before the kill", left)
	}
	kill(t, parent.Process.Pid)
	_ = parent.Wait()
	wait.Until(t, "the end of all processes", func() bool { return living(pids) == nil })
}

func TestStopLeavesNobody(t *testing.T) {
	dir := t.TempDir()
	s := supervise(t, Spec{Argv: family(dir)})
	pids := familyPIDs(t, dir)
	s.stop()
	if left := living(pids); left != nil {
		t.Errorf("Run returned and %q are alive", left)
	}
}

func TestCommandEndsBeforeItsFamily(t *testing.T) {
	dir := t.TempDir()
	s := supervise(t, Spec{Argv: family(dir)}) // and all hold its output open
	pids := familyPIDs(t, dir)
	kill(t, pids["command"])
	if got := s.until(BackingOff).Reason; got != "killed by signal SIGKILL" {
		t.Errorf("reason %q", got)
	}
	if left := living(pids); left != nil {
		t.Errorf("the run is over and %q are alive", left)
	}
}

// Starting is when most can go wrong: the guard may have no signal handler yet,
// or be just about to start the command.
func TestStopWhileStarting(t *testing.T) {
	pids := make(map[string]int)
	for i := range 20 {
		s := supervise(t, Spec{Argv: sh("trap '' TERM; sleep 300"), Grace: 50 * time.Millisecond})
		s.until(Starting)
		s.stop()
		for len(s.changes) > 0 {
			if now := s.next(); now.State == Running {
				pids[strconv.Itoa(i)] = now.PID
			}
		}
	}
	if left := children(); left != nil {
		t.Errorf("guards %v are alive", left)
	}
	if left := living(pids); left != nil {
		t.Errorf("commands %v are alive", left)
	}
}

// Nobody but the kernel can end the command when guard and parent die together.
func TestCommandDiesWithItsGuard(t *testing.T) {
	g := startGuard(t, sh("trap '' TERM HUP; while :; do sleep 1; done"))
	line, err := g.report.ReadString('\n')
	require.NoError(t, err)
	command, err := strconv.Atoi(strings.TrimSpace(strings.TrimPrefix(line, "started ")))
	require.NoError(t, err)
	kill(t, g.Process.Pid)
	_ = g.Wait()
	wait.Until(t, "the end of all processes", func() bool { return living(map[string]int{"command": command}) == nil })
}

func TestGuardKilled(t *testing.T) {
	// The sleeper in the background is no direct child of the guard; the one in
	// its own session is lost to us, and holds the output open.
	dir := t.TempDir()
	s := supervise(t, Spec{Argv: sh("sleep 300 & echo $! >" + dir + "/background; " +
		"setsid sleep 300 & echo lost $!; echo guard $PPID; wait")})
	command := s.until(Running).PID
	guard, err := strconv.Atoi(s.waitLine("guard "))
	require.NoError(t, err)
	lost, err := strconv.Atoi(s.waitLine("lost "))
	require.NoError(t, err)
	t.Cleanup(func() { kill(t, lost) })
	background := readPID(t, filepath.Join(dir, "background"))
	if group, err := syscall.Getpgid(guard); err != nil || group != guard {
		t.Errorf("the guard is in group %d, %v: Ctrl-C may reach it before us", group, err)
	}
	kill(t, guard)
	if got := s.until(BackingOff).Reason; got != "guard: killed by signal SIGKILL" {
		t.Errorf("reason %q", got)
	}
	pids := map[string]int{"command": command, "background": background}
	wait.Until(t, "the end of all processes", func() bool { return living(pids) == nil })
	if again := s.until(Running); again.PID == command {
		t.Errorf("the command was not started again: %+v", again)
	}
}

func TestCommandInheritsNoPipe(t *testing.T) {
	s := supervise(t, Spec{Argv: sh(`for n in 3 4 5 6 7 8 9; do
		test -e /proc/$$/fd/$n && echo "open: $n $(readlink /proc/$$/fd/$n)"; done; echo checked`)})
	s.waitLine("checked")
	if got := s.Tail(tailLines)[0]; got != "checked" {
		t.Errorf("the command has %s", got)
	}
}

func TestParseStat(t *testing.T) {
	for stat, want := range map[string]struct {
		pid    int
		parent string
	}{
		"12 (sh) S 7 12 12 0 -1": {12, "7"},
		"12 (a) S 99 (b) R 7 12": {12, "7"},
		"12 (sh":                 {},
		"":                       {},
	} {
		if pid, parent := parseStat([]byte(stat)); pid != want.pid || parent != want.parent {
			t.Errorf("%q: %d, %q", stat, pid, parent)
		}
	}
}

// Whatever the name of a program is, it does not look like other fields.
func TestParseStatAnyName(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pid, parent := rapid.IntRange(1, 1<<22).Draw(t, "pid"), rapid.IntRange(0, 1<<22).Draw(t, "parent")
		name := rapid.String().Draw(t, "name")
		gotPID, gotParent := parseStat(fmt.Appendf(nil, "%d (%s) S %d 1 1 0 -1", pid, name, parent))
		if gotPID != pid || gotParent != strconv.Itoa(parent) {
			t.Fatalf("got %d, %s", gotPID, gotParent)
		}
	})
}

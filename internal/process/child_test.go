//go:build unix

package process

import (
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/test/require"
)

func TestChildRestartsAndKeepsTheReason(t *testing.T) {
	s := supervise(t, Spec{Argv: sh("exit 3")})
	var states []State
	var last Snapshot
	for range 6 {
		last = s.next()
		states = append(states, last.State)
	}
	want := []State{Starting, Running, BackingOff, Starting, Running, BackingOff}
	if !slices.Equal(states, want) {
		t.Errorf("states %v, want %v", states, want)
	}
	if last.Restarts != 1 || last.Reason != "exit status 3" || last.PID != 0 {
		t.Errorf("after two runs: %+v", last)
	}
	if now := s.Snapshot(); now.Restarts < 1 {
		t.Errorf("Snapshot() = %+v is older than the last change", now)
	}
}

func TestChildBacksOff(t *testing.T) {
	s := supervise(t, Spec{Argv: sh("exit 1")})
	for i, atLeast := range []time.Duration{firstDelay / 2, firstDelay} {
		ended := s.until(BackingOff)
		if waited := s.until(Starting).Since.Sub(ended.Since); waited < atLeast {
			t.Errorf("wait %d was %v, want %v or more", i, waited, atLeast)
		}
	}
}

func TestChildEndsBySignal(t *testing.T) {
	s := supervise(t, Spec{Argv: sh("kill -KILL $$")})
	if got := s.until(BackingOff).Reason; got != "killed by signal SIGKILL" {
		t.Errorf("reason %q", got)
	}
	s = supervise(t, Spec{Argv: sh("exit 137")}) // the same number, another reason
	if got := s.until(BackingOff).Reason; got != "exit status 137" {
		t.Errorf("reason %q", got)
	}
}

func TestChildStopsGracefully(t *testing.T) {
	s := supervise(t, Spec{Argv: sh("trap 'echo draining; exit 0' TERM; echo ready; while :; do sleep 0.05; done")})
	s.waitLine("ready")
	s.stop()
	now := s.Snapshot()
	if now.State != Stopped || now.Reason != "exit status 0" || now.PID != 0 {
		t.Errorf("after stop: %+v", now)
	}
	if got := s.Tail(tailLines); !slices.Contains(got, "draining") {
		t.Errorf("it was not asked to stop: %q", got)
	}
}

func TestChildIgnoringSIGTERMIsKilledAfterGrace(t *testing.T) {
	const grace = 300 * time.Millisecond
	s := supervise(t, Spec{Argv: sh("trap '' TERM; echo ready; while :; do sleep 1; done"), Grace: grace})
	s.waitLine("ready")
	begin := time.Now()
	s.stop()
	if took := time.Since(begin); took < grace {
		t.Errorf("stopped after %v, want %v or more", took, grace)
	}
	if now := s.Snapshot(); now.State != Stopped || now.Reason != "killed by signal SIGKILL" {
		t.Errorf("after stop: %+v", now)
	}
}

func TestChildStopsWhileBackingOff(t *testing.T) {
	s := supervise(t, Spec{Argv: sh("exit 1")})
	s.until(BackingOff)
	s.stop()
	if now := s.Snapshot(); now.State != Stopped || now.Reason != "exit status 1" {
		t.Errorf("after stop: %+v", now)
	}
}

func TestChildRestart(t *testing.T) {
	s := supervise(t, Spec{Argv: sh("trap 'echo draining; exit 0' TERM; echo ready $$; while :; do sleep 0.05; done")})
	first := s.until(Running)
	s.waitLine("ready ")
	s.Restart()
	if now := s.next(); now.State != Starting || now.Restarts != 1 || now.Reason != "exit status 0" {
		t.Errorf("after Restart: %+v, want a start at once", now)
	}
	if second := s.until(Running); second.PID == first.PID {
		t.Errorf("the same process %d is running", second.PID)
	}
	if got := s.Tail(tailLines); !slices.Contains(got, "draining") {
		t.Errorf("the first process was not stopped gracefully: %q", got)
	}
}

// One that hangs does not hear of SIGTERM, and neither does what it has started.
func TestChildThatHangsIsKilled(t *testing.T) {
	first := filepath.Join(t.TempDir(), "first") // the second one ends when it is asked to
	s := supervise(t, Spec{Grace: time.Hour, Argv: sh("test -e " + first + " && exec sleep 1000; touch " + first +
		"; trap '' TERM; (trap '' TERM; sleep 1000) & echo child $!; while :; do sleep 1; done")})
	hangs := s.until(Running)
	pid, err := strconv.Atoi(s.waitLine("child "))
	require.NoError(t, err)
	s.Kill("it hangs")
	if now := s.until(BackingOff); now.Reason != "it hangs" {
		t.Errorf("after Kill: %+v", now)
	}
	if err := syscall.Kill(pid, 0); err == nil {
		t.Error("what it had started is still there")
	}
	if second := s.until(Running); second.PID == hangs.PID || second.Restarts != 1 {
		t.Errorf("it is not started anew: %+v", second)
	}
}

func TestChildThatCannotStart(t *testing.T) {
	dir := t.TempDir()
	plain := filepath.Join(dir, "plain")
	orphan := filepath.Join(dir, "orphan")
	noHead := filepath.Join(dir, "nohead")
	for path, file := range map[string]struct {
		text string
		mode os.FileMode
	}{plain: {"text", 0o600}, orphan: {"#!/no/such/interpreter\n", 0o700}, noHead: {"echo x\n", 0o700}} {
		require.NoError(t, os.WriteFile(path, []byte(file.text), file.mode))
	}
	for name, test := range map[string]struct {
		spec Spec
		want []string
	}{
		"missing command":        {Spec{Argv: []string{"no-such-command"}}, []string{`"no-such-command"`, "install it or give its full path"}},
		"missing path":           {Spec{Argv: []string{"./no/such"}}, []string{"no such file", "check the path"}},
		"missing interpreter":    {Spec{Argv: []string{orphan}}, []string{"no such file", "interpreter"}},
		"no interpreter line":    {Spec{Argv: []string{noHead}}, []string{"#!/bin/sh"}},
		"not executable":         {Spec{Argv: []string{plain}}, []string{"permission denied", "chmod +x"}},
		"the command is missing": {Spec{}, []string{"the command is missing"}},
		"missing directory":      {Spec{Argv: sh("exit 0"), Dir: filepath.Join(dir, "gone")}, []string{"gone", "does not exist", "create it"}},
		"not a directory":        {Spec{Argv: sh("exit 0"), Dir: plain}, []string{"is not a directory"}},
		"log file":               {Spec{Argv: sh("exit 0"), LogFile: filepath.Join(plain, "log")}, []string{"log file", "not a directory"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := supervise(t, test.spec)
			if first := s.next(); first.State != Starting {
				t.Errorf("first change %+v", first)
			}
			now := s.next() // and not Running
			if now.State != BackingOff || !strings.HasPrefix(now.Reason, "cannot start: ") {
				t.Fatalf("second change %+v", now)
			}
			for _, part := range test.want {
				if !strings.Contains(now.Reason, part) {
					t.Errorf("reason %q lacks %q", now.Reason, part)
				}
			}
		})
	}
}

func TestChildWithoutGuard(t *testing.T) {
	for _, guard := range [][]string{nil, {"/no/such/guard"}, {"false"}} {
		s := superviseWith(t, Spec{Argv: sh("exit 0")}, guard, slog.New(slog.DiscardHandler))
		if got := s.until(BackingOff).Reason; !strings.Contains(got, "guard: ") {
			t.Errorf("guard %q: reason %q does not blame it", guard, got)
		}
	}
}

func TestChildEnvironment(t *testing.T) {
	t.Setenv("TOPSAIL_TEST_KEPT", "kept")
	t.Setenv("TOPSAIL_TEST_CHANGED", "old")
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	s := supervise(t, Spec{
		Argv: sh(`echo "$TOPSAIL_TEST_KEPT $TOPSAIL_TEST_CHANGED $TOPSAIL_TEST_NEW $(pwd) $(wc -c)"`),
		Env:  []string{"TOPSAIL_TEST_CHANGED=changed", "TOPSAIL_TEST_NEW=new"},
		Dir:  dir,
	})
	s.until(BackingOff)
	want := "kept changed new " + dir + " 0" // standard input is empty
	if got := strings.Join(strings.Fields(s.Tail(1)[0]), " "); got != want {
		t.Errorf("the child sees %q, want %q", got, want)
	}
}

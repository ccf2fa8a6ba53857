//go:build unix

package process

import (
	"context"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/test/wait"
)

// patience is how long a test waits for what a real process should do at once.
const patience = time.Minute

// TestMain lets the test binary play the other processes: the guard, and a
// parent that the tests can kill.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "guard" {
		os.Exit(RunGuard(os.Args[2:]))
	}
	if len(os.Args) > 2 && os.Args[1] == "parent" {
		New(Spec{Name: "r", Argv: os.Args[2:]}, testGuard(), slog.New(slog.DiscardHandler)).Run(context.Background())
		os.Exit(0)
	}
	// Under -race, a process sleeps a second before it ends: not our children.
	if err := os.Setenv("GORACE", "atexit_sleep_ms=0"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

func testGuard() []string { return []string{os.Args[0], "guard"} }

// supervised is a Child whose Run is going on in the test.
type supervised struct {
	*Child
	t       *testing.T
	changes chan Snapshot
	cancel  context.CancelFunc
	ended   chan struct{}
}

// supervise runs a child until stop, or the end of the test.
func supervise(t *testing.T, spec Spec) *supervised {
	t.Helper()
	return superviseWith(t, spec, testGuard(), slog.New(slog.DiscardHandler))
}

func superviseWith(t *testing.T, spec Spec, guard []string, log *slog.Logger) *supervised {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	s := &supervised{t: t, changes: make(chan Snapshot, 100), cancel: cancel, ended: make(chan struct{})}
	spec.Name = "r1"
	spec.OnChange = func(now Snapshot) { s.changes <- now }
	s.Child = New(spec, guard, log)
	go func() {
		defer close(s.ended)
		s.Run(ctx)
	}()
	t.Cleanup(s.stop)
	return s
}

// stop ends Run and waits for its return.
func (s *supervised) stop() {
	s.t.Helper()
	s.cancel()
	select {
	case <-s.ended:
	case <-time.After(patience):
		s.t.Fatal("Run does not return")
	}
}

// next is the next change of the child.
func (s *supervised) next() Snapshot {
	s.t.Helper()
	select {
	case now := <-s.changes:
		return now
	case <-time.After(patience):
		s.t.Fatalf("no change after %+v; its last lines: %q", s.Snapshot(), s.Tail(5))
		return Snapshot{}
	}
}

// until is the first change to the state.
func (s *supervised) until(state State) Snapshot {
	s.t.Helper()
	for {
		if now := s.next(); now.State == state {
			return now
		}
	}
}

// waitLine waits for a line of output, and returns what follows the prefix.
func (s *supervised) waitLine(prefix string) (rest string) {
	s.t.Helper()
	wait.Until(s.t, "the line "+prefix, func() bool {
		for _, line := range s.Tail(tailLines) {
			var found bool
			if rest, found = strings.CutPrefix(line, prefix); found {
				return true
			}
		}
		return false
	})
	return rest
}

func sh(script string) []string { return []string{"sh", "-c", script} }

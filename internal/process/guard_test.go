//go:build unix

package process

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/topsail-serving/topsail/test/require"
)

// guarded is a guard with the pipes of a parent, but no Child.
type guarded struct {
	*exec.Cmd
	lifeline io.Closer
	report   *bufio.Reader
}

func startGuard(t *testing.T, argv []string) *guarded {
	t.Helper()
	lifelineR, lifelineW, err := os.Pipe()
	require.NoError(t, err)
	reportR, reportW, err := os.Pipe()
	require.NoError(t, err)
	t.Cleanup(func() { closeAll([]*os.File{lifelineW, reportR}) })
	all := slices.Concat(testGuard(), argv)
	g := &guarded{exec.Command(all[0], all[1:]...), lifelineW, bufio.NewReader(reportR)}
	g.ExtraFiles = []*os.File{lifelineR, reportW}
	defer closeAll(g.ExtraFiles)
	require.NoError(t, g.Start())
	return g
}

// end reads the rest of the report, and waits for the guard's exit status.
func (g *guarded) end(t *testing.T) (report string, code int) {
	t.Helper()
	rest, err := io.ReadAll(g.report)
	require.NoError(t, err)
	_ = g.Wait() // an exit status is no error here
	return string(rest), g.ProcessState.ExitCode()
}

func TestGuardEndsLikeItsCommand(t *testing.T) {
	for _, test := range []struct {
		argv   []string
		report string
		code   int
	}{
		{sh("exit 0"), "ended exit status 0\n", 0},
		{sh("exit 42"), "ended exit status 42\n", 42},
		{sh("kill -TERM $$"), "ended killed by signal SIGTERM\n", 143},
		{sh("kill -KILL $$"), "ended killed by signal SIGKILL\n", 137},
		{[]string{"/no/such/command"}, "ended cannot start: ", 127},
	} {
		report, code := startGuard(t, test.argv).end(t)
		if code != test.code || !strings.Contains(report, test.report) {
			t.Errorf("%q: report %q, exit status %d, want %q and %d", test.argv, report, code, test.report, test.code)
		}
	}
}

func TestGuardKillsWhenTheLifelineEnds(t *testing.T) {
	g := startGuard(t, sh("trap '' TERM INT HUP; sleep 60"))
	if line, err := g.report.ReadString('\n'); err != nil || !strings.HasPrefix(line, "started ") {
		t.Fatalf("report %q, %v", line, err)
	}
	require.NoError(t, g.lifeline.Close())
	if report, code := g.end(t); code != 137 || report != "ended killed by signal SIGKILL\n" {
		t.Errorf("report %q, exit status %d", report, code)
	}
}

func TestGuardByHand(t *testing.T) {
	argv := append(testGuard(), "true")
	out, err := exec.Command(argv[0], argv[1:]...).CombinedOutput()
	if err == nil || !strings.Contains(string(out), "not by hand") {
		t.Errorf("without a parent: %v, %q", err, out)
	}
}

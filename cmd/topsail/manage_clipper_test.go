//go:build system

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/topsail-serving/topsail/test/require"
	"github.com/topsail-serving/topsail/test/servers"
)

// clipper runs Python where Clipper's own admin package is, in a folder of this clone.
func clipper(t *testing.T, dir string, env []string, args ...string) string {
	t.Helper()
	root, err := servers.Root()
	require.NoError(t, err)
	python := filepath.Join(root, "build", "venv-clipper", "bin", "python")
	if _, err := os.Stat(python); err != nil {
		t.Fatal("Clipper's package is not installed; run the tests by `make test-system`")
	}
	cmd := exec.CommandContext(t.Context(), python, append([]string{"-W", "ignore"}, args...)...)
	cmd.Dir = filepath.Join(root, dir)
	cmd.Env = append(append(os.Environ(), "PYTHONPATH="+filepath.Join(root, "containers", "python", "src"), "PYTHONDONTWRITEBYTECODE=1"), env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return string(out)
}

const (
	clipperSession   = "tests/clipper/test_clipper_admin.py"
	clipperDeployers = "tests/clipper/test_deployers.py"
)

// TestASessionOfClippersOwnPackage has clipper_admin, unchanged, drive Topsail, its
// deployers included. What it does stands beside our container manager.
func TestASessionOfClippersOwnPackage(t *testing.T) {
	t.Parallel()
	o := operate(t, start(t, t.TempDir(), ""))
	env := []string{
		"TOPSAIL_QUERY=" + strings.TrimPrefix(o.setting("TOPSAIL_URL"), "http://"),
		"TOPSAIL_ADMIN=" + strings.TrimPrefix(o.setting("TOPSAIL_ADMIN_URL"), "http://"),
	}
	out := clipper(t, "containers/python", env, "-m", "pytest", "-q", clipperSession, clipperDeployers)
	if !strings.Contains(out, " passed") || strings.Contains(out, "skipped") {
		t.Errorf("the session says\n%s", out)
	}
}

// TestEveryMethodOfClippersOwnPackage has it start a Topsail of its own, and call what
// the session does not.
func TestEveryMethodOfClippersOwnPackage(t *testing.T) {
	t.Parallel()
	port, err := servers.FreePorts(2)
	require.NoError(t, err)
	clipper(t, "containers/python", nil, "../../cmd/topsail/testdata/clipper_methods.py", programs.topsail,
		fmt.Sprintf("127.0.0.1:%d", port), fmt.Sprintf("127.0.0.1:%d", port+1), t.TempDir(), clipperSession)
}

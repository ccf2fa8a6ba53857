package arch

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/topsail-serving/topsail/test/require"
)

// A program of another module can embed the gateway and the streams, and be a container: the
// examples compile there.
func TestExamplesCompileInAnotherModule(t *testing.T) {
	root, err := filepath.Abs(filepath.Join("..", ".."))
	require.NoError(t, err)
	there := t.TempDir()
	for _, example := range []string{"gateway/example_test.go", "stream/records/example_test.go", "examples/gosum/main.go"} {
		copyFile(t, filepath.Join(root, example), filepath.Join(there, example))
	}
	copyFile(t, filepath.Join(root, "go.sum"), filepath.Join(there, "go.sum"))
	module, err := os.ReadFile(filepath.Join(root, "go.mod"))
	require.NoError(t, err)
	line := regexp.MustCompile(`(?m)^module (\S+)$`)
	path := string(line.FindSubmatch(module)[1])
	module = line.ReplaceAll(module, []byte("module example.com/elsewhere"))
	module = append(module, "\nrequire "+path+" v0.0.0\nreplace "+path+" => "+root+"\n"...)
	require.NoError(t, os.WriteFile(filepath.Join(there, "go.mod"), module, 0o600))
	compile := exec.Command("go", "list", "-test", "-export", "./...")
	compile.Dir, compile.Env = there, append(os.Environ(), "GOFLAGS=-mod=mod -trimpath", "GOWORK=off")
	if out, err := compile.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	text, err := os.ReadFile(from)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(to), 0o700)
	}
	if err == nil {
		err = os.WriteFile(to, text, 0o600)
	}
	require.NoError(t, err)
}

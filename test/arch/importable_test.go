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
	there := elsewhere(t, "gateway/example_test.go", "stream/records/example_test.go", "examples/gosum/main.go")
	goAt(t, there, "list", "-test", "-export", "./...")
}

// A program of another module runs a gateway with the configuration file, and with metrics, demand, a resolver and
// stores of its own.
func TestAnotherModuleRunsAGateway(t *testing.T) {
	there := elsewhere(t, "examples/embed/main.go", "examples/embed/store.go", "examples/embed/topsail.toml")
	printed := goAt(t, there, "run", "./examples/embed", "examples/embed/topsail.toml")
	for _, line := range []string{
		`(doubling|tripling):1 answers (42|63)\.0`,
		`feedback is joined with a record, and trains 1 state`,
		`topsail_feedback_total\{app="double-it",result="trained"\} 1`,
		`the store has the state of double-it at revision 1`,
		`the store has the demand of (doubling|tripling):1: true`,
	} {
		if !regexp.MustCompile("(?m)^" + line + "$").MatchString(printed) {
			t.Errorf("it does not print %s:\n%s", line, printed)
		}
	}
}

// elsewhere is a module of its own with copies of files, which requires this one with the same versions of all libraries.
func elsewhere(t *testing.T, files ...string) (folder string) {
	t.Helper()
	root, err := filepath.Abs(filepath.Join("..", ".."))
	require.NoError(t, err)
	there := t.TempDir()
	for _, name := range append(files, "go.sum") {
		copyFile(t, filepath.Join(root, name), filepath.Join(there, name))
	}
	module, err := os.ReadFile(filepath.Join(root, "go.mod"))
	require.NoError(t, err)
	line := regexp.MustCompile(`(?m)^module (\S+)$`)
	path := string(line.FindSubmatch(module)[1])
	module = line.ReplaceAll(module, []byte("module example.com/elsewhere"))
	module = append(module, "\nrequire "+path+" v0.0.0\nreplace "+path+" => "+root+"\n"...)
	require.NoError(t, os.WriteFile(filepath.Join(there, "go.mod"), module, 0o600))
	return there
}

// goAt runs a command of Go in a folder, and returns what it prints.
func goAt(t *testing.T, folder string, args ...string) string {
	t.Helper()
	command := exec.Command("go", args...)
	command.Dir, command.Env = folder, append(os.Environ(), "GOFLAGS=-mod=mod -trimpath", "GOWORK=off")
	out, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("go %v: %v\n%s", args, err, out)
	}
	return string(out)
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

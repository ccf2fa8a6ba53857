//go:build system

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/topsail-serving/topsail/serving/bundle"
	"github.com/topsail-serving/topsail/test/require"
	"github.com/topsail-serving/topsail/web/api"
)

// python runs a program of testdata, which needs numpy, scikit-learn and cloudpickle, and
// returns what it printed.
func (o *operator) python(args ...string) string {
	o.t.Helper()
	if out, err := exec.Command("python3", "-c", "from importlib.metadata import version as v; v('cloudpickle'), v('scikit-learn')").CombinedOutput(); err != nil {
		o.t.Fatalf("%v: %s\nthe python3 on PATH must have what the tests need: run them by `make test-system`", err, out)
	}
	cmd := exec.CommandContext(o.t.Context(), "python3", args...)
	cmd.Dir = "testdata"
	cmd.Env = append(append(os.Environ(), "PYTHONPATH="+sdk(o.t), "PYTHONDONTWRITEBYTECODE=1"), o.env...)
	out, err := cmd.Output()
	if err != nil {
		said := []byte(nil)
		if exit, ok := err.(*exec.ExitError); ok {
			said = exit.Stderr
		}
		o.t.Fatalf("%v: %v\n%s%s", args, err, out, said)
	}
	return string(out)
}

func TestAPythonFunctionIsDeployed(t *testing.T) {
	t.Parallel()
	o := operate(t, start(t, t.TempDir(), ""))
	o.python("deploy_function.py")
}

// TestAModelOfScikitLearnIsDeployed has an environment ready for the model, as a node has
// that ran one like it before.
func TestAModelOfScikitLearnIsDeployed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	in := start(t, dir, "")
	o := operate(t, in)
	var m bundle.Manifest
	require.NoError(t, json.Unmarshal([]byte(o.python("deploy_sklearn.py", "manifest")), &m))
	if len(m.Requirements) < 3 || !strings.Contains(fmt.Sprint(m.Requirements), "scikit-learn==") {
		t.Fatalf("the model requires %v", m.Requirements)
	}
	warm(t, filepath.Join(dir, "data", "runtimes", "environments", bundle.EnvironmentID(&m)))
	t.Logf("deployed within %s", o.python("deploy_sklearn.py"))
	if out := in.output() + o.do("logs", "iris"); strings.Contains(out, "installing") {
		t.Errorf("an environment was built although there is one:\n%s", out)
	}
}

// warm makes an environment with the packages of the python3 on PATH.
func warm(t *testing.T, dir string) {
	t.Helper()
	const link = `
import pathlib, sys, venv
venv.create(sys.argv[1], symlinks=True)
[packages] = pathlib.Path(sys.argv[1]).glob("lib/python*/site-packages")
(packages / "of-the-tests.pth").write_text("\n".join(p for p in sys.path if p.endswith("site-packages")))
`
	if out, err := exec.CommandContext(t.Context(), "python3", "-c", link, dir).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "complete"), nil, 0o600))
}

// pack writes a folder that becomes a bundle.
func pack(t *testing.T, manifest string, files map[string][]byte) (dir string) {
	t.Helper()
	dir = t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "manifest.json"), []byte(manifest), 0o600))
	for name, content := range files {
		file := filepath.Join(dir, name)
		require.NoError(t, errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, content, 0o700)))
	}
	return dir
}

// summing is a bundle of the container that sums up.
func summing(t *testing.T) (dir string) {
	t.Helper()
	program, err := os.ReadFile(programs.gosum)
	require.NoError(t, err)
	return pack(t, `{"runtime": "command", "command": ["./gosum"], "input_type": "doubles", "example": [1, 2]}`, map[string][]byte{"gosum": program})
}

// TestBundlesOfTheCommandLine deploys a good bundle, and has others refused.
func TestBundlesOfTheCommandLine(t *testing.T) {
	t.Parallel()
	o := operate(t, start(t, t.TempDir(), ""))
	o.do("deploy", "sum", "--bundle", summing(t), "--app", "sums", "--slo", "2s", "--default", "-1")
	o.answers("sums", "[1, 2.5]", "3.5")
	stored := list[api.Artifact](o, "/artifacts")
	if len(stored) != 1 || fmt.Sprint(stored[0].UsedBy) != "[sum:1]" {
		t.Fatalf("there are the bundles %+v", stored)
	}
	digest, file := stored[0].Digest, filepath.Join(t.TempDir(), "sum.zip")
	o.refused(1, `used by version "1" of model "sum"`, "artifact", "delete", digest, "--yes")
	o.do("artifact", "pull", digest, "--file", file)
	if got := o.do("artifact", "push", file); got != digest+"\n" {
		t.Errorf("what was pulled is pushed as %s, and was %s", got, digest)
	}

	predict := map[string][]byte{"odd.py": []byte("def predict(inputs):\n    return inputs\n")}
	of := func(python string) string {
		return pack(t, fmt.Sprintf(`{"runtime": "python", "python": %q, "entry": "odd:predict", "input_type": "strings"}`, python), predict)
	}
	o.refused(1, "this bundle needs Python 3.99, and here is 3.", "deploy", "odd", "--bundle", of("3.99"))
	o.refused(1, "runtime needs 3.10 or later", "deploy", "odd", "--bundle", of("3.2"))
	o.refused(1, "runtime", "deploy", "odd", "--bundle", pack(t, `{"runtime": "cobol", "entry": "odd.py"}`, predict))
	o.refused(1, "is not stored here: upload it first", "deploy", "odd", "--input-type", "doubles", "--bundle", "sha256:"+strings.Repeat("0", 64))
	require.NoError(t, os.Truncate(file, 1000))
	o.refused(1, "it is truncated", "artifact", "push", file)
	if n := len(list[api.Artifact](o, "/artifacts")); n != 2 { // the good one, and that of Python 3.99
		t.Errorf("there are %d bundles", n)
	}
	if models := list[api.Model](o, "/models"); len(models) != 1 {
		t.Errorf("there are the models %+v", models)
	}
}

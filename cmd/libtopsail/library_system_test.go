//go:build system

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/test/require"
	"github.com/topsail-serving/topsail/test/wait"
)

// TestTheLibraryInC builds the library and the example in C, which asks an app.
func TestTheLibraryInC(t *testing.T) {
	library := build(t)
	program := filepath.Join(filepath.Dir(library), "ask")
	folder := filepath.Dir(library)
	command(t, "cc", "-std=c11", "-Wall", "-Wextra", "-Werror", "-o", program, filepath.Join("..", "..", "examples", "c", "main.c"), "-I.", "-L"+folder, "-ltopsail", "-Wl,-rpath,"+folder)
	o := configuration(t, "")
	ask := func(app string) (string, error) {
		c := exec.Command(program, o.config, app, `{"input": [1, 2]}`, "3")
		c.Env = append(os.Environ(), "PATH="+filepath.Dir(programs.topsail)+":"+os.Getenv("PATH"), "TOPSAIL_DATA_DIR="+o.dataDir)
		out, err := c.CombinedOutput()
		return string(out), err
	}
	if out, err := ask("sum"); err != nil || !strings.Contains(out, `"default":false`) || !strings.Contains(out, `"joined":"record"`) {
		t.Errorf("%v: %s", err, out)
	}
	if out, err := ask("sums"); err == nil || !strings.Contains(out, "check its spelling") {
		t.Errorf("%v: %s", err, out)
	}
}

// TestTheLibraryInPython uses it from many threads, with a model in Python.
func TestTheLibraryInPython(t *testing.T) {
	o := pythonConfiguration(t)
	if out := command(t, "python3", filepath.Join("testdata", "library.py"), build(t), o.config, programs.topsail); !strings.HasSuffix(out, "ok\n") {
		t.Error(out)
	}
}

// TestAProgramThatIsKilledLeavesNoModel: the guard of its process ends it.
func TestAProgramThatIsKilledLeavesNoModel(t *testing.T) {
	o := pythonConfiguration(t)
	const script = `
import ctypes, sys, time
lib = ctypes.CDLL(sys.argv[1])
lib.topsail_open.restype, lib.topsail_open.argtypes = ctypes.c_uint64, [ctypes.c_char_p] * 3 + [ctypes.c_int64, ctypes.c_void_p]
print(lib.topsail_open(sys.argv[2].encode(), sys.argv[3].encode(), sys.argv[4].encode(), 60000, None), flush=True)
time.sleep(600)
`
	host := exec.Command("python3", "-c", script, build(t), o.config, o.dataDir, programs.topsail)
	host.Stderr = os.Stderr
	out, err := host.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, host.Start())
	handle := make([]byte, 1)
	if _, err := out.Read(handle); err != nil || handle[0] == '0' {
		t.Errorf("opened: %s, %v", handle, err)
	}
	pid := modelOf(t, o)
	require.NoError(t, host.Process.Kill())
	_ = host.Wait()
	wait.Until(t, "the end of the model's process", func() bool { return syscall.Kill(pid, 0) == syscall.ESRCH })
}

// build is a library, built once.
func build(t *testing.T) (library string) {
	t.Helper()
	library = filepath.Join(filepath.Dir(programs.topsail), "libtopsail.so")
	if _, err := os.Stat(library); err != nil {
		command(t, "go", "build", "-buildmode=c-shared", "-o", library, ".")
	}
	return library
}

func command(t *testing.T, args ...string) string {
	t.Helper()
	out, err := exec.Command(args[0], args[1:]...).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %v\n%s", args, err, out)
	}
	return string(out)
}

// pythonConfiguration has an app whose model is a function in Python.
func pythonConfiguration(t *testing.T) options {
	t.Helper()
	dir := t.TempDir()
	sdk, err := filepath.Abs(filepath.Join("..", "..", "containers", "python", "src"))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "doubling.py"), []byte("import os\n\nopen('pid', 'w').write(str(os.getpid()))\n\n\ndef predict(inputs):\n    return [2 * float(x[0]) for x in inputs]\n"), 0o600))
	text := fmt.Sprintf(`
[log]
level = "error"

[[app]]
name = "double"
input_type = "doubles"
default_output = "-1"
latency_slo_micros = 30000000
models = ["doubling"]
policy = { kind = "epsilon_greedy" }

[[model]]
name = "doubling"
version = "1"
input_type = "doubles"
command = ["python3", "-m", "topsail", "doubling:predict"]
dir = %q
env = { PYTHONPATH = %q }
`, dir, sdk)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "topsail.toml"), []byte(text), 0o600))
	return options{config: filepath.Join(dir, "topsail.toml"), dataDir: filepath.Join(dir, "data"), program: programs.topsail, within: time.Minute}
}

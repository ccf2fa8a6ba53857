//go:build unix

package launch

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/topsail-serving/topsail/containers/intact"
	"github.com/topsail-serving/topsail/serving/bundle"
	"github.com/topsail-serving/topsail/test/journal"
	"github.com/topsail-serving/topsail/test/require"
)

// launcherOptions makes the test binary a launcher, as a node would start one.
const launcherOptions = "LAUNCHER_OPTIONS"

func TestMain(m *testing.M) {
	text := os.Getenv(launcherOptions)
	if text == "" {
		os.Exit(m.Run())
	}
	var o Options
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		panic(err)
	}
	o.SDK, o.Log, o.Environ = sdk(), os.Stderr, without(os.Environ(), launcherOptions)
	err := Run(context.Background(), o)
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// sdk stands for the real one: it says how it was started, and ends with its input.
func sdk() fstest.MapFS {
	return fstest.MapFS{
		"topsail/__init__.py":                     {},
		"topsail/__pycache__/runtime.cpython.pyc": {Data: []byte("no code")},
		"topsail/runtime.py": {Data: []byte(`
import importlib.metadata, json, os, sys
print(json.dumps({
    "arguments": sys.argv[1:], "folder": os.getcwd(), "file": __file__, "environment": dict(os.environ), "python": sys.executable,
    "packages": {d.metadata["Name"]: d.version for d in importlib.metadata.distributions()},
}), flush=True)
sys.stdin.read()
`)},
	}
}

// model is what the runtime above says.
type model struct {
	Arguments   []string
	Folder      string
	File        string
	Environment map[string]string
	Python      string
	Packages    map[string]string
}

// launcher prepares a process that is a launcher.
func launcher(t *testing.T, o Options) *exec.Cmd {
	t.Helper()
	text, err := json.Marshal(struct{ Bundle, Digest, Work string }{o.Bundle, o.Digest, o.Work})
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = with(o.Environ, launcherOptions, string(text))
	cmd.Stderr = os.Stderr
	return cmd
}

// python is a version that is here, and the newest that is not.
func python(t *testing.T) (here, missing string) {
	t.Helper()
	find := PythonsIn(filepath.SplitList(os.Getenv("PATH")))
	for n := newestMinor; n >= bundle.OldestMinor; n-- {
		minor := fmt.Sprintf("3.%d", n)
		if _, ok := find(minor); ok {
			here = minor
		} else if missing == "" {
			missing = minor
		}
	}
	if here == "" {
		t.Fatal("this test needs Python 3.10 or later on PATH, with its venv module")
	}
	return here, missing
}

// pack writes a bundle and returns the options to run it in a new work folder.
func pack(t *testing.T, m bundle.Manifest, files fstest.MapFS) Options {
	t.Helper()
	if files == nil {
		files = fstest.MapFS{"model.pkl": {Data: []byte("a model")}}
	}
	var buf bytes.Buffer
	require.NoError(t, bundle.Write(&buf, &m, files))
	digest, err := bundle.Digest(bytes.NewReader(buf.Bytes()))
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "bundle.zip")
	require.NoError(t, os.WriteFile(path, buf.Bytes(), 0o600))
	return Options{
		Bundle: path, Digest: digest, Work: filepath.Join(t.TempDir(), "work"), SDK: sdk(), Log: &journal.Journal{},
		Environ: []string{
			"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "PIP_NO_INDEX=1", "PIP_CONFIG_FILE=/dev/null", "PIP_RETRIES=0",
			"TOPSAIL_SIDECAR=127.0.0.1:7000",
		},
	}
}

// requiring is a bundle that needs packages.
func requiring(t *testing.T, requirements ...string) Options {
	t.Helper()
	minor, _ := python(t)
	return pack(t, bundle.Manifest{Runtime: "sklearn", Python: minor, Entry: "model.pkl", Requirements: requirements}, nil)
}

// run runs it to where the process would be replaced.
func run(t *testing.T, o Options) Image {
	t.Helper()
	var image Image
	o.Exec = func(i Image) error {
		image = i
		return nil
	}
	require.NoError(t, Run(t.Context(), o))
	return image
}

// refused is the error of a run that does not get that far.
func refused(t *testing.T, o Options) string {
	t.Helper()
	o.Exec = func(Image) error {
		t.Error("it was started")
		return nil
	}
	err := Run(t.Context(), o)
	if err == nil {
		t.Fatal("it is no error")
	}
	return err.Error()
}

// left lists what is in a kind's folder, without locks and records.
func left(t *testing.T, o Options, kind string) []string {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(o.Work, kind))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	var names []string
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return slices.DeleteFunc(names, func(name string) bool {
		return strings.HasSuffix(name, lockEnding) || strings.HasSuffix(name, intact.RecordEnding)
	})
}

// wheel writes a package that pip can install, into a folder that it returns.
func wheel(t *testing.T, name, version string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	f, err := os.Create(filepath.Join(dir, name+"-"+version+"-py3-none-any.whl"))
	require.NoError(t, err)
	z := zip.NewWriter(f)
	info := name + "-" + version + ".dist-info/"
	for _, file := range []struct{ name, text string }{
		{name + ".py", "version = '" + version + "'\n"},
		{info + "METADATA", "Metadata-Version: 2.1\nName: " + name + "\nVersion: " + version + "\n"},
		{info + "WHEEL", "Wheel-Version: 1.0\nGenerator: hand\nRoot-Is-Purelib: true\nTag: py3-none-any\n"},
		{info + "RECORD", name + ".py,,\n" + info + "METADATA,,\n" + info + "WHEEL,,\n" + info + "RECORD,,\n"},
	} {
		w, err := z.Create(file.name)
		if err == nil {
			_, err = io.WriteString(w, file.text)
		}
		require.NoError(t, err)
	}
	require.NoError(t, z.Close())
	require.NoError(t, f.Close())
	return dir
}

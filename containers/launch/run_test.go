//go:build unix

package launch

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/topsail-serving/topsail/serving/bundle"
	"github.com/topsail-serving/topsail/test/journal"
	"github.com/topsail-serving/topsail/test/require"
)

func TestRunWithoutRequirements(t *testing.T) {
	minor, _ := python(t)
	o := pack(t, bundle.Manifest{Runtime: "python", Python: minor, Entry: "model:predict"}, fstest.MapFS{"model.py": {Data: []byte("x")}})
	o.Pythons = func(asked string) (string, bool) { return "/opt/python" + asked, asked == minor }
	o.Environ = append(o.Environ, "PYTHONPATH=/opt/more")
	image := run(t, o)

	dir := filepath.Join(o.Work, "bundles", strings.TrimPrefix(o.Digest, "sha256:"))
	interpreter := "/opt/python" + minor
	if image.Path != interpreter || image.Dir != dir || !slices.Equal(image.Args, []string{interpreter, "-m", "topsail.runtime", dir}) {
		t.Errorf("it becomes %+v", image)
	}
	sdk := filepath.Join(o.Work, "sdk", left(t, o, "sdk")[0])
	for name, want := range map[string]string{
		"PYTHONPATH": sdk + ":/opt/more", "PYTHONNOUSERSITE": "1", "PYTHONUNBUFFERED": "1", "TOPSAIL_SIDECAR": "127.0.0.1:7000",
		"PATH": os.Getenv("PATH"), "VIRTUAL_ENV": "",
	} {
		if got := variable(image.Env, name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	if _, err := os.Stat(filepath.Join(sdk, "topsail", "runtime.py")); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(sdk, "topsail", "__pycache__")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("what Python has compiled was copied: %v", err)
	}
	if text, err := os.ReadFile(filepath.Join(dir, "model.py")); err != nil || string(text) != "x" {
		t.Errorf("the model is %q, %v", text, err)
	}
	if environments := left(t, o, "environments"); len(environments) > 0 {
		t.Errorf("there are environments: %v", environments)
	}

	require.NoError(t, os.Remove(o.Bundle))
	if retryEvery := run(t, o); retryEvery.Dir != dir { // it is unpacked already
		t.Errorf("it becomes %+v", retryEvery)
	}
}

// TestRunAHost is a bundle that brings an environment, and no model.
func TestRunAHost(t *testing.T) {
	minor, path := python(t)
	o := pack(t, bundle.Manifest{Runtime: "host", Python: minor}, fstest.MapFS{"README": {Data: []byte("x")}})
	o.Pythons = func(string) (string, bool) { return path, true }
	if image := run(t, o); !slices.Equal(image.Args, []string{path, "-m", "topsail", "host"}) {
		t.Errorf("it becomes %+v", image)
	}
}

func TestAnotherSDKHasAnotherFolder(t *testing.T) {
	minor, _ := python(t)
	o := pack(t, bundle.Manifest{Runtime: "sklearn", Python: minor, Entry: "model.pkl"}, nil)
	run(t, o)
	newer := sdk()
	newer["topsail/__pycache__/more.pyc"] = &fstest.MapFile{}
	o.SDK = newer
	run(t, o)
	if n := len(left(t, o, "sdk")); n != 1 {
		t.Errorf("there are %d SDKs of one content", n)
	}
	newer["topsail/more.py"] = &fstest.MapFile{}
	run(t, o)
	if n := len(left(t, o, "sdk")); n != 2 {
		t.Errorf("there are %d SDKs of two contents", n)
	}
}

func TestRunCommand(t *testing.T) {
	files := fstest.MapFS{"bin/serve": {Data: []byte("#!/bin/sh\n")}}
	for program, want := range map[string]string{"bin/serve": "DIR/bin/serve", "./bin/serve": "DIR/bin/serve", "sh": "/sh", "/bin/sh": "/bin/sh"} {
		o := pack(t, bundle.Manifest{Runtime: "command", Command: []string{program, "--x"}}, files)
		o.SDK = nil // a command needs none
		image := run(t, o)
		want = strings.Replace(want, "DIR", image.Dir, 1)
		if !filepath.IsAbs(image.Path) || !strings.HasSuffix(image.Path, want) || !slices.Equal(image.Args, []string{program, "--x"}) {
			t.Errorf("%s becomes %+v", program, image)
		}
		if info, err := os.Stat(image.Path); err != nil || info.Mode()&0o100 == 0 {
			t.Errorf("%s is no program: %v", image.Path, err)
		}
		if !slices.Equal(image.Env, o.Environ) {
			t.Errorf("its environment is %v", image.Env)
		}
	}
	o := pack(t, bundle.Manifest{Runtime: "command", Command: []string{"no-such-program"}}, files)
	if text := refused(t, o); !strings.Contains(text, "not on this node's PATH") {
		t.Error(text)
	}
}

func TestAnotherDigestIsRefused(t *testing.T) {
	o := pack(t, bundle.Manifest{Runtime: "command", Command: []string{"sh"}}, nil)
	other := "sha256:" + strings.Repeat("0", 64)
	digest := o.Digest
	o.Digest = other
	if text := refused(t, o); !strings.Contains(text, digest) || !strings.Contains(text, "fetch it again") {
		t.Error(text)
	}
	if bundles := left(t, o, "bundles"); len(bundles) > 0 {
		t.Errorf("there is %v", bundles)
	}
	o.Digest = "sha256:../.."
	if text := refused(t, o); !strings.Contains(text, "not the digest") {
		t.Error(text)
	}
	o.Digest = ""
	if image := run(t, o); filepath.Base(image.Dir) != strings.TrimPrefix(digest, "sha256:") {
		t.Errorf("it becomes %+v", image)
	}
}

func TestADamagedBundleLeavesNothing(t *testing.T) {
	o := pack(t, bundle.Manifest{Runtime: "command", Command: []string{"sh"}}, nil)
	data, err := os.ReadFile(o.Bundle)
	require.NoError(t, err)
	data[bytes.Index(data, []byte("a model"))] ^= 1
	require.NoError(t, os.WriteFile(o.Bundle, data, 0o600))
	o.Digest = ""
	if text := refused(t, o); !strings.Contains(text, `"model.pkl" is damaged`) {
		t.Error(text)
	}
	if bundles := left(t, o, "bundles"); len(bundles) > 0 {
		t.Errorf("there is %v", bundles)
	}
}

func TestABundleThatWasUnpackedHalfIsUnpackedAgain(t *testing.T) {
	o := pack(t, bundle.Manifest{Runtime: "command", Command: []string{"sh"}}, nil)
	half := filepath.Join(o.Work, "bundles", strings.TrimPrefix(o.Digest, "sha256:")+tempEnding)
	if err := os.MkdirAll(filepath.Join(half, "model.pkl"), 0o755); err != nil { // as a launcher leaves it that is killed
		t.Fatal(err)
	}
	image := run(t, o)
	if text, err := os.ReadFile(filepath.Join(image.Dir, "model.pkl")); err != nil || string(text) != "a model" {
		t.Errorf("the model is %q, %v", text, err)
	}
	if bundles := left(t, o, "bundles"); len(bundles) != 1 {
		t.Errorf("there is %v", bundles)
	}
}

func TestTheRightPythonIsMissing(t *testing.T) {
	here, missing := python(t)
	o := pack(t, bundle.Manifest{Runtime: "sklearn", Python: missing, Entry: "model.pkl"}, nil)
	if text := refused(t, o); !strings.Contains(text, "needs Python "+missing) || !strings.Contains(text, here) {
		t.Error(text)
	}
	o.Environ = with(o.Environ, "PATH", t.TempDir())
	if text := refused(t, o); !strings.Contains(text, "no usable Python was found here") {
		t.Error(text)
	}
}

func TestPythonsInAsksTheInterpreter(t *testing.T) {
	dir := t.TempDir()
	for name, script := range map[string]string{
		"python3.12": "exit 1", // a shim whose version is not installed
		"python3":    "echo 3.12; echo /opt/real/python",
		"python":     "echo 3.13; echo /opt/other/python",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+script+"\n"), 0o755))
	}
	find := PythonsIn([]string{filepath.Join(dir, "nowhere"), dir})
	for minor, want := range map[string]string{"3.12": "/opt/real/python", "3.13": "/opt/other/python", "3.11": ""} {
		if path, ok := find(minor); path != want || ok != (want != "") {
			t.Errorf("%s is %q, %v", minor, path, ok)
		}
	}
}

func TestWaitingHasAnEnd(t *testing.T) {
	o := pack(t, bundle.Manifest{Runtime: "command", Command: []string{"sh"}}, nil)
	require.NoError(t, os.MkdirAll(filepath.Join(o.Work, "bundles"), 0o755))
	l, err := openLock(filepath.Join(o.Work, "bundles", strings.TrimPrefix(o.Digest, "sha256:")) + lockEnding)
	require.NoError(t, err)
	defer l.close()
	require.NoError(t, l.alone(t.Context(), func() {}))
	o.Timeout = 2 * time.Second
	if text := refused(t, o); !strings.Contains(text, "not ready after 2s") || !strings.Contains(text, l.path) {
		t.Error(text)
	}
	if log := o.Log.(*journal.Journal).String(); strings.Count(log, "waiting for another start") != 1 {
		t.Errorf("log is %q", log)
	}
}

func TestExecSaysWhyItCannot(t *testing.T) {
	dir := t.TempDir()
	if err := (Image{Path: filepath.Join(dir, "x"), Dir: filepath.Join(dir, "none")}).Exec(); err == nil || !strings.Contains(err.Error(), "folder") {
		t.Errorf("error is %v", err)
	}
	t.Chdir(dir) // which Exec changes
	if err := (Image{Path: filepath.Join(dir, "x"), Dir: dir}).Exec(); err == nil || !strings.Contains(err.Error(), "cannot run") {
		t.Errorf("error is %v", err)
	}
}

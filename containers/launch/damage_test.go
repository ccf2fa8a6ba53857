//go:build unix

package launch

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"

	"github.com/topsail-serving/topsail/containers/intact"
	"github.com/topsail-serving/topsail/serving/bundle"
	"github.com/topsail-serving/topsail/test/journal"
	"github.com/topsail-serving/topsail/test/require"
)

// damages are what may become of a file, or of its folder.
var damages = map[string]func(path string) error{
	"flipped":                    flip,
	"cut":                        func(path string) error { return os.Truncate(path, 3) },
	"emptied":                    func(path string) error { return os.Truncate(path, 0) },
	"removed":                    os.Remove,
	"unreadable":                 func(path string) error { return os.Chmod(path, 0) },
	"a link to nowhere":          func(path string) error { return replaced(path, func() error { return os.Symlink("nowhere", path) }) },
	"a folder":                   func(path string) error { return replaced(path, func() error { return os.Mkdir(path, 0o755) }) },
	"removed with its folder":    func(path string) error { return os.RemoveAll(filepath.Dir(path)) },
	"a file in its folder's way": func(path string) error { return inTheWay(filepath.Dir(path)) },
	"longer":                     func(path string) error { return grow(path) },
}

// flip changes a bit, and neither size nor time.
func flip(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	data[len(data)/2] ^= 1
	if err := os.WriteFile(path, data, 0o600); err != nil {
		return err
	}
	return os.Chtimes(path, info.ModTime(), info.ModTime())
}

func replaced(path string, by func() error) error {
	if err := os.Remove(path); err != nil {
		return err
	}
	return by()
}

func inTheWay(dir string) error {
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	return os.WriteFile(dir, nil, 0o600)
}

func grow(path string) error {
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.WriteString("more")
	return err
}

// packed is a bundle with a data file in a folder.
func packed(t *testing.T) Options {
	t.Helper()
	return pack(t, bundle.Manifest{Runtime: "command", Command: []string{"sh"}}, fstest.MapFS{"data/number": {Data: []byte("it is 7.0")}})
}

// holds wants the bundle's file as it was made.
func holds(t *testing.T, dir string) {
	t.Helper()
	path := filepath.Join(dir, "data", "number")
	if text, err := os.ReadFile(path); err != nil || string(text) != "it is 7.0" {
		t.Errorf("the file is %q, %v", text, err)
	}
	if info, err := os.Stat(path); err == nil && info.Mode().Perm() != 0o644 {
		t.Errorf("its mode is %v", info.Mode())
	}
}

func TestADamagedFileIsPutBack(t *testing.T) {
	for name, damage := range damages {
		t.Run(name, func(t *testing.T) {
			o := packed(t)
			dir := run(t, o).Dir
			require.NoError(t, damage(filepath.Join(dir, "data", "number")))
			retryEvery := run(t, o)
			holds(t, retryEvery.Dir)
			run(t, o)
			if log := o.Log.(*journal.Journal).String(); strings.Count(log, "data/number has changed since it was built, and was restored") != 1 {
				t.Errorf("the log is %q", log)
			}
		})
	}
}

func TestADamagedManifestIsPutBack(t *testing.T) {
	for _, name := range []string{"flipped", "cut", "emptied", "removed", "unreadable", "a link to nowhere"} {
		for _, record := range []bool{true, false} {
			o := packed(t)
			dir := run(t, o).Dir
			if !record {
				require.NoError(t, os.Remove(dir+intact.RecordEnding))
			}
			require.NoError(t, damages[name](filepath.Join(dir, bundle.ManifestName)))
			run(t, o)
			if log := o.Log.(*journal.Journal).String(); strings.Count(log, "manifest.json has changed") != 1 {
				t.Errorf("%s, with a record %v: the log is %q", name, record, log)
			}
		}
	}
}

func TestADamagedRecordIsMadeAnew(t *testing.T) {
	for _, name := range []string{"flipped", "cut", "emptied", "removed", "unreadable", "a folder"} {
		o := packed(t)
		dir := run(t, o).Dir
		require.NoError(t, damages[name](dir+intact.RecordEnding))
		require.NoError(t, flip(filepath.Join(dir, "data", "number")))
		run(t, o)
		holds(t, dir)
	}
}

// An archive that is gone is no reason not to start from a bundle that is whole, and one to
// start from no other.
func TestWhatCannotBePutBackIsNotStarted(t *testing.T) {
	o := packed(t)
	dir := run(t, o).Dir
	require.NoError(t, os.Remove(o.Bundle))
	run(t, o)
	require.NoError(t, flip(filepath.Join(dir, "data", "number")))
	if text := refused(t, o); !strings.Contains(text, "data/number has changed") || !strings.Contains(text, dir) || !strings.Contains(text, o.Bundle) {
		t.Error(text)
	}
}

// Files that a model has written stay, and are named.
func TestAnExtraFileStaysAndIsNamed(t *testing.T) {
	o := packed(t)
	dir := run(t, o).Dir
	for _, name := range []string{"learned.db", "data/__pycache__/model.pyc"} {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte("x"), 0o600))
	}
	run(t, o)
	if _, err := os.Stat(filepath.Join(dir, "learned.db")); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "data", "__pycache__")); err == nil {
		t.Error("after a start that failed, what Python compiled is still there")
	}
	if log := o.Log.(*journal.Journal).String(); strings.Count(log, "learned.db is not part of it") != 1 || strings.Contains(log, "pyc") {
		t.Errorf("the log is %q", log)
	}
}

// While a replica runs, another one that starts puts the file back under it.
func TestAFileIsPutBackWhileAModelRuns(t *testing.T) {
	o := packed(t)
	dir := run(t, o).Dir
	l, err := openLock(dir + lockEnding)
	require.NoError(t, err)
	defer l.close()
	require.NoError(t, l.take(t.Context(), syscall.LOCK_SH, func() {}))
	require.NoError(t, os.Truncate(filepath.Join(dir, "data", "number"), 0))
	run(t, o)
	holds(t, dir)
}

// On a node of a cluster the archive is fetched again: once, and only when it is needed.
func TestAFileIsPutBackFromWhereTheArchiveIsFetched(t *testing.T) {
	o := packed(t)
	data, err := os.ReadFile(o.Bundle)
	require.NoError(t, err)
	o.Bundle = ""
	fetched := 0
	o.Fetch = func(context.Context) (string, error) {
		fetched++
		path := filepath.Join(t.TempDir(), "fetched.zip")
		return path, os.WriteFile(path, data, 0o600)
	}
	dir := run(t, o).Dir
	run(t, o)
	require.NoError(t, os.Truncate(filepath.Join(dir, "data", "number"), 0))
	run(t, o)
	holds(t, dir)
	run(t, o)
	if fetched != 2 {
		t.Errorf("the archive was fetched %d times", fetched)
	}
}

func TestADamagedSDKIsPutBack(t *testing.T) {
	minor, path := python(t)
	o := pack(t, bundle.Manifest{Runtime: "python", Python: minor, Entry: "model:predict"}, fstest.MapFS{"model.py": {Data: []byte("x")}})
	o.Pythons = func(string) (string, bool) { return path, true }
	run(t, o)
	at := filepath.Join(o.Work, "sdk", left(t, o, "sdk")[0], "topsail", "runtime.py")
	whole, err := os.ReadFile(at)
	require.NoError(t, err)
	for _, damage := range damages {
		require.NoError(t, damage(at))
		run(t, o)
		if text, err := os.ReadFile(at); err != nil || string(text) != string(whole) {
			t.Errorf("it is %q, %v", text, err)
		}
	}
}

//go:build unix

package launch

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/topsail-serving/topsail/serving/bundle"
	"github.com/topsail-serving/topsail/serving/bundle/archive"
	"github.com/topsail-serving/topsail/test/require"
)

func TestWheelhousesThatAreRefused(t *testing.T) {
	lines := []string{"tiny==1.0"}
	good := wheelhouse{Format: 1, Python: "3.11", Requirements: lines, Machine: machine(),
		Environment: bundle.EnvironmentID(&bundle.Manifest{Python: "3.11", Requirements: lines})}
	for want, change := range map[string]func(w *wheelhouse, files fstest.MapFS){
		"format 2":         func(w *wheelhouse, _ fstest.MapFS) { w.Format = 2 },
		"its requirements": func(w *wheelhouse, _ fstest.MapFS) { w.Requirements = nil },
		"for plan9/mips":   func(w *wheelhouse, _ fstest.MapFS) { w.Machine = "plan9/mips" },
		"is not a wheel":   func(_ *wheelhouse, files fstest.MapFS) { files["evil.pth"] = &fstest.MapFile{} },
		`"a/b.whl" is no`:  func(_ *wheelhouse, files fstest.MapFS) { files["a/b.whl"] = &fstest.MapFile{} },
		"":                 func(*wheelhouse, fstest.MapFS) {},
	} {
		house, files, work := good, fstest.MapFS{"a.whl": {}}, t.TempDir()
		change(&house, files)
		path := filepath.Join(t.TempDir(), "wheels.zip")
		require.NoError(t, os.WriteFile(path, packWheels(t, house, files), 0o600))
		_, err := LoadEnvironment(t.Context(), path, work)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("error is %v, want one with %q", err, want)
		}
	}
}

func packWheels(t testing.TB, house wheelhouse, files fstest.MapFS) []byte {
	t.Helper()
	var buf bytes.Buffer
	err := archive.Write(&buf, files, wheelhouseHead, func(files map[string]archive.File) ([]byte, error) {
		house.Files = files
		return json.Marshal(house)
	})
	require.NoError(t, err)
	return buf.Bytes()
}

func TestABundleWithoutRequirementsNeedsNoWheelhouse(t *testing.T) {
	o := requiring(t)
	out := filepath.Join(t.TempDir(), "wheels.zip")
	if err := PackEnvironment(t.Context(), o, out); err == nil || !strings.Contains(err.Error(), "requires no packages") {
		t.Errorf("error is %v", err)
	}
}

func FuzzOpenWheelhouse(f *testing.F) {
	lines := []string{"tiny==1.0"}
	f.Add([]byte(`{"format":1}`))
	text, err := json.Marshal(wheelhouse{Format: 1, Python: "3.11", Requirements: lines, Machine: machine(),
		Environment: bundle.EnvironmentID(&bundle.Manifest{Python: "3.11", Requirements: lines})})
	require.NoError(f, err)
	f.Add(text)
	f.Fuzz(func(t *testing.T, head []byte) {
		var buf bytes.Buffer
		err := archive.Write(&buf, fstest.MapFS{}, wheelhouseHead, func(map[string]archive.File) ([]byte, error) { return head, nil })
		require.NoError(t, err)
		house, _, err := openWheelhouse(bytes.NewReader(buf.Bytes()), int64(buf.Len()))
		if err == nil && (strings.ContainsAny(house.Environment, "./") || len(house.Environment) != 16) {
			t.Fatalf("the environment %q is a path", house.Environment)
		}
	})
}

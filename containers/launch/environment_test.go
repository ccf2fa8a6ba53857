//go:build unix

package launch

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/test/require"
)

// patience is for pip on a machine that has other things to do.
const patience = 3 * time.Minute

// index serves a folder of wheels. A wheel is served when serve is closed; asked tells of
// each that is asked for.
func index(t *testing.T, dir string, asked chan<- string, serve <-chan struct{}) string {
	t.Helper()
	files := http.FileServer(http.Dir(dir))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, ".whl") && r.Method == http.MethodGet {
			asked <- r.URL.Path
			select {
			case <-serve:
			case <-t.Context().Done():
			}
		}
		files.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// model reads what the runtime of a process says.
func (m *model) read(t *testing.T, line string) {
	t.Helper()
	if err := json.Unmarshal([]byte(line), m); err != nil {
		t.Fatalf("the model said %q: %v", line, err)
	}
}

func TestBuildingEndsInTime(t *testing.T) {
	t.Parallel()
	o := requiring(t, "tiny==1.0")
	fake := filepath.Join(t.TempDir(), "python") // one that hangs, and has a child that does
	require.NoError(t, os.WriteFile(fake, []byte("#!/bin/sh\nsleep 6000 &\nwait\n"), 0o755))
	o.Pythons = func(string) (string, bool) { return fake, true }
	o.Timeout = 300 * time.Millisecond
	if text := refused(t, o); !strings.Contains(text, "not ready after 300ms") {
		t.Error(text)
	}
}

func TestWithoutItsPythonAnEnvironmentIsNotReady(t *testing.T) {
	dir := t.TempDir()
	e := environment{dir: dir, python: filepath.Join(dir, "bin", "python")}
	interpreter := filepath.Join(t.TempDir(), "python3")
	for _, path := range []string{interpreter, filepath.Join(dir, completeName)} {
		require.NoError(t, os.WriteFile(path, nil, 0o755))
	}
	require.NoError(t, os.Mkdir(filepath.Join(dir, "bin"), 0o755))
	require.NoError(t, os.Symlink(interpreter, e.python))
	if !e.ready() {
		t.Error("it is not ready")
	}
	require.NoError(t, os.Remove(interpreter))
	if e.ready() {
		t.Error("it is ready")
	}
}

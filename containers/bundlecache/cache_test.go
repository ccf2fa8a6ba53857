//go:build unix

package bundlecache

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	"github.com/topsail-serving/topsail/containers/intact"
	"github.com/topsail-serving/topsail/rpc"
	"github.com/topsail-serving/topsail/serving/bundle"
	"github.com/topsail-serving/topsail/test/require"
)

// pack writes a bundle whose file has so many bytes, and returns where it is and its digest.
func pack(t *testing.T, name string, size int) (path, digest string) {
	t.Helper()
	var archive bytes.Buffer
	m := &bundle.Manifest{Runtime: "python", Python: "3.11", Entry: "model:predict"}
	content := []byte(name + strings.Repeat(" ", size-len(name)))
	require.NoError(t, bundle.Write(&archive, m, fstest.MapFS{"model.py": {Data: content}}))
	digest, err := bundle.Digest(bytes.NewReader(archive.Bytes()))
	require.NoError(t, err)
	path = filepath.Join(t.TempDir(), name+".zip")
	require.NoError(t, os.WriteFile(path, archive.Bytes(), 0o600))
	return path, digest
}

func open(t *testing.T, dir string, most int64, source func(string) string) *Cache {
	t.Helper()
	of := func(_ context.Context, digest string) ([]string, error) {
		if at := source(digest); at != "" {
			return []string{at}, nil
		}
		return nil, errors.New("no management")
	}
	s, err := Open(dir, most, Source{Of: of, Client: http.DefaultClient}, t.Output())
	require.NoError(t, err)
	return s
}

func nowhere(string) string { return "" }

// fetch has a bundle in the cache and wants its model there.
func fetch(t *testing.T, s *Cache, want rpc.Load, size int64) (dir string) {
	t.Helper()
	folder, n, err := s.Fetch(t.Context(), want)
	if err != nil || n != size {
		t.Fatalf("%d bytes, %v; want %d", n, err, size)
	}
	dir = filepath.Join(s.Dir(), folder)
	if _, err := os.Stat(filepath.Join(dir, "model.py")); err != nil {
		t.Error(err)
	}
	return dir
}

func TestABundleIsFetchedOnce(t *testing.T) {
	path, digest := pack(t, "a", 100)
	var asked atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		http.ServeFile(w, r, path)
	}))
	defer server.Close()
	dir := t.TempDir()
	s := open(t, dir, 1<<20, func(digest string) string { return server.URL + "/" + digest })
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if _, n, err := s.Fetch(t.Context(), rpc.Load{Bundle: digest}); err != nil || n != 100 {
				t.Errorf("%d bytes, %v", n, err)
			}
		})
	}
	all.Wait()
	at := fetch(t, s, rpc.Load{Bundle: digest}, 100)
	again := open(t, dir, 1<<20, nowhere) // the next process
	if fetch(t, again, rpc.Load{Bundle: digest}, 100) != at || asked.Load() != 1 {
		t.Errorf("it was asked for %d times", asked.Load())
	}
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), ".tmp") || strings.HasSuffix(e.Name(), ".zip") {
			t.Errorf("%s is left, %v", e.Name(), err)
		}
	}
}

// What was fetched longest ago makes room, unless a container may be loading it.
func TestTheCacheIsBounded(t *testing.T) {
	s := open(t, t.TempDir(), 250, nowhere)
	var dirs []string
	for i := range 4 {
		path, digest := pack(t, fmt.Sprint("m", i), 100)
		dirs = append(dirs, fetch(t, s, rpc.Load{Bundle: digest, URL: path}, 100))
		if i == 2 {
			for _, dir := range dirs {
				if _, err := os.Stat(dir); err != nil {
					t.Errorf("one in use is gone: %v", err)
				}
			}
			s.mu.Lock()
			for _, v := range s.kept {
				v.used = v.used.Add(-2 * inUse)
			}
			s.mu.Unlock()
		}
	}
	for i, dir := range dirs {
		if _, err := os.Stat(dir); (err == nil) != (i >= 2) {
			t.Errorf("bundle %d: %v", i, err)
		}
	}
	if s.total != 200 {
		t.Errorf("%d bytes are kept", s.total)
	}
}

func TestWhatCannotBeFetched(t *testing.T) {
	path, digest := pack(t, "a", 100)
	_, other := pack(t, "b", 100)
	dir := t.TempDir()
	s := open(t, dir, 1<<20, nowhere)
	for want, load := range map[string]rpc.Load{
		"no management":          {Bundle: digest},
		"cannot read the bundle": {Bundle: digest, URL: path + ".none"},
		"it was damaged":         {Bundle: other, URL: path},
		"digest":                 {Bundle: "sha256:../../etc", URL: path},
	} {
		if _, _, err := s.Fetch(t.Context(), load); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want an error with %q, got %v", want, err)
		}
	}
	fetch(t, s, rpc.Load{Bundle: digest, URL: path}, 100)                 // a failure is not kept
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 2 { // with its record
		t.Errorf("%v is left, %v", entries, err)
	}
}

// What changes in the cache is put back before a container loads it, in this process and the next.
func TestADamagedFileIsPutBack(t *testing.T) {
	path, digest := pack(t, "a", 100)
	dir := t.TempDir()
	var log strings.Builder
	s := open(t, dir, 1<<20, nowhere)
	s.log = &log
	want := rpc.Load{Bundle: digest, URL: path}
	at := filepath.Join(fetch(t, s, want, 100), "model.py")
	whole, err := os.ReadFile(at)
	require.NoError(t, err)
	for name, damage := range map[string]func() error{
		"flipped":    func() error { return os.WriteFile(at, append([]byte("b"), whole[1:]...), 0o600) },
		"cut":        func() error { return os.Truncate(at, 50) },
		"emptied":    func() error { return os.Truncate(at, 0) },
		"removed":    func() error { return os.Remove(at) },
		"unreadable": func() error { return os.Chmod(at, 0) },
		"no record":  func() error { return errors.Join(os.Truncate(at, 0), os.Remove(filepath.Dir(at)+intact.RecordEnding)) },
	} {
		log.Reset()
		require.NoError(t, damage())
		fetch(t, s, want, 100)
		if text, err := os.ReadFile(at); err != nil || !bytes.Equal(text, whole) {
			t.Errorf("%s: it is %q, %v", name, text, err)
		}
		if strings.Count(log.String(), "model.py changed after it was unpacked, and was restored") != 1 {
			t.Errorf("%s: the log is %q", name, log.String())
		}
		s = open(t, dir, 1<<20, nowhere)
		s.log = &log
	}
	require.NoError(t, errors.Join(os.Truncate(at, 0), os.Remove(path)))
	if _, _, err := s.Fetch(t.Context(), want); err == nil || !strings.Contains(err.Error(), "model.py") || !strings.Contains(err.Error(), path) {
		t.Errorf("error is %v", err)
	}
}

func TestWhoLeavesDoesNotWait(t *testing.T) {
	_, digest := pack(t, "a", 100)
	s := open(t, t.TempDir(), 1<<20, nowhere)
	s.kept[digest] = &volume{whole: make(chan struct{}), used: time.Now()} // somebody is fetching it
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := s.Fetch(ctx, rpc.Load{Bundle: digest}); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

// A container has another working directory than the process that keeps the cache.
func TestTheFolderIsAbsolute(t *testing.T) {
	t.Chdir(t.TempDir())
	path, digest := pack(t, "a", 100)
	s := open(t, "shelf", 1<<20, nowhere)
	if !filepath.IsAbs(s.Dir()) {
		t.Errorf("the folder is %s", s.Dir())
	}
	t.Chdir(t.TempDir())
	fetch(t, s, rpc.Load{Bundle: digest, URL: path}, 100)
}

// What a process left half-way is removed.
func TestLeftovers(t *testing.T) {
	dir := t.TempDir()
	whole := strings.Repeat("ab", 32)
	for _, name := range []string{whole, whole + ".tmp", "downloads"} {
		require.NoError(t, os.MkdirAll(filepath.Join(dir, name), 0o755))
	}
	open(t, dir, 1<<20, nowhere)
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 0 {
		t.Errorf("%v is left, %v", entries, err)
	}
}

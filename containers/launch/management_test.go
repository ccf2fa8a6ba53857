//go:build unix

package launch

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/topsail-serving/topsail/serving/bundle"
	"github.com/topsail-serving/topsail/test/require"
)

// A node asks the management processes that Consul names until one gives it the bundle, and
// never again for what it has unpacked.
func TestABundleIsFetchedFromAnyManagement(t *testing.T) {
	o := pack(t, bundle.Manifest{Runtime: "command", Command: []string{"true"}}, nil)
	path := o.Bundle
	var asked atomic.Int64
	good := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/api/v1/artifacts/"+o.Digest+"/content" && r.URL.Path != "/signed" {
			t.Errorf("asked for %s", r.URL.Path)
		}
		if r.URL.Path != "/signed" {
			http.Redirect(w, r, "/signed?signature=x", http.StatusFound)
			return
		}
		asked.Add(1)
		http.ServeFile(w, r, path)
	}))
	defer good.Close()
	bad := httptest.NewServer(http.NotFoundHandler())
	defer bad.Close()
	damaged := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte("PK")) }))
	defer damaged.Close()
	var file strings.Builder
	for _, url := range []string{"http://127.0.0.1:1", bad.URL, damaged.URL, good.URL} {
		file.WriteString("http " + strings.Replace(strings.TrimPrefix(url, "http://"), ":", " ", 1) + "\n")
	}
	management := filepath.Join(t.TempDir(), "management")
	require.NoError(t, os.WriteFile(management, []byte(file.String()), 0o600))
	client, err := Client("", "")
	require.NoError(t, err)
	o.Bundle = ""
	o.Exec = func(Image) error { return nil }
	o.Fetch = func(ctx context.Context) (string, error) {
		from, err := Sources(ctx, management, o.Digest, o.Log)
		if err != nil {
			return "", err
		}
		return Download(ctx, client, from, o.Digest, o.Work, o.Log)
	}
	for range 3 {
		require.NoError(t, Run(t.Context(), o))
	}
	if asked.Load() != 1 {
		t.Errorf("it was fetched %d times", asked.Load())
	}
	if left, err := os.ReadDir(filepath.Join(o.Work, "downloads")); err != nil || len(left) > 0 {
		t.Errorf("%v is left, error %v", left, err)
	}
}

func TestSourcesWaitForConsul(t *testing.T) {
	file := filepath.Join(t.TempDir(), "management")
	synctest.Test(t, func(t *testing.T) {
		var said bytes.Buffer
		if _, err := Sources(t.Context(), file, "sha256:x", &said); err == nil || !strings.Contains(err.Error(), "run the job topsail-web") || !strings.Contains(said.String(), "waiting for a ready management process") {
			t.Errorf("error is %v, it said %q", err, said.String())
		}
		found := make(chan []string)
		go func() {
			urls, err := Sources(t.Context(), file, "sha256:x", &said)
			if err != nil {
				t.Error(err)
			}
			found <- urls
		}()
		synctest.Wait()
		if err := os.WriteFile(file, []byte("https ::1 1338\nhttp 10.0.0.2 1338\n\n"), 0o600); err != nil {
			t.Error(err)
		}
		urls := slices.Sorted(slices.Values(<-found))
		if want := []string{"http://10.0.0.2:1338/api/v1/artifacts/sha256:x/content?redirect=true", "https://[::1]:1338/api/v1/artifacts/sha256:x/content?redirect=true"}; !slices.Equal(urls, want) {
			t.Errorf("got %q", urls)
		}
	})
}

//go:build servers

package nomadfleet

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/nomad/api"

	"github.com/topsail-serving/topsail/serving"
)

// recorder passes calls on to Nomad and notes them.
type recorder struct {
	*httputil.ReverseProxy
	token string // when set, calls need it

	mu    sync.Mutex
	calls []string
}

func record(t *testing.T, token string) (*recorder, string) {
	t.Helper()
	to, err := url.Parse(nomad)
	if err != nil {
		t.Fatal(err)
	}
	r := &recorder{ReverseProxy: httputil.NewSingleHostReverseProxy(to), token: token}
	server := httptest.NewServer(r)
	t.Cleanup(server.Close)
	return r, server.URL
}

func (r *recorder) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	r.mu.Lock()
	r.calls = append(r.calls, req.Method+" "+req.URL.Path)
	r.mu.Unlock()
	if r.token != "" && req.Header.Get("X-Nomad-Token") != r.token {
		http.Error(w, "Permission denied", http.StatusForbidden)
		return
	}
	req.Header.Del("X-Nomad-Token") // Nomad itself knows none here
	r.ReverseProxy.ServeHTTP(w, req)
}

// since is what was called since the last time.
func (r *recorder) since() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	calls := r.calls
	r.calls = nil
	return calls
}

// TestOneCall: a list is one call, whatever the number of jobs, when all is well.
func TestOneCall(t *testing.T) {
	t.Parallel()
	r, address := record(t, "")
	f := open(t, settings(t))
	f.client = client(t, address)
	for _, model := range []string{"one-call-a", "one-call-b", "one-call-c"} {
		register(t, f, sleeper(model), 0)
	}
	// Other tests have jobs with problems of their own: look at ours alone.
	stubs := func() []*api.JobListStub {
		list, err := f.list(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return slices.DeleteFunc(list, func(s *api.JobListStub) bool { return !strings.HasPrefix(s.ID, "topsail-one-call-") })
	}
	for i, want := range []int{4, 1} {
		r.since()
		list := stubs()
		details, err := f.refresh(t.Context(), list)
		if err != nil || len(details) != 3 {
			t.Fatalf("%d jobs, error %v", len(details), err)
		}
		if err := (&look{fleet: f, stubs: list, details: details}).further(t.Context()); err != nil {
			t.Fatal(err)
		}
		if calls := r.since(); len(calls) != want {
			t.Errorf("list %d took %v", i+1, calls)
		}
	}
}

func client(t *testing.T, address string) *api.Client {
	t.Helper()
	conf := api.DefaultConfig()
	conf.Address = address
	c, err := api.NewClient(conf)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestTokenFile: a token that is refused is read again, once.
func TestTokenFile(t *testing.T) {
	t.Parallel()
	r, address := record(t, "second")
	file := filepath.Join(t.TempDir(), "token")
	put := func(token string) {
		if err := os.WriteFile(file, []byte(token+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put("first")
	conf := api.DefaultConfig()
	conf.Address = address
	f, err := Open(Config{API: conf, TokenFile: file, Jobs: settings(t)})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Jobs(t.Context()); status(err) != http.StatusForbidden {
		t.Errorf("with the first token: %v", err)
	}
	if calls := r.since(); len(calls) != 1 {
		t.Errorf("a refused token of an unchanged file: %v", calls)
	}
	put("second")
	if _, err := f.Jobs(t.Context()); err != nil {
		t.Errorf("with the second token: %v", err)
	}
	if err := f.Remove(t.Context(), serving.ModelID{Model: "none", Version: "1"}, serving.JobChange{}); err != nil {
		t.Errorf("another call with the second token: %v", err)
	}
	if _, err := Open(Config{TokenFile: file + "x", Jobs: settings(t)}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("without the file: %v", err)
	}
}

// TestUnixSocket: the task API of Nomad is a socket.
func TestUnixSocket(t *testing.T) {
	t.Parallel()
	to, err := url.Parse(nomad)
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "s") // t.TempDir may be too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	server := httptest.NewUnstartedServer(httputil.NewSingleHostReverseProxy(to))
	if server.Listener, err = net.Listen("unix", filepath.Join(dir, "api.sock")); err != nil {
		t.Fatal(err)
	}
	server.Start()
	defer server.Close()
	conf := api.DefaultConfig()
	conf.Address = "unix://" + filepath.Join(dir, "api.sock")
	f, err := Open(Config{API: conf, Jobs: settings(t)})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Jobs(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestChanges: a change of a job is heard, and so is one while nobody listened.
func TestChanges(t *testing.T) {
	t.Parallel()
	f := open(t, settings(t))
	ctx, stop := context.WithCancel(t.Context())
	heard := make(chan struct{}, 1)
	done := make(chan error, 1)
	go func() {
		done <- f.Changes(ctx, func() {
			select {
			case heard <- struct{}{}:
			default:
			}
		})
	}()
	hear := func(what string) {
		t.Helper()
		select {
		case <-heard:
		case <-time.After(waitFor):
			t.Fatalf("%s was not heard", what)
		}
	}
	hear("the connection")
	register(t, f, sleeper("changes"), 0)
	hear("a new job")
	stop()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// TestNobodyAnswers: without a Nomad every call fails, and says so.
func TestNobodyAnswers(t *testing.T) {
	t.Parallel()
	conf := api.DefaultConfig()
	conf.Address = "http://127.0.0.1:1"
	f, err := Open(Config{API: conf, Jobs: settings(t)})
	if err != nil {
		t.Fatal(err)
	}
	if list, err := f.Jobs(t.Context()); err == nil {
		t.Errorf("jobs of nobody: %v", list)
	}
	err = f.SetCount(t.Context(), sleeper("none"), 0, serving.JobChange{Count: 1})
	if err == nil || errors.Is(err, serving.ErrJobRefused) || errors.Is(err, serving.ErrJobChanged) {
		t.Errorf("set count: %v", err)
	}
}

package consulregistry

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/hashicorp/consul/api"

	"github.com/topsail-serving/topsail/test/require"
)

// TestTokenFile replaces the token while the client runs, for reads and writes.
func TestTokenFile(t *testing.T) {
	t.Parallel()
	var valid atomic.Value
	valid.Store("one")
	var bodies []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Consul-Token") != valid.Load() {
			http.Error(w, "ACL not found", http.StatusForbidden)
			return
		}
		body, _ := io.ReadAll(r.Body)
		bodies = append(bodies, string(body))
		w.Write([]byte("true"))
	}))
	defer server.Close()
	file := filepath.Join(t.TempDir(), "token")
	write := func(token string) {
		require.NoError(t, os.WriteFile(file, []byte(token+"\n"), 0o600))
	}
	write("one")
	c, err := Connect(Options{Addr: server.URL, TokenFile: file})
	require.NoError(t, err)
	put := func(value string) error {
		_, err := c.api.KV().Put(&api.KVPair{Key: "k", Value: []byte(value)}, nil)
		return err
	}
	if err := put("first"); err != nil {
		t.Error(err)
	}
	valid.Store("two")
	if err := put("refused"); err == nil || !strings.Contains(err.Error(), "403") {
		t.Errorf("with the old token: %v", err)
	}
	write("two")
	if err := put("second"); err != nil {
		t.Error(err)
	}
	os.Remove(file)
	if err := put("third"); err != nil {
		t.Error("without its file:", err)
	}
	valid.Store("three")
	if err := put("refused"); err == nil {
		t.Error("no error without a valid token")
	}
	if want := []string{"first", "second", "third"}; !slices.Equal(bodies, want) {
		t.Errorf("got bodies %q, want %q", bodies, want)
	}
}

func TestConnectFails(t *testing.T) {
	t.Parallel()
	missing := filepath.Join(t.TempDir(), "missing")
	if _, err := Connect(Options{TokenFile: missing}); err == nil || !strings.Contains(err.Error(), missing) {
		t.Errorf("without its token file: %v", err)
	}
}

func TestEnvironment(t *testing.T) {
	var header http.Header
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { header = r.Header }))
	defer server.Close()
	t.Setenv("CONSUL_HTTP_ADDR", server.URL)
	t.Setenv("CONSUL_HTTP_TOKEN", "from the environment")
	r, err := Open(Config{})
	require.NoError(t, err)
	r.client.api.KV().Get("k", nil)
	if got := header.Get("X-Consul-Token"); got != "from the environment" {
		t.Errorf("got token %q", got)
	}
	t.Setenv("CONSUL_CACERT", "/nowhere")
	if _, err := Open(Config{}); err == nil || !strings.Contains(err.Error(), "CONSUL_CACERT") {
		t.Errorf("without its CA: %v", err)
	}
}

func TestUnixSocket(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("", "s") // t.TempDir may be too long for a socket
	require.NoError(t, err)
	defer os.RemoveAll(dir)
	ln, err := net.Listen("unix", filepath.Join(dir, "s"))
	require.NoError(t, err)
	server := httptest.NewUnstartedServer(empty("1", "true", "0", "false"))
	server.Listener.Close()
	server.Listener = ln
	server.Start()
	defer server.Close()
	c := connect(t, "unix://"+ln.Addr().String())
	if _, err := c.ask(t.Context(), question{service: "s"}); err != nil {
		t.Error(err)
	}
}

// TestEndlessAnswer: an answer is not read without end.
func TestEndlessAnswer(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for block := make([]byte, 1<<20); ; {
			if _, err := w.Write(block); err != nil {
				return
			}
		}
	}))
	defer server.Close()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL, nil)
	require.NoError(t, err)
	resp, err := (&transport{base: http.DefaultTransport}).RoundTrip(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	if n, err := io.Copy(io.Discard, resp.Body); n > maxAnswer || err == nil || !strings.Contains(err.Error(), "too large") {
		t.Errorf("read %d bytes, and got error %v", n, err)
	}
}

func connect(t *testing.T, addr string) *Client {
	t.Helper()
	c, err := Connect(Options{Addr: addr})
	require.NoError(t, err)
	return c
}

package role

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"log/slog"
	"net"
	"net/http"
	"testing"

	"github.com/topsail-serving/topsail/cmd/topsail/config"
	"github.com/topsail-serving/topsail/internal/access/testca"
	"github.com/topsail-serving/topsail/internal/obs"
	"github.com/topsail-serving/topsail/test/require"
)

// A page that has its own name point here reads no metrics and no profiles. Where keys
// are asked for, it has none.
func TestOpsAnswersToNoForeignName(t *testing.T) {
	for _, keys := range []bool{false, true} {
		cfg := &config.Config{}
		cfg.Ops.Addr = "127.0.0.1:0"
		if keys {
			cfg.Ops.KeysFile = testca.Write(t, t.TempDir(), "keys", []byte("scraper:ops-key-0123456789abcdef"))
		}
		b := New(cfg, slog.New(slog.DiscardHandler))
		ln, err := b.ListenOps()
		require.NoError(t, err)
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- b.ServeOps(ln, obs.Health{Ready: func() error { return nil }})(ctx) }()
		defer func() { stop(); <-ended }()
		for _, test := range []struct {
			path, host string
			open       int // without keys
		}{
			{"/metrics", "evil.example", 403}, {"/debug/pprof/heap", "evil.example:1390", 403}, {"/debug/pprof/cmdline", "127.0.0.1.evil.example", 403},
			{"/metrics", "", 200}, {"/metrics", "localhost:1390", 200}, {"/debug/pprof/heap", "[::1]:1390", 200},
			{"/health/ready", "evil.example", 200}, {"/health/live", "evil.example", 200},
		} {
			r, err := http.NewRequestWithContext(ctx, "GET", "http://"+ln.Addr().String()+test.path, nil)
			require.NoError(t, err)
			r.Host = test.host
			want := test.open
			if keys {
				r.Header.Set("X-Api-Key", "ops-key-0123456789abcdef")
				want = 200
			}
			answer, err := http.DefaultClient.Do(r)
			require.NoError(t, err)
			answer.Body.Close()
			if answer.StatusCode != want {
				t.Errorf("keys %t, %s as %q: %d, want %d", keys, test.path, test.host, answer.StatusCode, want)
			}
		}
	}
}

// Connections that never shake hands keep nobody out, and those that do are known to speak TLS.
func TestSilentHandshakes(t *testing.T) {
	ca, dir := testca.New(t, "ca"), t.TempDir()
	pair := ca.Issue(t, "127.0.0.1")
	cfg := &config.Config{}
	cfg.Ops.Addr, cfg.Ops.MaxConnections = "127.0.0.1:0", 4
	cfg.TLS.CertFile, cfg.TLS.KeyFile = testca.Write(t, dir, "cert.pem", pair.Cert), testca.Write(t, dir, "key.pem", pair.Key)
	b := New(cfg, slog.New(slog.DiscardHandler))
	ln, err := b.ListenOps()
	require.NoError(t, err)
	encrypted := obs.Page{Path: "/encrypted", Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.TLS == nil {
			w.WriteHeader(http.StatusInternalServerError)
		}
	})}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- b.ServeOps(ln, obs.Health{Ready: func() error { return nil }}, encrypted)(ctx) }()
	defer func() { stop(); <-ended }()
	for range 20 {
		silent, err := net.Dial("tcp", ln.Addr().String())
		require.NoError(t, err)
		defer silent.Close()
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca.PEM)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}
	defer transport.CloseIdleConnections()
	for _, path := range []string{"/health/ready", "/encrypted"} {
		answer, err := (&http.Client{Transport: transport}).Get("https://" + ln.Addr().String() + path)
		require.NoError(t, err)
		answer.Body.Close()
		if answer.StatusCode != http.StatusOK {
			t.Errorf("%s: %s", path, answer.Status)
		}
	}
}

package httpapi

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/topsail-serving/topsail/internal/access"
	"github.com/topsail-serving/topsail/internal/access/testca"
	"github.com/topsail-serving/topsail/test/require"
)

func TestTLS(t *testing.T) {
	certified := httptest.NewTLSServer(nil) // for its certificate
	certified.Close()
	roots := x509.NewCertPool()
	roots.AddCert(certified.Certificate())
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}
	defer transport.CloseIdleConnections()
	ln, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: certified.TLS.Certificates})
	require.NoError(t, err)
	s := startOn(t, Config{MaxBodyBytes: 1 << 20}, newFake(), ln)

	silent, err := net.Dial("tcp", s.addr) // holds its place, and nobody else up
	require.NoError(t, err)
	defer silent.Close()
	for body, want := range map[string]int{`{"input":[1]}`: 200, strings.Repeat(" ", 4<<20): 413} {
		response, err := (&http.Client{Transport: transport}).Post("https://"+s.addr+"/doubles/predict", "", strings.NewReader(body))
		require.NoError(t, err)
		response.Body.Close()
		if response.StatusCode != want {
			t.Errorf("body of %d bytes: status %d, want %d", len(body), response.StatusCode, want)
		}
	}
}

// Clients that cannot shake hands cost a connection, and no line in the log.
func TestMutualTLS(t *testing.T) {
	ours, theirs := testca.New(t, "ours"), testca.New(t, "theirs")
	ln := listenTLS(t, ours)
	s := startOn(t, Config{}, newFake(), ln)
	for name, tt := range map[string]struct {
		by   *testca.Authority // of the client's certificate
		says string            // "": welcome
	}{
		"ours":     {ours, ""},
		"stranger": {theirs, "unknown certificate authority"},
		"none":     {nil, "certificate required"},
	} {
		files := pemFiles(t, ours, tt.by)
		files.ServerName = "localhost"
		config, err := files.Client()
		require.NoError(t, err)
		transport := &http.Transport{TLSClientConfig: config}
		response, err := (&http.Client{Transport: transport}).Post("https://"+s.addr+"/doubles/predict", "", strings.NewReader(`{"input":[1]}`))
		if err == nil {
			response.Body.Close()
		}
		switch {
		case tt.says == "" && (err != nil || response.StatusCode != 200):
			t.Errorf("%s: %v, %v", name, response, err)
		case tt.says != "" && (err == nil || !strings.Contains(err.Error(), tt.says)):
			t.Errorf("%s: %v, want %q", name, err, tt.says)
		}
		transport.CloseIdleConnections()
	}
	for range 3 {
		c := s.dial(t) // a client that does not know of TLS
		c.send(t, request("POST", "/doubles/predict", `{"input":[1]}`))
		if answer, _ := io.ReadAll(c.r); strings.Contains(string(answer), "output") {
			t.Errorf("answered without TLS: %s", answer)
		}
		c.Close()
	}
	if err := s.stop(); err != nil {
		t.Error(err)
	}
	if text := s.log.String(); text != "" {
		t.Errorf("log: %s", text)
	}
}

// pemFiles trust ca and have a certificate of by, unless that is nil.
func pemFiles(t *testing.T, ca, by *testca.Authority) access.TLS {
	t.Helper()
	dir := t.TempDir()
	files := access.TLS{CAFile: testca.Write(t, dir, "ca.pem", ca.PEM)}
	if by != nil {
		pair := by.Issue(t, "localhost")
		files.CertFile, files.KeyFile = testca.Write(t, dir, "cert.pem", pair.Cert), testca.Write(t, dir, "key.pem", pair.Key)
	}
	return files
}

// listenTLS asks clients for certificates of ca.
func listenTLS(t *testing.T, ca *testca.Authority) net.Listener {
	t.Helper()
	raw, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	files := pemFiles(t, ca, ca)
	files.RequireClientCert = true
	ln, err := files.Listen(raw)
	require.NoError(t, err)
	return ln
}

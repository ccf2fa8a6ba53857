package access

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/internal/access/testca"
	"github.com/topsail-serving/topsail/test/require"
)

func containsFold(text, part string) bool {
	return strings.Contains(strings.ToLower(text), strings.ToLower(part))
}

func TestAServerIsHeldToItsAuthorityAndName(t *testing.T) {
	t.Parallel()
	ours, theirs := testca.New(t, "ours"), testca.New(t, "theirs")
	addr := newPeer(t, ours, ours).echo()
	_, port, _ := net.SplitHostPort(addr)
	impostor := newPeer(t, ours, theirs).echo()
	client := newPeer(t, ours, nil)
	conn, err := ask(t, client.dialer(), addr)
	require.NoError(t, err)
	if got := conn.(*tls.Conn).ConnectionState().Version; got != tls.VersionTLS13 {
		t.Errorf("version %x", got)
	}
	if _, err := ask(t, client.dialer(), "localhost:"+port); err != nil {
		t.Error(err)
	}
	if _, err := ask(t, client.dialer(), impostor); refused(err, "tls.ca_file does not contain the authority that signed the certificate of 127.0.0.1") != nil {
		t.Error(err)
	}
	other := *client
	other.ServerName = "sidecar.example"
	if _, err := ask(t, other.dialer(), addr); refused(err, "not sidecar.example; put this name into") != nil {
		t.Error(err)
	}
	other.ServerName = "localhost" // whatever is dialled
	if _, err := ask(t, other.dialer(), addr); err != nil {
		t.Error(err)
	}
	if verification, ok := errors.AsType[*tls.CertificateVerificationError](func() error { _, err := ask(t, client.dialer(), impostor); return err }()); !ok {
		t.Errorf("got %v", verification)
	}
}

func TestOldVersionsAreRefused(t *testing.T) {
	t.Parallel()
	ca := testca.New(t, "ca")
	server, client := newPeer(t, ca, ca), newPeer(t, ca, nil)
	addr := server.echo()
	config, err := client.Client()
	require.NoError(t, err)
	config.ServerName = "localhost"
	for version, good := range map[uint16]bool{tls.VersionTLS11: false, tls.VersionTLS12: true, tls.VersionTLS13: true} {
		config := config.Clone()
		config.MinVersion, config.MaxVersion = version, version
		conn, err := tls.Dial("tcp", addr, config)
		if (err == nil) != good {
			t.Errorf("%x: %v", version, err)
		}
		if err == nil {
			conn.Close()
		}
	}
}

// The standard library tells a configuration the name that is dialled, and not the
// IP address. Whoever dials one without a name must not get just any server.
func TestClientWithoutANameRefusesAnAddress(t *testing.T) {
	t.Parallel()
	ca := testca.New(t, "ca")
	addr := newPeer(t, ca, ca).echo()
	_, port, _ := net.SplitHostPort(addr)
	client := newPeer(t, ca, nil)
	dial := func(addr string) error {
		config, err := client.Client()
		require.NoError(t, err)
		conn, err := tls.Dial("tcp", addr, config)
		if err == nil {
			conn.Close()
		}
		return err
	}
	if err := dial(addr); refused(err, "without the name") != nil {
		t.Error(err)
	}
	if err := dial("localhost:" + port); err != nil {
		t.Error(err)
	}
	client.ServerName = "127.0.0.1"
	if err := dial(addr); err != nil {
		t.Error(err)
	}
}

func TestClientServesHTTP(t *testing.T) {
	t.Parallel()
	ca := testca.New(t, "ca")
	server := newPeer(t, ca, ca)
	server.RequireClientCert = true
	raw, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ln, err := server.Listen(raw)
	require.NoError(t, err)
	backend := &http.Server{Handler: http.NotFoundHandler(), ErrorLog: nil}
	done := make(chan struct{})
	go func() { defer close(done); backend.Serve(ln) }()
	t.Cleanup(func() { backend.Close(); <-done })
	config, err := newPeer(t, ca, ca).Client()
	require.NoError(t, err)
	transport := &http.Transport{TLSClientConfig: config}
	defer transport.CloseIdleConnections()
	_, port, _ := net.SplitHostPort(raw.Addr().String())
	answer, err := (&http.Client{Transport: transport}).Get("https://localhost:" + port)
	require.NoError(t, err)
	answer.Body.Close()
	if answer.StatusCode != 404 {
		t.Errorf("status %d", answer.StatusCode)
	}
}

func TestMutualTLS(t *testing.T) {
	t.Parallel()
	ours, theirs := testca.New(t, "ours"), testca.New(t, "theirs")
	server := newPeer(t, ours, ours)
	server.RequireClientCert = true
	addr := server.echo()
	expired := newPeer(t, ours, ours)
	late := expired.dialer()
	for name, tt := range map[string]struct {
		client *peer
		says   string // "": welcome
	}{
		"ours":     {newPeer(t, ours, ours), ""},
		"none":     {newPeer(t, ours, nil), "certificate required"},
		"stranger": {newPeer(t, ours, theirs), "unknown certificate authority"},
	} {
		conn, err := ask(t, tt.client.dialer(), addr)
		switch {
		case tt.says == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		case tt.says != "" && refused(err, tt.says) != nil:
			t.Errorf("%s: %v, %v, want %q", name, conn, err, tt.says)
		}
	}
	if _, err := ask(t, late, addr); err != nil {
		t.Error(err)
	}
}

func TestExpiredCertificates(t *testing.T) {
	t.Parallel()
	ca := testca.New(t, "ca")
	over := ca.IssueUntil(t, time.Now().Add(-time.Minute), "localhost", "127.0.0.1")
	own := newPeer(t, ca, nil)
	own.put(over)
	for name, start := range map[string]func() error{
		"server": func() error { _, err := own.Server(); return err },
		"client": func() error { _, err := own.Client(); return err },
		"dialer": func() error { _, err := own.Dialer(); return err },
		"listen": func() error { _, err := own.Listen(nil); return err },
	} {
		if err := start(); refused(err, "the certificate expired at") != nil || !strings.Contains(err.Error(), own.CertFile) {
			t.Errorf("%s: %v", name, err)
		}
	}
	pair, err := tls.X509KeyPair(over.Cert, over.Key)
	require.NoError(t, err)
	ln, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{pair}})
	require.NoError(t, err)
	defer ln.Close()
	go func() {
		if nc, err := ln.Accept(); err == nil {
			nc.(*tls.Conn).Handshake()
			nc.Close()
		}
	}()
	if _, err := ask(t, newPeer(t, ca, nil).dialer(), ln.Addr().String()); refused(err, "has expired") != nil || refused(err, "; renew the certificate of 127.0.0.1, or set the clock") != nil {
		t.Error(err)
	}
}

func TestFilesThatCannotBeUsedAtTheStart(t *testing.T) {
	t.Parallel()
	ca := testca.New(t, "ca")
	good, mixed := newPeer(t, ca, ca), newPeer(t, ca, ca)
	mixed.KeyFile = good.KeyFile
	change := func(f func(*TLS)) TLS {
		changed := good.TLS
		f(&changed)
		return changed
	}
	broken := filepath.Join(good.dir, "broken.pem")
	require.NoError(t, os.WriteFile(broken, []byte("-----BEGIN CERTIFICATE-----\nAAAA"), 0o600))
	for says, files := range map[string]TLS{
		"set tls.cert_file and tls.key_file": {},
		"set tls.key_file":                   change(func(f *TLS) { f.KeyFile = "" }),
		"set tls.ca_file":                    change(func(f *TLS) { f.CAFile, f.RequireClientCert = "", true }),
		"no such file":                       change(func(f *TLS) { f.CertFile = "/none" }),
		"private key does not match":         mixed.TLS,
		"failed to find any PEM data":        change(func(f *TLS) { f.CertFile = broken }),
		"found a certificate rather than":    change(func(f *TLS) { f.KeyFile = f.CertFile }),
		"it is truncated or damaged":         change(func(f *TLS) { f.CAFile, f.RequireClientCert = broken, true }),
		"it contains no certificate":         change(func(f *TLS) { f.CAFile, f.RequireClientCert = f.KeyFile, true }),
	} {
		if config, err := files.Server(); config != nil || refused(err, says) != nil || !strings.HasPrefix(err.Error(), "access: ") {
			t.Errorf("%v, want %q", err, says)
		}
	}
}

func TestWithoutFilesThereIsNoTLS(t *testing.T) {
	t.Parallel()
	p := &peer{folder: newFolder(t)}
	conn, err := ask(t, p.dialer(), p.echo())
	require.NoError(t, err)
	if _, plain := conn.(*net.TCPConn); !plain {
		t.Errorf("got %T", conn)
	}
	// but who wants client certificates does not get an open listener
	p.RequireClientCert = true
	if _, err := p.Listen(nil); refused(err, "needs a certificate") != nil {
		t.Error(err)
	}
}

func TestTheDialerDoesNotWaitForASilentServer(t *testing.T) {
	t.Parallel()
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer silent.Close()
	dial := newPeer(t, testca.New(t, "ca"), nil).dialer()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := dial(ctx, silent.Addr().String()); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("with a deadline: %v", err)
	}
	if _, err := dial(t.Context(), silent.Addr().String()); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("without: %v", err)
	}
	if _, err := dial(t.Context(), "no-port"); err == nil {
		t.Error("an address without a port is dialled")
	}
}

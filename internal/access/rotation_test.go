package access

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/topsail-serving/topsail/internal/access/testca"
	"github.com/topsail-serving/topsail/test/require"
)

func TestCertificatesRotateUnderLiveConnections(t *testing.T) {
	t.Parallel()
	ca := testca.New(t, "ca")
	server, client := newPeer(t, ca, ca), newPeer(t, ca, ca)
	server.RequireClientCert = true
	addr, dial := server.echo(), client.dialer()
	first, err := ask(t, dial, addr)
	require.NoError(t, err)
	next := ca.Issue(t, "127.0.0.1")
	server.put(next)
	client.put(ca.Issue(t, "client"))
	atOnce(t, func() error {
		conn, err := ask(t, dial, addr)
		require.NoError(t, err)
		if got := leaf(t, conn).SerialNumber.String(); got != serialOf(t, next) {
			return fmt.Errorf("the server shows %s", got)
		}
		return nil
	})
	if err := use(first); err != nil {
		t.Errorf("the connection from before: %v", err)
	}
	if text := server.text.String(); !strings.Contains(text, "read a changed file") || strings.Contains(text, "PRIVATE") {
		t.Errorf("log: %s", text)
	}
}

// While certificate and key are being replaced they do not fit, and nobody is to
// notice but the log.
func TestNoHandshakeFailsDuringARotation(t *testing.T) {
	t.Parallel()
	ca := testca.New(t, "ca")
	server, client := newPeer(t, ca, ca), newPeer(t, ca, ca)
	server.RequireClientCert = true
	addr, dial := server.echo(), client.dialer()
	next := ca.Issue(t, "127.0.0.1")
	server.write("cert.pem", string(next.Cert)) // and the key comes late
	current := func() string {
		conn, err := ask(t, dial, addr)
		require.NoError(t, err)
		return leaf(t, conn).SerialNumber.String()
	}
	old := current()
	atOnce(t, func() error {
		if got := current(); got != old {
			t.Fatal("a certificate without its key is in use")
		}
		return refused(errors.New(server.text.String()), "private key does not match")
	})
	var askers sync.WaitGroup
	for range 4 {
		askers.Go(func() {
			for range 20 {
				if _, err := ask(t, dial, addr); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	askers.Wait()
	server.write("key.pem", string(next.Key))
	atOnce(t, func() error {
		if got := current(); got != serialOf(t, next) {
			return errors.New("the old certificate is still shown")
		}
		return nil
	})
	if text := server.text.String(); strings.Count(text, "level=ERROR") != 1 {
		t.Errorf("the fault is to be logged once:\n%s", text)
	}
}

func TestAuthoritiesRotate(t *testing.T) {
	t.Parallel()
	old, next := testca.New(t, "old"), testca.New(t, "next")
	server, client := newPeer(t, old, old), newPeer(t, old, old)
	server.RequireClientCert = true
	addr, dial := server.echo(), client.dialer()
	first, err := ask(t, dial, addr)
	require.NoError(t, err)
	welcome := func(dial dialFunc) func() error {
		return func() error { _, err := ask(t, dial, addr); return err }
	}
	fresh := newPeer(t, old, next).dialer()
	if err := welcome(fresh)(); refused(err, "unknown certificate authority") != nil {
		t.Fatal(err)
	}
	server.trust(old, next) // both, while certificates are replaced
	client.trust(old, next)
	atOnce(t, welcome(fresh))
	require.NoError(t, welcome(dial)())
	server.put(next.Issue(t, "127.0.0.1"))
	atOnce(t, func() error {
		conn, err := ask(t, dial, addr)
		require.NoError(t, err)
		if leaf(t, conn).Issuer.CommonName != "next" {
			return errors.New("the server shows its old certificate")
		}
		return nil
	})
	server.trust(next) // and the old one ends
	atOnce(t, func() error { return refused(welcome(dial)(), "unknown certificate authority") })
	client.put(next.Issue(t, "client"))
	atOnce(t, welcome(dial))
	if err := use(first); err != nil {
		t.Errorf("the connection from before: %v", err)
	}
	client.trust(old)
	atOnce(t, func() error { return refused(welcome(dial)(), "does not contain the authority") })
	client.write("ca.pem", string(next.PEM[:len(next.PEM)/2]))
	atOnce(t, func() error {
		if err := welcome(dial)(); refused(err, "does not contain the authority") != nil {
			t.Fatalf("a file that is cut is in use: %v", err)
		}
		return refused(errors.New(client.text.String()), "it is truncated or damaged")
	})
}

// A client that keeps tickets must not come in by one after its authority is gone.
func TestNoTicketOutlivesAnAuthority(t *testing.T) {
	t.Parallel()
	old, next := testca.New(t, "old"), testca.New(t, "next")
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		server, client := newPeer(t, old, next), newPeer(t, next, old)
		server.RequireClientCert = true
		addr := server.echo()
		config, err := client.Client()
		require.NoError(t, err)
		config.ServerName, config.MaxVersion, config.ClientSessionCache = "localhost", version, tls.NewLRUClientSessionCache(8)
		connect := func() error {
			raw, err := net.Dial("tcp", addr)
			if err != nil {
				return err
			}
			conn := tls.Client(raw, config)
			defer conn.Close()
			err = use(conn)
			if conn.ConnectionState().DidResume {
				t.Fatalf("%x: a session was resumed", version)
			}
			return err
		}
		for range 3 {
			require.NoError(t, connect())
		}
		server.trust(next)
		atOnce(t, func() error { return refused(connect(), "certificate") })
	}
}

func FuzzAuthorities(f *testing.F) {
	ca := testca.New(f, "ca")
	for _, seed := range [][]byte{nil, ca.PEM, ca.PEM[:len(ca.PEM)-9], append(ca.PEM, ca.PEM...), ca.Issue(f, "x").Key, []byte("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		pool, err := parseAuthorities([][]byte{content})
		if (err == nil) != (pool != nil) {
			t.Fatalf("%v, %v", pool, err)
		}
	})
}

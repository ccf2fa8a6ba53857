package access

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/internal/access/testca"
	"github.com/topsail-serving/topsail/test/journal"
	"github.com/topsail-serving/topsail/test/require"
)

// peer is one end of connections, with its files.
type peer struct {
	folder
	TLS
	text *journal.Journal
}

// newPeer trusts ca, and has a certificate of by, unless that is nil, for localhost
// and 127.0.0.1.
func newPeer(t testing.TB, ca, by *testca.Authority) *peer {
	t.Helper()
	p := &peer{folder: newFolder(t), TLS: TLS{lookEvery: time.Nanosecond}}
	p.Log, p.text = newLog()
	p.trust(ca)
	if by != nil {
		p.put(by.Issue(t, "localhost", "127.0.0.1"))
	}
	return p
}

func (p *peer) put(pair testca.Pair) {
	p.Helper()
	p.CertFile, p.KeyFile = p.write("cert.pem", string(pair.Cert)), p.write("key.pem", string(pair.Key))
}

func (p *peer) trust(authorities ...*testca.Authority) {
	p.Helper()
	all := ""
	for _, a := range authorities {
		all += string(a.PEM)
	}
	p.CAFile = p.write("ca.pem", all)
}

// echo serves connections that send back what comes, until the test ends.
func (p *peer) echo() (addr string) {
	p.Helper()
	raw, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(p, err)
	ln, err := p.Listen(raw)
	require.NoError(p, err)
	var conns sync.WaitGroup
	p.Cleanup(func() { ln.Close(); conns.Wait() })
	conns.Go(func() {
		for {
			nc, err := ln.Accept()
			if err != nil {
				return
			}
			conns.Go(func() {
				defer nc.Close()
				_, _ = io.Copy(nc, nc)
			})
		}
	})
	return raw.Addr().String()
}

type dialFunc = func(ctx context.Context, addr string) (net.Conn, error)

func (p *peer) dialer() dialFunc {
	p.Helper()
	dial, err := p.Dialer()
	require.NoError(p, err)
	return dial
}

// ask opens a connection and uses it: TLS 1.3 tells a client that it is refused
// only when it reads.
func ask(t testing.TB, dial dialFunc, addr string) (net.Conn, error) {
	nc, err := dial(t.Context(), addr)
	if err != nil {
		return nil, err
	}
	if err := use(nc); err != nil {
		nc.Close()
		return nil, err
	}
	t.Cleanup(func() { nc.Close() })
	return nc, nil
}

func use(nc net.Conn) error {
	if err := nc.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		return err
	}
	if _, err := nc.Write([]byte("x")); err != nil {
		return err
	}
	var got [1]byte
	if _, err := io.ReadFull(nc, got[:]); err != nil {
		return err
	}
	if got[0] != 'x' {
		return fmt.Errorf("echo of x is %q", got)
	}
	return nil
}

func leaf(t testing.TB, nc net.Conn) *x509.Certificate {
	t.Helper()
	secure, ok := nc.(*tls.Conn)
	if !ok {
		t.Fatalf("%T is no TLS", nc)
	}
	return secure.ConnectionState().PeerCertificates[0]
}

func serialOf(t testing.TB, pair testca.Pair) string {
	t.Helper()
	own, err := tls.X509KeyPair(pair.Cert, pair.Key)
	require.NoError(t, err)
	return own.Leaf.SerialNumber.String()
}

// atOnce wants what changed files bring about in the next handshake.
func atOnce(t testing.TB, good func() error) {
	t.Helper()
	require.NoError(t, good())
}

// refused is nil when err says so in the given words.
func refused(err error, says string) error {
	if err == nil {
		return fmt.Errorf("not refused, want %q", says)
	}
	if !containsFold(err.Error(), says) {
		return fmt.Errorf("%w, want %q", err, says)
	}
	return nil
}

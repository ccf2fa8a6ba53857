//go:build system

package main

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/internal/access/testca"
	"github.com/topsail-serving/topsail/test/require"
)

var greeted = regexp.MustCompile(`(?m)^(Gateway|Web UI|Metrics) +https://([0-9.:]+)`)

// Proxies that insist on a protocol get HTTP/1.1 at every listener, with and without
// certificates of clients; those that know none are served, and those that speak HTTP/2 alone
// are told at once.
func TestEveryListenerOffersHTTP(t *testing.T) {
	t.Parallel()
	dir, ca := t.TempDir(), testca.New(t, "ca")
	pair := ca.Issue(t, "127.0.0.1", "localhost")
	own, err := tls.X509KeyPair(pair.Cert, pair.Key)
	require.NoError(t, err)
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca.PEM)
	in := start(t, dir, "", "--tls-ca-file", testca.Write(t, dir, "ca.pem", ca.PEM), "--tls-cert-file", testca.Write(t, dir, "cert.pem", pair.Cert),
		"--tls-key-file", testca.Write(t, dir, "key.pem", pair.Key), "--gateway-require-client-cert")
	in.until("the greeting", func() bool { return strings.Contains(in.output(), "Stop with Ctrl-C") })
	listeners := greeted.FindAllStringSubmatch(in.output(), -1)
	if len(listeners) != 3 {
		t.Fatalf("the greeting is %s", in.output())
	}
	for _, l := range listeners {
		name, addr := l[1], l[2]
		for _, tt := range []struct {
			offered []string
			want    string
			refused bool
		}{
			{[]string{"http/1.1"}, "http/1.1", false},
			{[]string{"h2", "http/1.1"}, "http/1.1", false},
			{nil, "", false},
			{[]string{"h2"}, "", true},
		} {
			config := &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{own}, NextProtos: tt.offered}
			conn, err := tls.Dial("tcp", addr, config)
			if err != nil {
				if !tt.refused || !strings.Contains(err.Error(), "no application protocol") {
					t.Errorf("%s, offered %q: %v", name, tt.offered, err)
				}
				continue
			}
			defer conn.Close()
			if got := conn.ConnectionState().NegotiatedProtocol; got != tt.want || tt.refused {
				t.Errorf("%s, offered %q, takes %q", name, tt.offered, got)
			}
			path := map[string]string{"Gateway": "/health", "Web UI": "/health", "Metrics": "/health/live"}[name]
			require.NoError(t, conn.SetDeadline(time.Now().Add(patience)))
			fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", path)
			response, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil || response.StatusCode != http.StatusOK || response.Proto != "HTTP/1.1" {
				t.Errorf("%s, offered %q, answers %v, %v", name, tt.offered, response, err)
			}
		}
	}
}

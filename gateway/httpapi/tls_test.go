package httpapi

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestTLS(t *testing.T) {
	certified := httptest.NewTLSServer(nil) // for its certificate
	certified.Close()
	roots := x509.NewCertPool()
	roots.AddCert(certified.Certificate())
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}
	defer transport.CloseIdleConnections()
	ln, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: certified.TLS.Certificates})
	if err != nil {
		t.Fatal(err)
	}
	s := startOn(t, Config{MaxBodyBytes: 1 << 20}, newFake(), ln)

	silent, err := net.Dial("tcp", s.addr) // holds its place, and nobody else up
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	for body, want := range map[string]int{`{"input":[1]}`: 200, strings.Repeat(" ", 4<<20): 413} {
		response, err := (&http.Client{Transport: transport}).Post("https://"+s.addr+"/doubles/predict", "", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if response.StatusCode != want {
			t.Errorf("body of %d bytes: status %d, want %d", len(body), response.StatusCode, want)
		}
	}
}

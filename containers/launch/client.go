//go:build unix

package launch

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"os"
	"time"
)

// Client fetches bundles. It trusts the authorities of the system, and those of caFile
// where one is named. Consul names processes by their IP addresses: where serverName is
// set, the certificate of such a one must have that name.
func Client(caFile, serverName string) (*http.Client, error) {
	roots, err := x509.SystemCertPool()
	if err != nil {
		roots = x509.NewCertPool()
	}
	if caFile != "" {
		pem, err := os.ReadFile(caFile)
		if err != nil {
			return nil, fmt.Errorf("the authorities of the management side: %w", err)
		}
		if !roots.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("the authorities of the management side: %s contains no certificate in PEM", caFile)
		}
	}
	dialer := &net.Dialer{Timeout: 5 * time.Second}
	return &http.Client{Transport: &http.Transport{
		Proxy: http.ProxyFromEnvironment, DialContext: dialer.DialContext, ResponseHeaderTimeout: time.Minute, IdleConnTimeout: time.Minute,
		TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}, TLSHandshakeTimeout: 5 * time.Second,
		DialTLSContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			host, _, err := net.SplitHostPort(addr)
			if err != nil {
				return nil, err
			}
			if net.ParseIP(host) != nil {
				host = cmp.Or(serverName, host)
			}
			secured := &tls.Dialer{NetDialer: dialer, Config: &tls.Config{RootCAs: roots, ServerName: host, MinVersion: tls.VersionTLS12}}
			ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
			defer cancel()
			return secured.DialContext(ctx, network, addr)
		},
	}}, nil
}

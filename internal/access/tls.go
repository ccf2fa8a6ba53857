package access

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"
)

// TLS names the files that one end of TLS connections needs, in PEM. The zero
// value is no TLS.
type TLS struct {
	CertFile          string       // our certificate, and those between it and its authority
	KeyFile           string       // its key
	CAFile            string       // the authorities whose certificates peers must have; "": the system's
	RequireClientCert bool         // serve only clients with a certificate of CAFile
	ServerName        string       // the name that servers' certificates must have; "": the host that is dialled
	Log               *slog.Logger // nil: nothing is logged

	lookEvery time.Duration // of tests; 0: a second
}

// Server is for listeners. It follows the files, as Client does.
func (t TLS) Server() (*tls.Config, error) {
	if t.CertFile == "" {
		return nil, errors.New("access: a TLS listener needs a certificate: set tls.cert_file and tls.key_file")
	}
	own, err := t.certificate()
	if err != nil {
		return nil, err
	}
	config := &tls.Config{
		MinVersion:     tls.VersionTLS12,
		NextProtos:     []string{"http/1.1"}, // some proxies insist; what is not HTTP asks for none
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return own.get(), nil },
	}
	if !t.RequireClientCert {
		return config, nil
	}
	if t.CAFile == "" {
		return nil, errors.New("access: client certificates cannot be verified without their authority: set tls.ca_file")
	}
	roots, err := t.authorities()
	if err != nil {
		return nil, err
	}
	config.ClientAuth = tls.RequireAndVerifyClientCert
	config.ClientCAs = roots.get()       // without it a copy that has lost its hooks would trust the system's
	config.SessionTicketsDisabled = true // a ticket readmits its client without a certificate
	config.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
		now := config.Clone()
		now.ClientCAs = roots.get()
		return now, nil
	}
	return config, nil
}

// Client is for the dialling side. With a CAFile and no ServerName it refuses to dial an IP
// address, since the standard library does not tell it which; Dialer can.
func (t TLS) Client() (*tls.Config, error) {
	forHost, err := t.client()
	if err != nil {
		return nil, err
	}
	return forHost(""), nil
}

// client makes configurations for hosts, "" standing for the one that the
// configuration's user puts there as its ServerName.
func (t TLS) client() (forHost func(host string) *tls.Config, err error) {
	base := &tls.Config{MinVersion: tls.VersionTLS12}
	if t.CertFile != "" {
		own, err := t.certificate()
		if err != nil {
			return nil, err
		}
		base.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return own.get(), nil }
	}
	var roots *file[*x509.CertPool]
	if t.CAFile != "" {
		if roots, err = t.authorities(); err != nil {
			return nil, err
		}
	}
	return func(host string) *tls.Config {
		config, name := base.Clone(), cmp.Or(t.ServerName, host)
		config.ServerName = name
		if roots != nil {
			// The library would hold servers to the authorities of now forever.
			config.InsecureSkipVerify = true
			config.VerifyConnection = func(state tls.ConnectionState) error {
				return verify(state, roots.get(), cmp.Or(name, state.ServerName))
			}
		}
		return config
	}, nil
}

// Expiry is when our certificate ends; zero where there is none that can be read.
func (t TLS) Expiry() time.Time {
	if t.CertFile == "" {
		return time.Time{}
	}
	own, err := t.certificate()
	if err != nil {
		return time.Time{}
	}
	return own.get().Leaf.NotAfter
}

// ListenHTTP2 is Listen for connections that speak HTTP/2, as gRPC's do.
func (t TLS) ListenHTTP2(ln net.Listener) (net.Listener, error) { return t.listen(ln, "h2") }

// Listen wraps ln so that its connections speak TLS, if there is a certificate.
// They shake hands when they are first read from.
func (t TLS) Listen(ln net.Listener) (net.Listener, error) { return t.listen(ln, "http/1.1") }

// listen offers a protocol, which some proxies insist on; clients that are not HTTP ask for none.
func (t TLS) listen(ln net.Listener, protocol string) (net.Listener, error) {
	if t.CertFile == "" && !t.RequireClientCert {
		return ln, nil
	}
	config, err := t.Server()
	if err != nil {
		return nil, err
	}
	config.NextProtos = []string{protocol}
	return tls.NewListener(ln, config), nil
}

// dialWithin bounds the wait for a connection, the TLS handshake included.
const dialWithin = 2 * time.Second

// Dialer reaches a host:port over TCP, and over TLS if there is a certificate or
// an authority.
func (t TLS) Dialer() (func(ctx context.Context, addr string) (net.Conn, error), error) {
	if t.CertFile == "" && t.CAFile == "" {
		return dialTCP, nil
	}
	forHost, err := t.client()
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, addr string) (net.Conn, error) {
		host, _, err := net.SplitHostPort(addr)
		if err != nil {
			return nil, fmt.Errorf("access: dial: %w", err)
		}
		ctx, cancel := context.WithTimeout(ctx, dialWithin)
		defer cancel()
		raw, err := dialTCP(ctx, addr)
		if err != nil {
			return nil, err
		}
		conn := tls.Client(raw, forHost(host))
		if err := conn.HandshakeContext(ctx); err != nil {
			raw.Close()
			return nil, fmt.Errorf("access: TLS handshake with %s: %w", addr, err)
		}
		return conn, nil
	}, nil
}

func dialTCP(ctx context.Context, addr string) (net.Conn, error) {
	dialer := net.Dialer{Timeout: dialWithin}
	return dialer.DialContext(ctx, "tcp", addr)
}

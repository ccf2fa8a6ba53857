package access

import (
	"bytes"
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"time"
)

// certificate opens our own certificate with its key.
func (t TLS) certificate() (*file[*tls.Certificate], error) {
	if t.KeyFile == "" {
		return nil, errors.New("access: a certificate needs its key: set tls.key_file")
	}
	return follow(t, parseCertificate, source{path: t.CertFile}, source{path: t.KeyFile, secret: true})
}

// follow opens files of t.
func follow[T any](t TLS, parse func(contents [][]byte) (T, error), sources ...source) (*file[T], error) {
	f, err := open(t.Log, parse, sources...)
	f.every = cmp.Or(t.lookEvery, f.every)
	return f, err
}

func parseCertificate(contents [][]byte) (*tls.Certificate, error) {
	own, err := tls.X509KeyPair(contents[0], contents[1])
	if err != nil {
		return nil, fmt.Errorf("it and its key cannot be used: %w; both must be PEM, and belong together", err)
	}
	if end := own.Leaf.NotAfter; time.Now().After(end) {
		return nil, fmt.Errorf("the certificate expired at %s: replace it and its key", end.Format(time.RFC3339))
	}
	return &own, nil
}

// authorities opens the certificates that those of peers must descend from.
func (t TLS) authorities() (*file[*x509.CertPool], error) {
	return follow(t, parseAuthorities, source{path: t.CAFile})
}

// parseAuthorities takes all or nothing: a file that is cut while it is written
// must not lock out half of the peers.
func parseAuthorities(contents [][]byte) (*x509.CertPool, error) {
	pool, count, rest := x509.NewCertPool(), 0, contents[0]
	for {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		if block.Type != "CERTIFICATE" {
			continue
		}
		count++
		authority, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("certificate %d: %w", count, err)
		}
		pool.AddCert(authority)
	}
	if bytes.Contains(rest, []byte("-----BEGIN")) {
		return nil, fmt.Errorf("it is truncated or damaged after certificate %d", count)
	}
	if count == 0 {
		return nil, errors.New("it contains no certificate: it must contain those of your authorities, in PEM")
	}
	return pool, nil
}

// verify holds a server to the authorities and to its name.
func verify(server tls.ConnectionState, roots *x509.CertPool, name string) error {
	if name == "" {
		return errors.New("access: the server was dialled by its IP address, without the name that its certificate must have: set the server name, or dial it by name")
	}
	chain := x509.VerifyOptions{Roots: roots, DNSName: name, Intermediates: x509.NewCertPool()}
	for _, between := range server.PeerCertificates[1:] {
		chain.Intermediates.AddCert(between)
	}
	if _, err := server.PeerCertificates[0].Verify(chain); err != nil {
		return fmt.Errorf("%w; %s", &tls.CertificateVerificationError{UnverifiedCertificates: server.PeerCertificates, Err: err}, advice(err, name))
	}
	return nil
}

// advice is what to do about a server's certificate.
func advice(err error, name string) string {
	if invalid, ok := errors.AsType[x509.CertificateInvalidError](err); ok && invalid.Reason == x509.Expired {
		return "renew the certificate of " + name + ", or set the clock"
	}
	if _, ok := errors.AsType[x509.UnknownAuthorityError](err); ok {
		return "tls.ca_file does not contain the authority that signed the certificate of " + name
	}
	if _, ok := errors.AsType[x509.HostnameError](err); ok {
		return "put this name into the server's certificate, or set the server name to one that it has"
	}
	return "look at the certificate of " + name
}

package access

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
)

// Listener is an address with what closes it to strangers.
type Listener struct {
	Setting   string // the setting of the address, such as gateway.addr
	Addr      string
	Encrypted bool   // TLS is spoken there, by us or by a proxy or mesh in front
	Closed    bool   // clients show a key, a token or a certificate
	How       string // the settings that would close it
}

// Guard says everything why an address must not be served: others than this machine reach it,
// and strangers could ask there or listen in.
func Guard(l Listener) error {
	if IsLoopback(l.Addr) {
		return nil
	}
	var errs []error
	if !l.Closed {
		errs = append(errs, fmt.Errorf("%s is %q, which is not a loopback address, and anyone could use it: set %s", l.Setting, l.Addr, l.How))
	}
	if !l.Encrypted {
		errs = append(errs, fmt.Errorf("%s is %q, which is not a loopback address, and nothing encrypts what is sent there: set tls.cert_file and tls.key_file, or tls.external when a proxy or a mesh does", l.Setting, l.Addr))
	}
	return errors.Join(errs...)
}

// IsLoopback says whether only this machine can reach addr, a host:port. An address without a host
// is every interface, and a name other than localhost may come to be anything.
func IsLoopback(addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return false
	}
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.Unmap().IsLoopback()
}

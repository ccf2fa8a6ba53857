package config

import (
	"fmt"
	"net"
	"net/netip"
	"strconv"
)

// IsLoopback tells whether only this machine can reach addr, a host:port. An
// address without a host is every interface, and a name other than localhost
// may come to be anything, so both are not.
func IsLoopback(addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return false
	}
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}

// checkAddr continues a sentence that begins with the name of the key. The use of
// the address is "any" to reach it, "listen", or "loopback" to listen there only.
func checkAddr(addr, use string) error {
	host, port, err := net.SplitHostPort(addr)
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	switch {
	case err != nil || host == "" && use == "any":
		return fmt.Errorf("must be host:port, such as 127.0.0.1:7001, not %q", addr)
	case use == "loopback" && !IsLoopback(addr):
		return fmt.Errorf("is %q, and must be a loopback address, such as 127.0.0.1:7001", addr)
	}
	return nil
}

// listener is an address with what closes it to strangers.
type listener struct {
	key    string // of the address
	addr   string
	closed bool
	how    string // to close it
}

// listeners holds every address that others than this machine can reach to its
// rule: nobody may ask there without a key, a token or a certificate, and what is
// sent is encrypted.
func (l *loader) listeners() {
	o := &l.doc.Options
	mutual := o.TLS.CAFile != ""
	for _, one := range []listener{
		{"gateway.addr", o.Gateway.Addr, o.Gateway.KeysFile != "" || mutual && o.Gateway.RequireClientCert, "gateway.keys_file, or gateway.require_client_cert with tls.ca_file"},
		{"web.addr", o.Web.Addr, o.Web.KeysFile != "" || mutual && o.Web.RequireClientCert, "web.keys_file, or web.require_client_cert with tls.ca_file"},
		{"ops.addr", o.Ops.Addr, o.Ops.KeysFile != "", "ops.keys_file"},
		{"sidecar.addr", o.Sidecar.Addr, o.Sidecar.TokenFile != "" || mutual, "sidecar.token_file, or tls.ca_file for mutual TLS"},
	} {
		if err := checkAddr(one.addr, "listen"); err != nil || IsLoopback(one.addr) {
			continue // reported already, or safe
		}
		if !one.closed {
			l.disagree(one.key, "%s is %q, which is not a loopback address, and anybody could ask there: set %s", one.key, one.addr, one.how)
		}
		if o.TLS.CertFile == "" && !o.TLS.External {
			l.disagree(one.key, "%s is %q, which is not a loopback address, and nothing encrypts what is sent there: set tls.cert_file and tls.key_file, or tls.external when a proxy or a mesh does", one.key, one.addr)
		}
	}
	switch {
	case (o.TLS.CertFile == "") != (o.TLS.KeyFile == ""):
		l.disagree("tls.cert_file", "tls.cert_file and tls.key_file go together: set both")
	case o.TLS.CAFile != "" && o.TLS.CertFile == "":
		l.disagree("tls.ca_file", "tls.ca_file asks peers for certificates, and this process has none: set tls.cert_file and tls.key_file")
	case (o.Gateway.RequireClientCert || o.Web.RequireClientCert) && !mutual:
		l.disagree("gateway.require_client_cert", "require_client_cert needs tls.ca_file, the certificates to hold clients to")
	}
}

// disagree reports settings that do not go together, at the key in the file where
// that is what set it.
func (l *loader) disagree(key, format string, args ...any) {
	if _, written := l.file.offsets[key]; written && l.sources[key] == l.file.source(key) {
		l.wrong(key, format, args...)
		return
	}
	l.refuse(fmt.Errorf(format, args...))
}

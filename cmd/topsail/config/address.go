package config

import (
	"fmt"
	"net"
	"strconv"

	"github.com/topsail-serving/topsail/internal/access"
)

// checkAddr continues a sentence that begins with the name of the key. The use of
// the address is "any" to reach it, "listen", "loopback" to listen there only, or "optional" to listen,
// or not.
func checkAddr(addr, use string) error {
	if use == "optional" && (addr == "" || addr == noAddr) {
		return nil
	}
	host, port, err := net.SplitHostPort(addr)
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	switch {
	case err != nil || host == "" && use == "any":
		return fmt.Errorf("must be host:port, such as 127.0.0.1:7001, not %q", addr)
	case use == "loopback" && !access.IsLoopback(addr):
		return fmt.Errorf("is %q, and must be a loopback address, such as 127.0.0.1:7001", addr)
	}
	return nil
}

// listeners holds every address that other machines can reach to its rule: requests need a key, a
// token or a certificate, and are encrypted.
func (l *loader) listeners() {
	o := &l.doc.Options
	mutual := o.TLS.CAFile != ""
	encrypted := o.TLS.CertFile != "" || o.TLS.External
	for _, one := range []access.Listener{
		{Setting: "gateway.addr", Addr: o.Gateway.Addr, Closed: o.Gateway.KeysFile != "" || o.Gateway.RequireKeys || mutual && o.Gateway.RequireClientCert, How: "gateway.keys_file or gateway.require_keys, or gateway.require_client_cert with tls.ca_file"},
		{Setting: "gateway.grpc_addr", Addr: o.Gateway.GRPCAddr, Closed: o.Gateway.KeysFile != "" || o.Gateway.RequireKeys || mutual && o.Gateway.RequireClientCert, How: "gateway.keys_file or gateway.require_keys, or gateway.require_client_cert with tls.ca_file"},
		{Setting: "web.addr", Addr: o.Web.Addr, Closed: o.Web.KeysFile != "" || o.Web.RequireKeys || mutual && o.Web.RequireClientCert, How: "web.keys_file or web.require_keys, or web.require_client_cert with tls.ca_file"},
		{Setting: "ops.addr", Addr: o.Ops.Addr, Closed: o.Ops.KeysFile != "", How: "ops.keys_file"},
		{Setting: "sidecar.addr", Addr: o.Sidecar.Addr, Closed: o.Sidecar.TokenFile != "" || mutual, How: "sidecar.token_file, or tls.ca_file for mutual TLS"},
	} {
		one.Encrypted = encrypted
		if checkAddr(one.Addr, "listen") != nil {
			continue // reported already
		}
		for _, err := range parts(access.Guard(one)) {
			l.disagree(one.Setting, "%w", err)
		}
	}
	switch {
	case (o.TLS.CertFile == "") != (o.TLS.KeyFile == ""):
		l.disagree("tls.cert_file", "tls.cert_file and tls.key_file go together: set both")
	case o.TLS.CAFile != "" && o.TLS.CertFile == "":
		l.disagree("tls.ca_file", "tls.ca_file requires certificates of both sides, and this process has none: set tls.cert_file and tls.key_file")
	case (o.Gateway.RequireClientCert || o.Web.RequireClientCert) && !mutual:
		l.disagree("gateway.require_client_cert", "require_client_cert needs tls.ca_file, the authorities of the clients' certificates")
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

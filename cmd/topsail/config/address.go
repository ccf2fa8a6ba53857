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

// checkAddr continues a sentence that begins with the name of the key.
func checkAddr(addr string, loopback bool) error {
	host, port, err := net.SplitHostPort(addr)
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	switch {
	case err != nil || host == "" && !loopback:
		return fmt.Errorf("must be host:port, such as 127.0.0.1:7001, not %q", addr)
	case loopback && !IsLoopback(addr):
		return fmt.Errorf("is %q, which is not a loopback address; keys and TLS for other addresses come with cluster mode; until then put a proxy in front", addr)
	}
	return nil
}

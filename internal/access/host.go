package access

import (
	"encoding/json"
	"net"
	"net/http"
	"net/netip"
	"strings"
)

// Hosts are the names and addresses by which a listener that asks for no keys may be called, in
// addition to localhost and loopback addresses. Another name may have been made to point here by a
// page of another site, which could read the answer.
type Hosts []string

// HostOf is the host of an address that is listened on; none where it is every interface.
func HostOf(addr string) Hosts {
	if host, _, err := net.SplitHostPort(addr); err == nil && host != "" {
		return Hosts{host}
	}
	return nil
}

// Has says whether a Host header names one of them.
func (h Hosts) Has(hostport string) bool {
	host, _, err := net.SplitHostPort(hostport)
	if err != nil {
		host = strings.TrimSuffix(strings.TrimPrefix(hostport, "["), "]")
	}
	if ip, err := netip.ParseAddr(host); err == nil && ip.Unmap().IsLoopback() {
		return true
	}
	for _, known := range append([]string{"localhost"}, h...) {
		if host != "" && strings.EqualFold(strings.TrimSuffix(host, "."), known) {
			return true
		}
	}
	return false
}

// Handler refuses requests by other names before next.
func (h Hosts) Handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if h.Has(r.Host) {
			next.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusForbidden)
		// A client that left needs no answer.
		_ = json.NewEncoder(w).Encode(map[string]string{"error": "Forbidden",
			"cause": "without keys, this port answers only at localhost and its listen address: use one of these, or set a file of keys"})
	})
}

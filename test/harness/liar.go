package harness

import (
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
)

// Liar stands between the gateways and Consul, and can say once that there are no
// sidecars.
type Liar struct {
	*httputil.ReverseProxy
	Lie atomic.Bool // once
}

func newLiar(consul string) *Liar {
	target := &url.URL{Scheme: "http", Host: consul}
	l := &Liar{ReverseProxy: httputil.NewSingleHostReverseProxy(target)}
	l.ErrorHandler = func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) }
	return l
}

func (l *Liar) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if strings.Contains(r.URL.Path, "/health/service/topsail-sidecar") && l.Lie.CompareAndSwap(true, false) {
		w.Header().Set("X-Consul-Index", "1000000")
		w.Header().Set("X-Consul-Knownleader", "true")
		w.Header().Set("X-Consul-Lastcontact", "0")
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte("[]"))
		return
	}
	l.ReverseProxy.ServeHTTP(w, r)
}

// listen serves the liar until the listener is closed.
func (l *Liar) listen() (net.Listener, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	go func() { _ = http.Serve(ln, l) }()
	return ln, nil
}

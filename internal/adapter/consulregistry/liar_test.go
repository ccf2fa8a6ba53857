//go:build servers

package consulregistry

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync"
	"testing"
)

// liar stands before the real Consul, and answers for it when it has a lie.
type liar struct {
	*httptest.Server
	mu  sync.Mutex // guards lie
	lie http.HandlerFunc
}

func newLiar(t *testing.T) *liar {
	l := &liar{}
	truth := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: shared.Addr})
	l.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		l.mu.Lock()
		lie := l.lie
		l.mu.Unlock()
		if lie != nil {
			lie(w, r)
			return
		}
		truth.ServeHTTP(w, r)
	}))
	t.Cleanup(func() { l.CloseClientConnections(); l.Close() })
	return l
}

// tell lies from the next request on, and ends the one that is open.
func (l *liar) tell(lie http.HandlerFunc) {
	l.mu.Lock()
	l.lie = lie
	l.mu.Unlock()
	l.CloseClientConnections()
}

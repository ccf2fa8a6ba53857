package obs

import (
	"container/list"
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
)

// spare is how many connections there may be beyond the limit, when all are being answered. They
// get an error, or the health of the process.
const spare = 16

// connections are those of one listener that are open, so that their number is bounded.
type connections struct {
	net.Listener
	limit      int
	idle, full Counter
	log        *slog.Logger

	mu      sync.Mutex // guards the following
	open    map[net.Conn]*tracked
	waiting *list.List // of the net.Conn that wait for a request or have never sent one, the longest first
	warned  time.Time
}

// tracked is what a connection has here.
type tracked struct {
	conn  net.Conn
	waits *list.Element // in waiting; nil while it is being answered
	over  bool          // its request is one more than are answered; belongs to its goroutine
}

func newConnections(l Listener) *connections {
	closed := l.Metrics.SharedCounters("topsail_http_connections_closed_total",
		"Connections to the management and ops ports that were closed because there were too many: idle (it waited longest), full (all others were being answered).", "listener", "reason")
	return &connections{
		Listener: l.Listener, limit: l.MaxConnections, log: l.Log.With("listener", l.Name),
		idle: closed.WithLabelValues(l.Name, "idle"), full: closed.WithLabelValues(l.Name, "full"),
		open: map[net.Conn]*tracked{}, waiting: list.New(),
	}
}

// Accept returns the next connection that there is room for.
func (c *connections) Accept() (net.Conn, error) {
	for {
		conn, err := c.Listener.Accept()
		if err != nil || c.take(conn) {
			return conn, err
		}
		cut(conn)
	}
}

// take makes room for a connection by closing what has waited longest for a request, or says
// that there is none.
func (c *connections) take(conn net.Conn) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	most := c.limit
	if c.answering() >= c.limit {
		most += spare
	}
	for len(c.open) >= most {
		c.warn()
		longest := c.waiting.Front()
		if longest == nil {
			c.full.Inc()
			return false
		}
		c.idle.Inc()
		old := longest.Value.(net.Conn)
		c.forget(old)
		cut(old)
	}
	c.open[conn] = &tracked{conn: conn, waits: c.waiting.PushBack(conn)}
	return true
}

// answering is how many connections have a request that is being answered. c.mu is held.
func (c *connections) answering() int { return len(c.open) - c.waiting.Len() }

// forget leaves a connection out. c.mu is held.
func (c *connections) forget(conn net.Conn) {
	if p := c.open[conn]; p != nil {
		if p.waits != nil {
			c.waiting.Remove(p.waits)
		}
		delete(c.open, conn)
	}
}

// track is the server's hook for changes of a connection's state.
func (c *connections) track(conn net.Conn, state http.ConnState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.open[conn]
	if p == nil { // it was closed for another
		return
	}
	switch state {
	case http.StateActive:
		if p.waits != nil {
			c.waiting.Remove(p.waits)
			p.waits = nil
		}
		p.over = c.answering() > c.limit
	case http.StateIdle:
		c.wait(p)
	case http.StateClosed, http.StateHijacked:
		c.forget(conn)
	case http.StateNew: // take has seen it
	}
}

// wait counts a connection among those that wait, as the last one. c.mu is held.
func (c *connections) wait(p *tracked) {
	if p.waits != nil {
		c.waiting.Remove(p.waits)
	}
	p.waits = c.waiting.PushBack(p.conn)
}

// answered counts a connection whose request has its answer, but not all of its body, among
// those that wait: what is left of the body may never come.
func (c *connections) answered(p *tracked, r *http.Request) {
	if body, ok := r.Body.(*pacedBody); !ok || body.over {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open[p.conn] == p {
		c.wait(p)
	}
}

// trackedKey finds what is tracked of a request's connection in its context.
type trackedKey struct{}

// know is the server's hook for the context of a connection's requests.
func (c *connections) know(ctx context.Context, conn net.Conn) context.Context {
	c.mu.Lock()
	defer c.mu.Unlock()
	if p := c.open[conn]; p != nil {
		return context.WithValue(ctx, trackedKey{}, p)
	}
	return ctx
}

// handler refuses what is more than can be answered at a time, but for questions about health.
func (c *connections) handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p, _ := r.Context().Value(trackedKey{}).(*tracked)
		if p != nil {
			defer c.answered(p, r)
		}
		if p == nil || !p.over || r.URL.Path == "/health" || strings.HasPrefix(r.URL.Path, "/health/") {
			next.ServeHTTP(w, r)
			return
		}
		c.full.Inc()
		w.Header().Set("Connection", "close")
		busy(w, "the connection limit is reached, and all connections are busy; send the request again in a second, or raise max_connections of this address")
	})
}

// warn logs at most once a minute, since clients decide how often it is called. c.mu is held.
func (c *connections) warn() {
	if now := time.Now(); now.Sub(c.warned) > time.Minute {
		c.warned = now
		c.log.Warn("the connection limit is reached, and connections that wait for a request are closed: raise max_connections if this is not an attack", "max_connections", c.limit)
	}
}

// cut ends a connection without a farewell. TLS would want to send one, and wait seconds for
// a client that does not read.
func cut(conn net.Conn) {
	if secure, ok := conn.(*tls.Conn); ok {
		conn = secure.NetConn()
	}
	conn.Close()
}

package httpapi

import (
	"errors"
	"log/slog"
	"net"
	"sync"
	"syscall"
	"time"

	"github.com/valyala/fasthttp"

	"topsail/gateway/budget"
	"topsail/internal/netio"
)

// listener knows its open connections, so that their number is bounded and none
// outlives the server. fasthttp has a bound of its own, but it answers those
// beyond it from the accept loop, where a TLS client that never ends its
// handshake would stop everybody.
type listener struct {
	net.Listener
	limit  int
	budget *budget.Budget
	log    *slog.Logger
	warned time.Time // when warn last did; belongs to Accept

	mu   sync.Mutex
	open map[*conn]struct{} // guarded by mu
	left sync.WaitGroup     // counts open
}

func newListener(ln net.Listener, limit int, b *budget.Budget, log *slog.Logger) *listener {
	return &listener{Listener: ln, limit: limit, budget: b, log: log, open: make(map[*conn]struct{})}
}

// Accept returns the next connection that is within the limit. When the process
// runs out of files it waits for some to be closed; fasthttp would give up.
func (l *listener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		switch {
		case errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) || errors.Is(err, syscall.ECONNABORTED):
			l.warn("cannot accept connections", "error", err)
			time.Sleep(20 * time.Millisecond)
		case err != nil:
			return nil, err
		case l.full():
			l.warn("connections are refused: raise max_connections if this is not an attack", "max_connections", l.limit)
			c.Close()
		default:
			return &conn{Conn: netio.Wrap(c), lease: l.budget.Lease()}, nil
		}
	}
}

// warn logs at most once a minute, since clients decide how often it is called.
func (l *listener) warn(message string, attrs ...any) {
	if now := time.Now(); now.Sub(l.warned) > time.Minute {
		l.warned = now
		l.log.Warn(message, attrs...)
	}
}

func (l *listener) full() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.open) >= l.limit
}

// track is fasthttp's hook for changes of a connection's state. A connection is
// closed when its goroutine is done with it.
func (l *listener) track(nc net.Conn, state fasthttp.ConnState) {
	switch state {
	case fasthttp.StateNew:
		l.mu.Lock()
		defer l.mu.Unlock()
		l.open[nc.(*conn)] = struct{}{}
		l.left.Add(1)
	case fasthttp.StateIdle:
		nc.(*conn).lease.Release()
	case fasthttp.StateClosed:
		nc.(*conn).lease.Release()
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.open, nc.(*conn))
		l.left.Done()
	}
}

// cutUnused closes the connections that no request has come on yet, for which
// fasthttp would wait as if one were in flight.
func (l *listener) cutUnused() { l.cut(func(c *conn) bool { return !c.used.Load() }) }

func (l *listener) cutAll() { l.cut(func(*conn) bool { return true }) }

func (l *listener) cut(which func(*conn) bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for c := range l.open {
		if which(c) {
			c.cut()
		}
	}
}

// wait returns when the goroutine of every connection is done. No more may come.
func (l *listener) wait() { l.left.Wait() }

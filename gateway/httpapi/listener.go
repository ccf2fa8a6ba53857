package httpapi

import (
	"cmp"
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/topsail-serving/topsail/internal/budget"
	"github.com/topsail-serving/topsail/internal/netio"
	"github.com/topsail-serving/topsail/internal/obs"
)

// listener knows its open connections, so that their number is bounded and none outlives the
// server. fasthttp has a bound of its own, but it answers those beyond it from the accept loop,
// where a TLS client that never ends its handshake would stop all others.
type listener struct {
	net.Listener
	limit      int // connections; beyond it those that wait are closed for new ones
	perAddress int // of them from one address; 0: any number
	budget     *budget.Budget
	bodies     *sync.Pool // of conn
	closed     [overs]obs.Counter
	log        *slog.Logger
	warned     time.Time // when warn last did; belongs to Accept

	mu   sync.Mutex
	open map[*conn]struct{} // guarded by mu
	from map[netip.Addr]int // guarded by mu: how many are open from an address; kept with perAddress alone
	left sync.WaitGroup     // counts open
}

// over is why a connection was closed that there was no room for.
type over int

const (
	overIdle    over = iota // it waited longest when another one came
	overAll                 // it came when all others were being answered
	overAddress             // it came from an address that has enough
	overs                   // how many there are
)

var overNames = [overs]string{"idle", "full", "address"}

// spare is how many connections there may be beyond the limit, when all are being answered. They
// get an error, or the health of the gateway.
const spare = 64

func (s *Server) newListener(ln net.Listener) *listener {
	l := &listener{
		Listener: ln, limit: s.config.MaxConnections, perAddress: s.config.MaxPerAddress, budget: s.config.Budget, bodies: &s.bodies, log: s.log,
		open: make(map[*conn]struct{}), from: make(map[netip.Addr]int),
	}
	for why, name := range overNames {
		l.closed[why] = s.connectionsClosed.WithLabelValues(name)
	}
	return l
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
		default:
			if taken := l.take(c); taken != nil {
				return taken, nil
			}
			c.Close()
		}
	}
}

// take makes room for a connection, by closing what has waited longest for a request, or
// returns nil.
func (l *listener) take(nc net.Conn) *conn {
	c := &conn{Conn: netio.Wrap(nc), lease: l.budget.Lease(), bodies: l.bodies, from: addressOf(nc)}
	c.waits.Store(time.Now().UnixNano())
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.perAddress > 0 && l.from[c.from] >= l.perAddress {
		l.closed[overAddress].Inc()
		l.warn("refusing connections from an address", "address", c.from, "max_connections_per_address", l.perAddress)
		return nil
	}
	if len(l.open) < l.limit {
		return c
	}
	l.warn("the connection limit is reached, and connections that wait for a request are closed: raise max_connections if this is not an attack", "max_connections", l.limit)
	c.spare = len(l.open)-l.cutWaiting() >= l.limit
	if len(l.open) < l.limit+spare {
		return c
	}
	l.closed[overAll].Inc()
	return nil
}

// cutWaiting closes some of the connections that have waited longest for a request, and says
// how many. l.mu is held.
func (l *listener) cutWaiting() int {
	type waiting struct {
		c     *conn
		since int64
	}
	var all []waiting
	for c := range l.open {
		if since := c.waits.Load(); since > 0 {
			all = append(all, waiting{c, since})
		}
	}
	slices.SortFunc(all, func(a, b waiting) int { return cmp.Compare(a.since, b.since) })
	// Some at once, since to look for them takes time.
	all = all[:min(len(all), max(1+l.limit/spare, len(l.open)+1-l.limit))]
	for _, w := range all {
		if w.c.waits.CompareAndSwap(w.since, 0) { // else a request has arrived
			w.c.cut()
			l.closed[overIdle].Inc()
		}
	}
	return len(all)
}

// addressOf is where a connection comes from: of IPv6 the network, which is one client's.
func addressOf(c net.Conn) netip.Addr {
	tcp, ok := c.RemoteAddr().(*net.TCPAddr)
	if !ok {
		return netip.Addr{}
	}
	addr := tcp.AddrPort().Addr().Unmap()
	if addr.Is6() {
		network, _ := addr.WithZone("").Prefix(64) // 64 bits are not too many
		return network.Addr()
	}
	return addr
}

// warn logs at most once a minute, since clients decide how often it is called.
func (l *listener) warn(message string, attrs ...any) {
	if now := time.Now(); now.Sub(l.warned) > time.Minute {
		l.warned = now
		l.log.Warn(message, attrs...)
	}
}

// track is fasthttp's hook for changes of a connection's state. A connection is
// closed when its goroutine is done with it.
func (l *listener) track(nc net.Conn, state fasthttp.ConnState) {
	switch state {
	case fasthttp.StateNew:
		l.mu.Lock()
		defer l.mu.Unlock()
		c := nc.(*conn)
		l.open[c] = struct{}{}
		if l.perAddress > 0 {
			l.from[c.from]++
		}
		l.left.Add(1)
	case fasthttp.StateIdle:
		c := nc.(*conn)
		c.finish()
		c.waits.Store(time.Now().UnixNano())
	case fasthttp.StateClosed:
		c := nc.(*conn)
		c.finish()
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.open, c)
		if l.perAddress > 0 {
			if l.from[c.from]--; l.from[c.from] == 0 {
				delete(l.from, c.from)
			}
		}
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

package httpapi

import (
	"net"

	"github.com/valyala/fasthttp"

	"github.com/topsail-serving/topsail/internal/connlimit"
	"github.com/topsail-serving/topsail/internal/netio"
)

// spare is how many connections there may be beyond the limit, when all are being answered. They
// get an error, or the health of the gateway.
const spare = 64

// listener knows its open connections, so that their number is bounded and none outlives the
// server. fasthttp has a bound of its own, but it answers those beyond it from the accept loop,
// where a TLS client that never ends its handshake would stop all others.
type listener struct {
	*connlimit.Listener[*conn]
}

func (s *Server) newListener(ln net.Listener) listener {
	return listener{connlimit.New(ln, connlimit.Config{
		Most: s.config.MaxConnections, Spare: spare, PerAddress: s.config.MaxPerAddress,
		Closed: s.countClosed, Log: s.log,
	}, s.newConn)}
}

func (s *Server) countClosed(why connlimit.Reason) {
	s.connectionsClosed.WithLabelValues(string(why)).Inc()
}

func (s *Server) newConn(nc net.Conn, place *connlimit.Place) *conn {
	return &conn{Conn: netio.Wrap(nc), place: place, lease: s.config.Budget.Lease(), bodies: &s.bodies}
}

// track is fasthttp's hook for changes of a connection's state. A connection is
// closed when its goroutine is done with it.
func (l listener) track(nc net.Conn, state fasthttp.ConnState) {
	c := nc.(*conn)
	switch state {
	case fasthttp.StateIdle:
		c.finish()
		c.place.Wait()
	case fasthttp.StateClosed:
		c.finish()
		l.Release(c)
	}
}

// cutUnused closes the connections that no request has come on yet, for which
// fasthttp would wait as if one were in flight.
func (l listener) cutUnused() { l.CutAll(func(c *conn) bool { return !c.used.Load() }) }

func (l listener) cutAll() { l.CutAll(func(*conn) bool { return true }) }

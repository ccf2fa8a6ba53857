package obs

import (
	"context"
	"net"
	"net/http"
	"strings"

	"github.com/topsail-serving/topsail/internal/connlimit"
)

// spare is how many connections there may be beyond the limit, when all are being answered. They
// get an error, or the health of the process.
const spare = 16

// connections are those of one listener that are open, so that their number is bounded.
type connections struct {
	*connlimit.Listener[net.Conn]
	count func(connlimit.Reason)
}

func newConnections(l Listener) connections {
	closed := l.Metrics.SharedCounters("topsail_http_connections_closed_total",
		"Connections to the management and ops ports that were closed because there were too many: idle (it waited longest), full (all others were being answered).", "listener", "reason")
	count := func(why connlimit.Reason) { closed.WithLabelValues(l.Name, string(why)).Inc() }
	for _, why := range []connlimit.Reason{connlimit.Idle, connlimit.Full} {
		closed.WithLabelValues(l.Name, string(why)) // it is shown from the start
	}
	return connections{connlimit.New(l.Listener, connlimit.Config{
		Most: l.MaxConnections, Spare: spare, Closed: count, Log: l.Log.With("listener", l.Name),
	}, func(c net.Conn, _ *connlimit.Place) net.Conn { return c }), count}
}

// track is the server's hook for changes of a connection's state.
func (c connections) track(conn net.Conn, state http.ConnState) {
	place := c.Place(conn)
	if place == nil { // HTTP/2 may say more of a connection that is closed
		return
	}
	switch state {
	case http.StateActive:
		place.Busy()
	case http.StateIdle:
		place.Wait()
	case http.StateClosed, http.StateHijacked:
		c.Release(conn)
	case http.StateNew: // it waits
	}
}

// placeKey finds the place of a request's connection in its context.
type placeKey struct{}

// know is the server's hook for the context of a connection's requests.
func (c connections) know(ctx context.Context, conn net.Conn) context.Context {
	return context.WithValue(ctx, placeKey{}, c.Place(conn))
}

// handler refuses what is more than can be answered at a time, but for questions about health.
func (c connections) handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		place := r.Context().Value(placeKey{}).(*connlimit.Place)
		defer func() {
			if body, ok := r.Body.(*pacedBody); ok && !body.over {
				place.Wait() // for what is left of the body, which may never come
			}
		}()
		if !place.Spare || r.URL.Path == "/health" || strings.HasPrefix(r.URL.Path, "/health/") {
			next.ServeHTTP(w, r)
			return
		}
		c.count(connlimit.Full)
		w.Header().Set("Connection", "close")
		busy(w, "the connection limit is reached, and all connections are busy; send the request again in a second, or raise max_connections of this address")
	})
}

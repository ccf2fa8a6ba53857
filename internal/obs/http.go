package obs

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"time"
)

// shutdownWithin bounds the wait for requests in progress when a server stops.
const shutdownWithin = 2 * time.Second

// Listener is where a process serves HTTP to people and programs that run it. A bound that is
// zero takes the default that stands beside it.
type Listener struct {
	net.Listener
	Name           string       // in metrics and in the log; "ops"
	MaxConnections int          // open at a time, idle ones included; 256
	Metrics        *Registry    // nil: metrics are kept and shown nowhere
	Log            *slog.Logger // nil: nothing is logged
}

func (l Listener) withDefaults() Listener {
	l.Name = cmp.Or(l.Name, "ops")
	l.MaxConnections = cmp.Or(l.MaxConnections, 256)
	if l.Metrics == nil {
		l.Metrics = NewRegistry()
	}
	if l.Log == nil {
		l.Log = slog.New(slog.DiscardHandler)
	}
	return l
}

// ServeHTTP serves h until ctx ends, over TLS if l does. Clients that stall are cut off, and
// beyond the limit of connections those that have waited longest for a request.
func ServeHTTP(ctx context.Context, l Listener, h http.Handler) error {
	l = l.withDefaults()
	open := newConnections(l)
	server := &http.Server{
		Handler: deadlines(open.handler(h)), ReadHeaderTimeout: 5 * time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: 64 << 10,
		ConnState: open.track, ConnContext: open.know, ErrorLog: log.New(faults{log.Writer()}, "", log.LstdFlags),
	}
	stopped := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(stopped)
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownWithin)
		defer cancel()
		if server.Shutdown(ctx) != nil {
			server.Close()
		}
	})
	err := server.Serve(open)
	if !stop() {
		<-stopped
	}
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// faults is where the server reports panics and the like. It leaves out clients that do not speak
// TLS, since any client can cause these, at any rate.
type faults struct{ to io.Writer }

func (f faults) Write(line []byte) (int, error) {
	if bytes.Contains(line, []byte("http: TLS handshake error")) {
		return len(line), nil
	}
	return f.to.Write(line)
}

// busy answers what can be sent again in a second, in the form of RFC 9457.
func busy(w http.ResponseWriter, detail string) {
	text, _ := json.Marshal(map[string]any{ // texts and a number always marshal
		"type": "about:blank", "title": http.StatusText(http.StatusServiceUnavailable), "status": http.StatusServiceUnavailable, "detail": detail, "code": "busy",
	})
	h := w.Header()
	h.Set("Content-Type", "application/problem+json")
	h.Set("Cache-Control", "no-store")
	h.Set("Retry-After", "1")
	w.WriteHeader(http.StatusServiceUnavailable)
	_, _ = w.Write(append(text, '\n')) // a client that left needs no answer
}

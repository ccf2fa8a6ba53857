package obs

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/pprof"
	"strings"
	"time"
)

// shutdownWithin bounds the wait for requests in hand when a server stops.
const shutdownWithin = 2 * time.Second

// Health says what is wrong with a process.
type Health struct {
	Ready func() error // why it cannot do its work now, or nil
	Live  func() error // why it had better be started anew, or nil; when nil, it never had
	// Conditions are what is not as it should be, though the process does its work, or nil;
	// when nil, there never are any. They are told with its readiness.
	Conditions func() error
}

func (h Health) conditions() error {
	if h.Conditions == nil {
		return nil
	}
	return h.Conditions()
}

func (h Health) live() error {
	if h.Live == nil {
		return nil
	}
	return h.Live()
}

// Page is what a role shows to operators beside what all have.
type Page struct {
	Path    string
	Handler http.Handler // of GET
}

// ServeOps serves what operators ask for until ctx ends: /metrics, /health/live,
// /health/ready, /debug/pprof and the role's own pages.
// protect wraps everything but health, which load balancers and agents check
// without credentials; nil leaves it open.
func ServeOps(ctx context.Context, ln net.Listener, r *Registry, h Health, protect func(http.Handler) http.Handler, pages ...Page) error {
	return ServeHTTP(ctx, ln, opsHandler(r, h, protect, pages...))
}

func opsHandler(r *Registry, h Health, protect func(http.Handler) http.Handler, pages ...Page) http.Handler {
	if protect == nil {
		protect = func(h http.Handler) http.Handler { return h }
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /health/live", func(w http.ResponseWriter, _ *http.Request) { health(w, h.live(), nil) })
	mux.HandleFunc("GET /health/ready", func(w http.ResponseWriter, _ *http.Request) { health(w, h.Ready(), h.conditions()) })
	mux.Handle("GET /metrics", protect(r.Handler()))
	mux.Handle("/debug/pprof/", protect(http.HandlerFunc(pprof.Index)))
	mux.Handle("/debug/pprof/cmdline", protect(http.HandlerFunc(pprof.Cmdline)))
	mux.Handle("/debug/pprof/profile", protect(http.HandlerFunc(pprof.Profile)))
	mux.Handle("/debug/pprof/symbol", protect(http.HandlerFunc(pprof.Symbol)))
	mux.Handle("/debug/pprof/trace", protect(http.HandlerFunc(pprof.Trace)))
	for _, page := range pages {
		mux.Handle("GET "+page.Path, protect(page.Handler))
	}
	return mux
}

func health(w http.ResponseWriter, why, conditions error) {
	answer := struct {
		Status     string   `json:"status"`
		Reason     string   `json:"reason,omitempty"`
		Conditions []string `json:"conditions,omitempty"`
	}{Status: "ok"}
	w.Header().Set("Content-Type", "application/json")
	if why != nil {
		w.WriteHeader(http.StatusServiceUnavailable)
		answer.Status, answer.Reason = "not ready", why.Error()
	}
	if conditions != nil {
		answer.Conditions = strings.Split(conditions.Error(), "\n") // as errors.Join has them
	}
	// A client that left needs no answer.
	_ = json.NewEncoder(w).Encode(answer)
}

// faults is where the server reports panics and the like. It leaves out clients that
// do not speak TLS with us, since anybody can be one, at any rate.
type faults struct{ to io.Writer }

func (f faults) Write(line []byte) (int, error) {
	if bytes.Contains(line, []byte("http: TLS handshake error")) {
		return len(line), nil
	}
	return f.to.Write(line)
}

// ServeHTTP serves h until ctx ends, over TLS if ln does.
func ServeHTTP(ctx context.Context, ln net.Listener, h http.Handler) error {
	server := &http.Server{
		Handler: h, ReadHeaderTimeout: 5 * time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: 64 << 10,
		ErrorLog: log.New(faults{log.Writer()}, "", log.LstdFlags),
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
	err := server.Serve(ln)
	if !stop() {
		<-stopped
	}
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

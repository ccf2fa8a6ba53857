package obs

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"net/http/pprof"
	"time"
)

// shutdownWithin bounds the wait for requests in hand when a server stops.
const shutdownWithin = 2 * time.Second

// ServeOps serves what operators ask for until ctx ends: /metrics, /health/live,
// /health/ready and /debug/pprof. ready says why the process is not ready, or nil.
func ServeOps(ctx context.Context, ln net.Listener, r *Registry, ready func() error) error {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", r.Handler())
	mux.HandleFunc("GET /health/live", func(w http.ResponseWriter, _ *http.Request) { health(w, nil) })
	mux.HandleFunc("GET /health/ready", func(w http.ResponseWriter, _ *http.Request) { health(w, ready()) })
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	return ServeHTTP(ctx, ln, mux)
}

func health(w http.ResponseWriter, why error) {
	answer := map[string]string{"status": "ok"}
	w.Header().Set("Content-Type", "application/json")
	if why != nil {
		w.WriteHeader(http.StatusServiceUnavailable)
		answer = map[string]string{"status": "not ready", "reason": why.Error()}
	}
	// A client that left needs no answer.
	_ = json.NewEncoder(w).Encode(answer)
}

// ServeHTTP serves h until ctx ends.
func ServeHTTP(ctx context.Context, ln net.Listener, h http.Handler) error {
	server := &http.Server{Handler: h, ReadHeaderTimeout: 5 * time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: 64 << 10}
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

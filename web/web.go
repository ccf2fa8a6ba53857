// Package web is the management side: the web UI, the management API, and Clipper's.
package web

import (
	"net/http"

	"github.com/topsail-serving/topsail/web/api"
	"github.com/topsail-serving/topsail/web/auth"
	"github.com/topsail-serving/topsail/web/clipper"
	"github.com/topsail-serving/topsail/web/inflight"
	"github.com/topsail-serving/topsail/web/ui"
)

// Config is what the management port serves, and to which callers.
type Config struct {
	Guard   *auth.Guard
	API     *api.API
	Clipper clipper.System
	Memory  *inflight.Memory // of requests and answers
}

// Handler serves the management port. Callers are identified here; the API and Clipper's know what
// each may do. GET /health and the files of the UI, which hold no secrets, need no key.
func Handler(cfg Config) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/api/v1/", cfg.API)
	mux.Handle("/admin/", clipper.Handler(cfg.Clipper))
	mux.Handle("/ui/", ui.Handler())
	mux.Handle("GET /{$}", http.RedirectHandler("/ui/", http.StatusFound))
	guarded := cfg.Guard.Handler(mux)
	outer := http.NewServeMux()
	outer.HandleFunc("GET /health", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"status":"ok"}`)) // a client that left needs no answer
	})
	outer.Handle("/", cfg.Memory.Handler(guarded))
	return outer
}

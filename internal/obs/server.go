package obs

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/pprof"
	"strings"
)

// atOnce is how many pages other than health are made at a time: they take memory, and clients
// may read them slowly.
const atOnce = 16

// Health says what is wrong with a process.
type Health struct {
	Ready func() error // why it cannot do its work now, or nil
	Live  func() error // why it had better be started anew, or nil; when nil, it never had
	// Conditions are the problems of a process that still does its work, or nil; when nil, there
	// never are any. They are shown with its readiness.
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

// Page is what a role shows to operators in addition to the common pages.
type Page struct {
	Path    string
	Handler http.Handler // of GET
}

// ServeOps serves what operators ask for until ctx ends: /metrics, /health/live,
// /health/ready, /debug/pprof and the role's own pages.
// protect wraps everything but health, which load balancers and agents check
// without credentials; nil leaves it open.
func ServeOps(ctx context.Context, l Listener, h Health, protect func(http.Handler) http.Handler, pages ...Page) error {
	l = l.withDefaults()
	return ServeHTTP(ctx, l, opsHandler(l.Metrics, h, protect, pages...))
}

func opsHandler(r *Registry, h Health, protect func(http.Handler) http.Handler, pages ...Page) http.Handler {
	if protect == nil {
		protect = func(h http.Handler) http.Handler { return h }
	}
	bounded := atMost(atOnce)
	open := func(h http.Handler) http.Handler { return protect(bounded(h)) }
	mux := http.NewServeMux()
	mux.HandleFunc("GET /health/live", func(w http.ResponseWriter, _ *http.Request) { health(w, h.live(), nil) })
	mux.HandleFunc("GET /health/ready", func(w http.ResponseWriter, _ *http.Request) { health(w, h.Ready(), h.conditions()) })
	mux.Handle("GET /metrics", open(r.Handler()))
	mux.Handle("/debug/pprof/", open(http.HandlerFunc(pprof.Index)))
	mux.Handle("/debug/pprof/cmdline", open(http.HandlerFunc(pprof.Cmdline)))
	mux.Handle("/debug/pprof/profile", open(http.HandlerFunc(pprof.Profile)))
	mux.Handle("/debug/pprof/symbol", open(http.HandlerFunc(pprof.Symbol)))
	mux.Handle("/debug/pprof/trace", open(http.HandlerFunc(pprof.Trace)))
	for _, page := range pages {
		mux.Handle("GET "+page.Path, open(page.Handler))
	}
	return mux
}

// atMost admits so many requests of all handlers at a time.
func atMost(n int) func(http.Handler) http.Handler {
	room := make(chan struct{}, n)
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			select {
			case room <- struct{}{}:
				defer func() { <-room }()
				next.ServeHTTP(w, r)
			default:
				busy(w, "too many pages are being read here; try again in a second")
			}
		})
	}
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

// Package web is the management side: what people see of the system, and the admin
// API by which they change it.
package web

import (
	"bytes"
	"context"
	_ "embed"
	"html/template"
	"maps"
	"net/http"
	"slices"
	"time"

	"topsail/internal/access"
	"topsail/serving"
	"topsail/web/clipper"
	"topsail/web/problem"
)

//go:embed status.html
var statusPage string

// System is what the pages show.
type System interface {
	Status() Status
	// Learned is what the policy of an app has learned for a user and a context, either
	// of which may be empty; serving.ErrUnknownApp says that there is no such app.
	Learned(ctx context.Context, app, user, about string) (*serving.Learning, error)
	// Store holds the catalog that administrators change.
	Store() clipper.Store
}

// Status is the system at one moment.
type Status struct {
	Gateway  string // its address
	Catalog  *serving.Catalog
	Replicas []Replica // by name
}

// Replica is one replica, as people want to know it.
type Replica struct {
	Name     string
	Models   []serving.ModelID // what it serves; none until it is ready
	State    string
	Reason   string // why its process ended last
	Restarts int
	PID      int
	InFlight int
	Latency  time.Duration
}

// Apps lists the apps by name.
func (s Status) Apps() []*serving.App {
	var list []*serving.App
	for _, name := range slices.Sorted(maps.Keys(s.Catalog.Apps)) {
		list = append(list, s.Catalog.Apps[name])
	}
	return list
}

// Versions lists the model versions by name and version.
func (s Status) Versions() []*serving.Version {
	var list []*serving.Version
	for _, name := range slices.Sorted(maps.Keys(s.Catalog.Models)) {
		m := s.Catalog.Models[name]
		for _, version := range slices.Sorted(maps.Keys(m.Versions)) {
			list = append(list, m.Versions[version])
		}
	}
	return list
}

// Current says whether v is the current version of its model.
func (s Status) Current(v *serving.Version) bool {
	return s.Catalog.Models[v.Model].Current == v.Version
}

// ready lists the replicas that serve.
func (s Status) ready() []serving.Endpoint {
	var list []serving.Endpoint
	for _, r := range s.Replicas {
		if len(r.Models) > 0 {
			list = append(list, serving.Endpoint{Replica: r.Name, Models: r.Models, Ready: true})
		}
	}
	return list
}

// Handler serves the management port. Everything but GET /health asks for a key,
// if there are keys.
func Handler(system System, keys *access.Keys) http.Handler {
	page := template.Must(template.New("status").Parse(statusPage))
	mux := http.NewServeMux()
	mux.Handle("GET /{$}", keys.Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		var b bytes.Buffer
		if err := page.Execute(&b, system.Status()); err != nil {
			http.Error(w, "the status page could not be made", http.StatusInternalServerError)
			return
		}
		h := w.Header()
		h.Set("Content-Type", "text/html; charset=utf-8")
		h.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'")
		h.Set("Cache-Control", "no-store")
		// A client that left needs no page.
		_, _ = w.Write(b.Bytes())
	})))
	mux.Handle("GET /api/v1/apps/{app}/learned", keys.Handler(learned(system)))
	mux.HandleFunc("GET /health", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"status":"ok"}`))
	})
	mux.Handle("/admin/", keys.Handler(ownOrigin(clipper.Handler(system.Store(), func() []serving.Endpoint { return system.Status().ready() }))))
	return mux
}

// ownOrigin refuses what another site's page has a browser send: on loopback without
// keys, that is all an attacker needs to change things.
func ownOrigin(next http.Handler) http.Handler {
	guard := http.NewCrossOriginProtection()
	guard.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		problem.Write(w, http.StatusForbidden, "Forbidden", "a page of another site cannot change anything here")
	}))
	return guard.Handler(next)
}

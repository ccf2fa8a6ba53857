package api

import (
	_ "embed"
	"encoding/json"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/topsail-serving/topsail/web/auth"
	"github.com/topsail-serving/topsail/web/change"
)

// Options are what the API needs besides the System.
type Options struct {
	// CheckBundle says why a bundle with this manifest cannot run here, such as for a
	// Python that there is not. Nil checks nothing.
	CheckBundle func(manifest json.RawMessage) error
	Now         func() time.Time // nil: time.Now
}

// API serves /api/v1. It takes the caller from the request's context, where the
// guard's Handler puts them: without that nothing is permitted.
type API struct {
	*api
	handler http.Handler
}

// ServeHTTP implements http.Handler.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) { a.handler.ServeHTTP(w, r) }

// api answers the requests.
type api struct {
	*System
	Options
	guard  *auth.Guard
	writer *change.Writer
	live   *live

	restoring sync.Mutex // one backup at a time
}

// New makes the API of a system.
func New(sys *System, guard *auth.Guard, options Options) *API {
	if options.Now == nil {
		options.Now = time.Now
	}
	a := &api{System: sys, Options: options, guard: guard, writer: change.New(sys.Store)}
	return &API{a, a.serving(slices.Concat(a.catalogRoutes(), a.liveRoutes()))}
}

//go:embed openapi.yaml
var contract []byte

func getOpenAPI(w http.ResponseWriter, _ *http.Request) error {
	w.Header().Set("Content-Type", "application/yaml")
	_, _ = w.Write(contract) // a client that left needs no answer
	return nil
}

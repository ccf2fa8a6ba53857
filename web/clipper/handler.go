// Package clipper serves Clipper's management API, /admin/*, with Clipper's
// requests, answers and sentences, so that its clients keep working. What differs
// on purpose is in docs/clipper.md.
package clipper

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/serving/catalog"
	"github.com/topsail-serving/topsail/web/auth"
	"github.com/topsail-serving/topsail/web/change"
	"github.com/topsail-serving/topsail/web/inflight"
	"github.com/topsail-serving/topsail/web/problem"
)

const (
	maxBody = 1 << 20          // bytes of a request
	within  = 10 * time.Second // bounds a change, waiting included
)

// System is what the requests are about. Its functions may be called concurrently, and
// what they return is only read.
type System struct {
	Store    change.Store
	Replicas func() []serving.Endpoint      // those there are now
	Check    func(v *serving.Version) error // says why a version cannot run here
}

// admin answers the requests.
type admin struct {
	System
	writer *change.Writer
}

// operation is one request with what it needs.
type operation struct {
	role serving.Role
	keys keys
	do   func(context.Context, request) (string, error)
}

// Handler serves /admin/* to callers that auth.Guard let in.
func Handler(system System) http.Handler {
	a := &admin{System: system, writer: change.New(system.Store)}
	operations := a.operations()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := strings.TrimPrefix(r.URL.Path, "/admin/")
		op, known := operations[name]
		switch {
		case name == "ping":
			if allowed(w, r, http.MethodGet) {
				respond(w, http.StatusOK, "PONG")
			}
		case !known:
			problem.Write(w, http.StatusNotFound, "Not found", "Clipper's management API has no such request")
		case allowed(w, r, http.MethodPost):
			auth.Needs(op.role, op).ServeHTTP(w, r)
		}
	})
}

func (a *admin) operations() map[string]operation {
	version := keys{{"model_name", isText}, {"model_version", isText}}
	links := keys{{"app_name", isText}, {"model_names", isTexts}}
	const viewer, operator, deployer = serving.RoleViewer, serving.RoleOperator, serving.RoleDeployer
	return map[string]operation{
		"add_app": {deployer, keys{{"name", isText}, {"input_type", isInputType}, {"default_output", isText},
			{"latency_slo_micros", isInt}}, a.addApp},
		"delete_app": {deployer, keys{{"name", isText}}, a.deleteApp},
		"add_model": {deployer, keys{{"model_name", isText}, {"model_version", isText}, {"labels", isTexts}, {"input_type", isInputType},
			{"container_name", isText}, {"model_data_path", isText}, {"batch_size", isInt}}, a.addModel},
		"add_model_links":        {deployer, links, a.addLinks},
		"delete_model_links":     {deployer, links, a.deleteLinks},
		"set_model_version":      {operator, version, a.setVersion},
		"delete_versioned_model": {deployer, version, a.deleteVersion},
		"get_all_applications":   {viewer, keys{{"verbose", isBool}}, a.apps},
		"get_application":        {viewer, keys{{"name", isText}}, a.app},
		"get_linked_models":      {viewer, keys{{"app_name", isText}}, a.linkedModels},
		"get_all_models":         {viewer, keys{{"verbose", isBool}}, a.models},
		"get_model":              {viewer, version, a.model},
		"get_all_containers":     {viewer, keys{{"verbose", isBool}}, a.containers},
		"get_container":          {viewer, keys{{"model_name", isText}, {"model_version", isText}, {"replica_id", isInt}}, a.container},
		"get_state":              {viewer, keys{{"app_name", isText}, {"uid", isInt}}, a.state},
	}
}

// allowed says whether r has the method; if not, it answers.
func allowed(w http.ResponseWriter, r *http.Request, method string) bool {
	if r.Method == method {
		return true
	}
	w.Header().Set("Allow", method)
	problem.Write(w, http.StatusMethodNotAllowed, "Method not allowed", "send this request as "+method)
	return false
}

// ServeHTTP implements http.Handler.
func (op operation) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := inflight.ReadAll(w, http.MaxBytesReader(w, r.Body, maxBody))
	if _, large := errors.AsType[*http.MaxBytesError](err); large {
		problem.Write(w, http.StatusRequestEntityTooLarge, "Request too large", "the body may have "+strconv.Itoa(maxBody)+" bytes")
		return
	}
	if p, ok := errors.AsType[*problem.Problem](err); ok {
		p.Write(w)
		return
	}
	if err != nil {
		problem.Write(w, http.StatusBadRequest, "Bad request", "the body ended early; send it again")
		return
	}
	req, err := parse(body, op.keys)
	if err != nil {
		respond(w, http.StatusBadRequest, "Error parsing JSON: "+err.Error()+". Expected JSON schema: "+op.keys.schema())
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), within)
	defer cancel()
	text, err := op.do(ctx, req)
	if err != nil {
		refuse(w, err)
		return
	}
	if op.role == serving.RoleViewer { // else it is done, and the answer is short
		if p, ok := errors.AsType[*problem.Problem](inflight.Take(w, len(text))); ok {
			p.Write(w)
			return
		}
	}
	respond(w, http.StatusOK, text)
}

// refuse answers with what is wrong: a sentence of Clipper's, a rule of the
// catalog, or a store that cannot be written to now.
func refuse(w http.ResponseWriter, err error) {
	status := http.StatusServiceUnavailable
	_, ours := errors.AsType[refusal](err)
	for _, rule := range []error{catalog.ErrNotFound, catalog.ErrExists, catalog.ErrInvalid} {
		ours = ours || errors.Is(err, rule)
	}
	if ours {
		status = http.StatusBadRequest
	}
	respond(w, status, strings.ReplaceAll(err.Error(), "\n", "; "))
}

// respond answers as Clipper does: the type is JSON even where the text is not.
func respond(w http.ResponseWriter, status int, text string) {
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Content-Length", strconv.Itoa(len(text)))
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff") // names of a client's choice stand in sentences
	w.WriteHeader(status)
	_, _ = io.WriteString(w, text) // a client that left needs no answer
}

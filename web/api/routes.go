package api

import (
	"cmp"
	"context"
	"maps"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/web/auth"
	"github.com/topsail-serving/topsail/web/problem"
	"github.com/topsail-serving/topsail/web/rest"
)

// root is where the API begins.
const root = "/api/v1"

// public is the role of routes that need no key.
const public = serving.Role("")

// route is one request of the API.
type route struct {
	pattern string       // of http.ServeMux, below the root, such as "GET /apps/{app}"
	role    serving.Role // that the caller needs at least
	// serve answers, or returns an error before it has written anything: errors are
	// answered as problems.
	serve func(http.ResponseWriter, *http.Request) error
	// takes are the parameters of the query, of a change: any other is refused, as it may
	// be one that was to hold the change back.
	takes string
}

// dryRun is the parameter of changes that can be dry-run.
const dryRun = "dry_run"

// catalogRoutes are the requests about registered objects, with the roles that they need.
func (a *api) catalogRoutes() []route {
	return slices.Concat(a.appRoutes(), a.modelRoutes(), a.versionRoutes(), a.artifactRoutes(), a.streamRoutes(), a.accessRoutes())
}

func (a *api) appRoutes() []route {
	return []route{
		{"GET /apps", serving.RoleViewer, a.listApps, ""},
		{"POST /apps", serving.RoleDeployer, a.createApp, dryRun},
		{"GET /apps/{app}", serving.RoleViewer, a.getApp, ""},
		{"PUT /apps/{app}", serving.RoleDeployer, a.putApp, dryRun + " " + replaceContract},
		{"PATCH /apps/{app}", serving.RoleDeployer, a.patchApp, dryRun + " " + replaceContract},
		{"DELETE /apps/{app}", serving.RoleDeployer, a.deleteApp, dryRun},
		{"PUT /apps/{app}/links/{model}", serving.RoleDeployer, a.linkModel, dryRun + " " + replaceContract},
		{"DELETE /apps/{app}/links/{model}", serving.RoleDeployer, a.unlinkModel, dryRun},
		{"GET /apps/{app}/policy", serving.RoleViewer, a.getPolicy, ""},
		{"PUT /apps/{app}/policy", serving.RoleDeployer, a.putPolicy, dryRun},
		{"DELETE /apps/{app}/learned", serving.RoleDeployer, a.forgetLearned, "uid context"},
		{"GET /apps/{app}/usage", serving.RoleViewer, a.getAppUsage, ""},
	}
}

func (a *api) modelRoutes() []route {
	return []route{
		{"GET /models", serving.RoleViewer, a.listModels, ""},
		{"GET /models/{model}", serving.RoleViewer, a.getModel, ""},
		{"DELETE /models/{model}", serving.RoleDeployer, a.deleteModel, dryRun},
		{"PUT /models/{model}/current", serving.RoleDeployer, a.setCurrent, dryRun + " " + replaceContract},
		{"GET /models/{model}/history", serving.RoleViewer, a.listHistory, ""},
		{"POST /models/{model}/rollback", serving.RoleOperator, a.rollBack, dryRun},
	}
}

func (a *api) versionRoutes() []route {
	return []route{
		{"GET /versions", serving.RoleViewer, a.listAllVersions, ""},
		{"GET /models/{model}/versions", serving.RoleViewer, a.listVersions, ""},
		{"POST /models/{model}/versions", serving.RoleDeployer, a.createVersion, dryRun + " keep_current replace commit " + replaceContract},
		{"GET /models/{model}/versions/{version}", serving.RoleViewer, a.getVersion, ""},
		{"DELETE /models/{model}/versions/{version}", serving.RoleDeployer, a.deleteVersion, dryRun},
		{"PUT /models/{model}/versions/{version}/scale", serving.RoleOperator, a.setScale, dryRun},
		{"PUT /models/{model}/versions/{version}/pin", serving.RoleOperator, a.setPin, dryRun},
		{"DELETE /models/{model}/versions/{version}/pin", serving.RoleOperator, a.releasePin, dryRun},
		{"GET /models/{model}/versions/{version}/job", serving.RoleViewer, a.getJob, ""},
		{"GET /models/{model}/versions/{version}/usage", serving.RoleViewer, a.getVersionUsage, ""},
	}
}

func (a *api) artifactRoutes() []route {
	return []route{
		{"GET /artifacts", serving.RoleViewer, a.listArtifacts, ""},
		{"POST /artifacts", serving.RoleDeployer, a.uploadArtifact, ""},
		{"GET /artifacts/{digest}", serving.RoleViewer, a.getArtifact, ""},
		{"DELETE /artifacts/{digest}", serving.RoleDeployer, a.deleteArtifact, ""},
		{"GET /artifacts/{digest}/content", public, a.downloadArtifact, ""},
	}
}

func (a *api) streamRoutes() []route {
	return []route{
		{"GET /streams", serving.RoleViewer, a.listStreams, ""},
		{"GET /streams/{stream}", serving.RoleViewer, a.getStream, ""},
		{"PATCH /streams/{stream}", serving.RoleDeployer, a.patchStream, dryRun},
		{"DELETE /streams/{stream}", serving.RoleOperator, a.deleteStream, dryRun},
		{"PUT /streams/{stream}/suspension", serving.RoleOperator, a.suspendStream, dryRun},
		{"DELETE /streams/{stream}/suspension", serving.RoleOperator, a.resumeStream, dryRun},
	}
}

// accessRoutes are the requests about the system as a whole and about access.
func (a *api) accessRoutes() []route {
	return []route{
		{"GET /catalog", serving.RoleViewer, a.exportCatalog, ""},
		{"POST /catalog", serving.RoleDeployer, a.applyCatalog, dryRun + " commit " + replaceContract},
		{"GET /usage", serving.RoleViewer, a.listUsage, ""},
		{"GET /backup", serving.RoleAdmin, a.backUp, ""},
		{"POST /restore", serving.RoleAdmin, a.restore, dryRun},
		{"GET /audit", serving.RoleAdmin, a.listAudit, ""},
		{"GET /keys", serving.RoleAdmin, a.listKeys, ""},
		{"POST /keys", serving.RoleAdmin, a.createKey, dryRun},
		{"GET /keys/{key}", serving.RoleAdmin, a.getKey, ""},
		{"DELETE /keys/{key}", serving.RoleAdmin, a.revokeKey, dryRun},
		{"GET /me", serving.RoleViewer, a.getMe, ""},
		{"POST /session", public, a.signIn, ""},
		{"DELETE /session", public, a.signOut, ""},
		{"GET /openapi.yaml", public, getOpenAPI, ""},
	}
}

// serving serves the routes, and answers problems to all other requests.
func (a *api) serving(routes []route) http.Handler {
	mux := http.NewServeMux()
	methods := map[string][]string{} // of a path
	for _, route := range routes {
		method, path, _ := strings.Cut(route.pattern, " ")
		mux.Handle(method+" "+root+path, a.one(route))
		methods[path] = append(methods[path], method)
		if method == http.MethodGet {
			methods[path] = append(methods[path], http.MethodHead)
		}
	}
	for _, path := range slices.Sorted(maps.Keys(methods)) {
		mux.Handle(root+path, otherMethod(methods[path]))
	}
	mux.HandleFunc("/", noSuchPath)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-store")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		if path.Clean(r.URL.Path) != r.URL.Path { // the mux would send people elsewhere
			noSuchPath(w, r)
			return
		}
		mux.ServeHTTP(w, r)
	})
}

// one serves a route to callers that have its role.
func (a *api) one(route route) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		err := admit(auth.Of(r.Context()), route.role)
		if err == nil {
			err = route.checkQuery(r)
		}
		if err == nil && route.role != public {
			err = a.wait(r)
		}
		if err == nil {
			err = route.serve(w, r)
		}
		if err != nil {
			problemOf(err).Write(w)
		}
	}
}

const (
	revisionHeader = "Topsail-Revision"
	waitsFor       = 2 * time.Second
	waitLooks      = 10 * time.Millisecond
)

// wait waits until this process knows the catalog that the client has heard of, perhaps from
// another one: for a while, as that may never come after a restore.
func (a *api) wait(r *http.Request) error {
	heard := r.Header.Get(revisionHeader)
	if heard == "" {
		return nil
	}
	revision, err := strconv.ParseUint(heard, 10, 64)
	if err != nil {
		return rest.Invalid("the header %s must be the revision of an event, not %.50q", revisionHeader, heard)
	}
	ctx, cancel := context.WithTimeout(r.Context(), waitsFor)
	defer cancel()
	look := time.NewTicker(waitLooks)
	defer look.Stop()
	for a.Store.Catalog().Revision < revision && ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-look.C:
		}
	}
	return nil
}

// checkQuery refuses a query that would not be understood.
func (route route) checkQuery(r *http.Request) error {
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return rest.Invalid("the query of the URL cannot be read: %v", err)
	}
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		return nil
	}
	takes := strings.Fields(route.takes)
	for _, name := range slices.Sorted(maps.Keys(query)) {
		if !slices.Contains(takes, name) {
			return rest.Invalid("parameter %.100q is unknown; this request takes: %s", name, cmp.Or(strings.Join(takes, ", "), "none"))
		}
	}
	return nil
}

func otherMethod(methods []string) http.HandlerFunc {
	slices.Sort(methods)
	allow := strings.Join(methods, ", ")
	return func(w http.ResponseWriter, r *http.Request) {
		p := problem.New(http.StatusMethodNotAllowed, "method_not_allowed", "this path takes "+allow)
		p.Header = http.Header{"Allow": {allow}}
		p.Write(w)
	}
}

func noSuchPath(w http.ResponseWriter, _ *http.Request) {
	problem.New(http.StatusNotFound, "not_found", "the API has no such path; GET "+root+"/openapi.yaml lists all paths").Write(w)
}

package api

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/topsail-serving/topsail/serving"
)

// fill gives a route's path names of what there is.
func filled(path string) string {
	return strings.NewReplacer("{app}", "a", "{model}", "m", "{version}", "1", "{digest}", digestOf(1), "{key}", "none", "{replica}", "none").Replace(path)
}

// TestEveryRouteAndRole asks for everything with every role. Who may not gets 401 or 403,
// and who may gets something else.
func TestEveryRouteAndRole(t *testing.T) {
	for _, route := range having(t).api.catalogRoutes() {
		method, path, _ := strings.Cut(route.pattern, " ")
		for _, role := range []serving.Role{"", serving.RoleQuery, serving.RoleViewer, serving.RoleOperator, serving.RoleDeployer, serving.RoleAdmin} {
			w := having(t)
			answer := w.askBy(string(role), method, filled(path), "")
			allowed := route.role == public || role != "" && role.Covers(route.role)
			refusal := http.StatusForbidden
			if role == "" {
				refusal = http.StatusUnauthorized
			}
			if (answer.Code != refusal) != allowed {
				t.Errorf("%s by %q: %d %s", route.pattern, role, answer.Code, answer.Body)
			}
			if answer.Code >= 500 {
				t.Errorf("%s by %q: %d %s", route.pattern, role, answer.Code, answer.Body)
			}
			if !allowed && (len(w.signed) > 0 || len(w.log) > 0) {
				t.Errorf("%s by %q: it is done", route.pattern, role)
			}
		}
	}
}

// The roles are those that the contract's description gives.
func TestRolesOfRoutes(t *testing.T) {
	for _, route := range having(t).api.catalogRoutes() {
		method, path, _ := strings.Cut(route.pattern, " ")
		want := serving.RoleDeployer
		switch {
		case slices.Contains([]string{"/session", "/openapi.yaml", "/artifacts/{digest}/content"}, path):
			want = public
		case strings.HasPrefix(path, "/keys"), path == "/audit", path == "/backup", path == "/restore":
			want = serving.RoleAdmin
		case method == "GET":
			want = serving.RoleViewer
		case method == "PATCH": // of a stream, too: which app predicts
		case strings.HasPrefix(path, "/streams"), strings.HasSuffix(path, "/scale"), strings.HasSuffix(path, "/pin"), strings.HasSuffix(path, "/rollback"):
			want = serving.RoleOperator
		}
		if route.role != want {
			t.Errorf("%s needs %q, not %q", route.pattern, route.role, want)
		}
	}
}

// Without the guard in front, nobody may do anything.
func TestWithoutAGuard(t *testing.T) {
	w := having(t)
	answer := httptest.NewRecorder()
	w.api.serving(w.api.catalogRoutes()).ServeHTTP(answer, httptest.NewRequest("GET", "/api/v1/apps", nil))
	expectCode(t, answer, 401, "unauthorized")
	if answer.Header().Get("WWW-Authenticate") == "" {
		t.Error("it does not ask for a key")
	}
}

// TestScopes: alice deploys app a, which asks model m; bob views app b, which asks n.
func TestScopes(t *testing.T) {
	app := func(name, more string) string {
		return `{"name":"` + name + `","input_type":"d","latency_slo_micros":1000` + more + `}`
	}
	for _, tt := range []struct {
		who, method, path, body string
		status                  int
		parts                   []string
	}{
		{"alice", "GET", "/apps", "", 200, []string{`"name":"a"`, "!", `"name":"b"`}},
		{"bob", "GET", "/apps", "", 200, []string{`"name":"b"`, "!", `"name":"a"`}},
		{"alice", "GET", "/apps/b", "", 404, nil},
		{"alice", "GET", "/apps/b/policy", "", 404, nil},
		{"alice", "GET", "/apps/b/insight", "", 404, nil},
		{"alice", "GET", "/models", "", 200, []string{`"name":"free"`, `"name":"m"`, "!", `"name":"n"`}},
		{"alice", "GET", "/models/n", "", 404, nil},
		{"alice", "GET", "/models/n/versions", "", 404, nil},
		{"alice", "GET", "/models/n/versions/1", "", 404, nil},
		{"alice", "GET", "/models/n/versions/1/job", "", 404, nil},
		{"bob", "GET", "/models/n/versions/1", "", 200, nil},
		{"alice", "GET", "/catalog", "", 403, []string{"the key is for a"}},
		{"alice", "POST", "/catalog", `{}`, 403, nil},
		{"alice", "POST", "/apps", app("c", ""), 403, []string{`app \"c\"`}},
		{"alice", "POST", "/apps", app("b", ""), 403, nil},
		{"alice", "PUT", "/apps/b", app("b", ""), 403, nil},
		{"alice", "PATCH", "/apps/b", `{}`, 403, nil},
		{"alice", "DELETE", "/apps/b", "", 403, nil},
		{"alice", "PUT", "/apps/b/links/m", "", 403, nil},
		{"alice", "PUT", "/apps/b/policy", `{}`, 403, nil},
		{"alice", "DELETE", "/apps/b/learned", "", 404, nil},
		{"alice", "PATCH", "/apps/a", `{"weight":2}`, 200, nil},
		{"alice", "PUT", "/apps/a/links/free", "", 200, nil},
		{"alice", "PUT", "/apps/a/links/n", "", 404, nil},
		{"alice", "PATCH", "/apps/a", `{"models":["m","n"]}`, 403, []string{`model \"n\" is called by other apps only`}},
		{"alice", "PATCH", "/apps/a", `{"models":[],"stages":[{"name":"s","app":"b"}]}`, 403, []string{`a stage calls app \"b\"`}},
		{"alice", "DELETE", "/apps/a/learned", "", 204, nil},
		{"alice", "POST", "/models/fresh/versions", `{"version":"1","input_type":"d","command":["m"]}`, 201, nil},
		{"alice", "POST", "/models/m/versions", `{"version":"3","input_type":"d","command":["m"]}`, 201, nil},
		{"alice", "POST", "/models/n/versions", `{"version":"3","input_type":"d","command":["m"]}`, 403, []string{`model \"n\" is called by other apps`}},
		{"alice", "PUT", "/models/m/current", `{"version":"1"}`, 200, nil},
		{"alice", "POST", "/models/m/rollback", "", 200, nil},
		{"alice", "DELETE", "/models/free", "", 204, nil},
		{"alice", "DELETE", "/models/n", "", 404, nil},
		{"alice", "PUT", "/models/n/versions/1/scale", `{"replicas":1}`, 404, nil},
		{"alice", "PUT", "/models/m/versions/1/pin", `{"count":1}`, 200, nil},
		{"alice", "GET", "/keys", "", 403, nil},
		{"alice", "GET", "/audit", "", 403, nil},
	} {
		w := having(t)
		answer := w.askBy(tt.who, tt.method, tt.path, tt.body, "If-Match", "*")
		expect(t, answer, tt.status, tt.parts...)
		if t.Failed() {
			t.Fatalf("%s %s by %s", tt.method, tt.path, tt.who)
		}
	}
}

// A model that two apps ask is seen with the own app alone, and not changed.
func TestSharedModels(t *testing.T) {
	w := having(t)
	expect(t, w.ask("PUT", "/apps/b/links/m", ""), 200)
	expect(t, w.askBy("alice", "GET", "/models/m", ""), 200, `"apps":["a"]`)
	expect(t, w.askBy("alice", "GET", "/models/m/versions/2", ""), 200, `"used_by":["a"]`)
	expectCode(t, w.askBy("alice", "PUT", "/models/m/versions/2/scale", `{"replicas":9}`), 403, "forbidden", "called by other apps")
	expectCode(t, w.askBy("alice", "POST", "/models/m/rollback", ""), 403, "forbidden")
	expect(t, w.ask("GET", "/models/m", ""), 200, `"apps":["a","b"]`)
}

// Of a model that is gone nobody knows whose it was.
func TestModelsThatAreGone(t *testing.T) {
	r := runs(t)
	r.decided = []serving.Decision{{ModelID: serving.ModelID{Model: "gone", Version: "1"}}, {ModelID: serving.ModelID{Model: "m", Version: "1"}}}
	r.list = append(r.list, Replica{ID: "gone-1", Model: "gone", Version: "1", State: "draining"})
	for _, path := range []string{"/decisions", "/replicas"} {
		expect(t, r.askBy("alice", "GET", path, ""), 200, `"model":"m"`, "!", "gone")
		expect(t, r.askBy("viewer", "GET", path, ""), 200, `"model":"m"`, `"gone"`)
	}
	expectCode(t, r.askBy("alice", "GET", "/replicas/gone-1", ""), 404, "not_found")
}

func TestScopedArtifacts(t *testing.T) {
	w := having(t)
	digest := read[Artifact](t, w.ask("POST", "/artifacts", `{"input_type":"doubles"}`, "Content-Type", "application/zip")).Digest
	expect(t, w.askBy("alice", "GET", "/artifacts/"+digest, ""), 200)
	expect(t, w.ask("POST", "/models/n/versions", `{"version":"2","bundle":"`+digest+`"}`), 201)
	expectCode(t, w.askBy("alice", "GET", "/artifacts/"+digest, ""), 404, "not_found")
	expect(t, w.askBy("alice", "GET", "/artifacts", ""), 200, `"items":[]`)
	expect(t, w.askBy("bob", "GET", "/artifacts", ""), 200, digest, `"used_by":["n:2"]`)
}

package api

import (
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/topsail-serving/topsail/web/auth"
)

func TestOtherPathsAndMethods(t *testing.T) {
	w := having(t)
	for _, path := range []string{"", "/", "/none", "/apps/", "/apps//policy", "/apps/a/none", "//apps", "/apps/../keys", "/apps/%2e%2e/keys", "/./apps", "/apps/a/links"} {
		for _, method := range []string{"GET", "POST", "BREW"} {
			answer := w.ask(method, path, "")
			expectCode(t, answer, 404, "not_found")
			if answer.Header().Get("Location") != "" {
				t.Errorf("%s %s sends people to %s", method, path, answer.Header().Get("Location"))
			}
		}
	}
	for path, allow := range map[string]string{
		"/apps": "GET, HEAD, POST", "/apps/a": "DELETE, GET, HEAD, PATCH, PUT", "/models/m/rollback": "POST", "/models/m/versions/1/pin": "DELETE, PUT",
	} {
		answer := w.ask("BREW", path, "")
		expectCode(t, answer, 405, "method_not_allowed", allow)
		if got := answer.Header().Get("Allow"); got != allow {
			t.Errorf("%s allows %s", path, got)
		}
	}
}

// Names are data, whatever they are made of: nothing is found by them, and nothing breaks.
func TestHostileNames(t *testing.T) {
	for _, name := range []string{"<script>alert(1)</script>", "../../etc/passwd", "..", "\x00", "a\x00", "%00", "a/b", "a:b", "'; drop table", strings.Repeat("x", 5000), "\xff", "{{.}}", "con", "\u202e"} {
		w := having(t)
		for _, route := range w.api.catalogRoutes() {
			method, path, _ := strings.Cut(route.pattern, " ")
			if !strings.Contains(path, "{") || name == ".." {
				continue
			}
			escaped := strings.NewReplacer("+", "%20").Replace(url.PathEscape(name))
			for _, part := range []string{"{app}", "{model}", "{version}", "{digest}", "{key}"} {
				path = strings.ReplaceAll(path, part, escaped)
			}
			answer := w.ask(method, path, `{"version":"x"}`)
			if answer.Code < 400 || answer.Code >= 500 {
				t.Errorf("%s %s: %d %s", method, path, answer.Code, answer.Body)
			}
			expectProblem(t, answer)
			if strings.Contains(answer.Body.String(), "<script>") {
				t.Errorf("%s: %s", path, answer.Body)
			}
		}
	}
}

// What is stored as text comes out as inert JSON.
func TestScriptInTexts(t *testing.T) {
	w := having(t)
	const evil = `</script><script>alert(1)</script>`
	expect(t, w.ask("PATCH", "/apps/a", `{"default_output":"`+evil+`","example":"\"`+evil+`\""}`), 200)
	expect(t, w.ask("POST", "/models/m/versions", `{"version":"x","input_type":"d","labels":["`+evil+`"],"command":["`+evil+`"],"dir":"`+evil+`","env":{"A":"`+evil+`"}}`), 201)
	expect(t, w.ask("PUT", "/models/m/versions/x/pin", `{"count":1,"reason":"`+evil+`"}`), 200)
	expect(t, w.ask("POST", "/keys", `{"name":"`+evil+`","role":"viewer"}`), 201)
	for _, path := range []string{"/apps", "/models/m/versions", "/keys", "/catalog"} {
		answer := w.ask("GET", path, "")
		expect(t, answer, 200, `\u003cscript\u003e`, "!", "<script>")
		if answer.Header().Get("Content-Type") != "application/json" {
			t.Errorf("%s is %s", path, answer.Header().Get("Content-Type"))
		}
	}
}

func TestOtherSitesChangeNothing(t *testing.T) {
	w := having(t)
	guard := auth.New(auth.Config{Catalog: w.Catalog})
	w.handler, w.keys = guard.Handler(&API{w.api, w.api.serving(w.api.catalogRoutes())}), nil
	for _, tt := range []struct {
		method, name, value string
		status              int
	}{
		{"DELETE", "Sec-Fetch-Site", "cross-site", 403}, {"DELETE", "Sec-Fetch-Site", "same-site", 403}, {"DELETE", "Origin", "https://evil.example", 403},
		{"DELETE", "Origin", "null", 403}, {"GET", "Sec-Fetch-Site", "cross-site", 200}, {"DELETE", "Sec-Fetch-Site", "same-origin", 204},
	} {
		w.must(t)
		r := httptest.NewRequest(tt.method, "http://localhost:1338/api/v1/apps/a", nil)
		r.Header.Set(tt.name, tt.value)
		answer := httptest.NewRecorder()
		w.handler.ServeHTTP(answer, r)
		if answer.Code != tt.status {
			t.Errorf("%s with %s %s: %d %s", tt.method, tt.name, tt.value, answer.Code, answer.Body)
		}
	}
}

func TestOpenAPI(t *testing.T) {
	w := having(t)
	answer := w.askBy("", "GET", "/openapi.yaml", "")
	expect(t, answer, 200, "openapi: 3.1.0")
	if got := answer.Header().Get("Content-Type"); got != "application/yaml" {
		t.Errorf("it is %s", got)
	}
}

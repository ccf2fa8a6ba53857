package httpapi

import (
	"strings"
	"testing"

	"github.com/topsail-serving/topsail/internal/obs"
	"github.com/topsail-serving/topsail/serving"
)

func TestMetrics(t *testing.T) {
	inspect := func(page []byte) []byte { return append(page, `{"counters":[]}`...) }
	r := start(t, Config{Metrics: obs.NewRegistry(), Inspect: inspect}, newFake())
	for accept, prometheus := range map[string]bool{
		"": false, "*/*": false, "application/json": false, "text/html,application/xhtml+xml,*/*;q=0.8": false, "text/plainly": false,
		"text/plain": true, "application/json, TEXT/PLAIN;q=0.5": true,
		"application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.3": true,
	} {
		got := r.do(t, "GET", "/metrics", "", "Accept: "+accept)
		if prometheus {
			if got.status != 200 || !strings.Contains(got.body, `topsail_gateway_refused_total{app="",reason="limit"} 0`) || strings.Contains(got.header.Get("Content-Type"), "json") {
				t.Errorf("%q: %d %s %.200s", accept, got.status, got.header.Get("Content-Type"), got.body)
			}
		} else if got.status != 200 || got.body != `{"counters":[]}` || got.header.Get("Content-Type") != "application/json" {
			t.Errorf("%q: %d %s %.200s", accept, got.status, got.header.Get("Content-Type"), got.body)
		}
	}
	if got := r.do(t, "POST", "/metrics", `{}`); got.status != 405 {
		t.Errorf("POST: %d %s", got.status, got.body)
	}
	if got := start(t, Config{}, newFake()).do(t, "GET", "/metrics", ""); got.status != 404 {
		t.Errorf("without a page: %d %s", got.status, got.body)
	}
}

func TestMetricsAskForAKey(t *testing.T) {
	core, secrets := keyed(nil,
		&serving.Key{Name: "query", Role: serving.RoleQuery}, &serving.Key{Name: "viewer", Role: serving.RoleViewer},
		&serving.Key{Name: "scoped", Role: serving.RoleDeployer, Apps: []string{"doubles"}})
	inspect := func(page []byte) []byte { return append(page, `{}`...) }
	closed, open := start(t, Config{Keys: newKeys(t), Inspect: inspect}, core), start(t, Config{Inspect: inspect}, core)
	for _, tt := range []struct {
		key                  string
		whenClosed, whenOpen int
	}{
		{"", 401, 200}, {"wrong", 401, 401}, {secrets["query"], 403, 403}, {secrets["scoped"], 403, 403}, {secrets["viewer"], 200, 200},
	} {
		for _, accept := range []string{"*/*", "text/plain"} {
			header := []string{"Accept: " + accept}
			if tt.key != "" {
				header = append(header, "Authorization: Bearer "+tt.key)
			}
			if got := closed.do(t, "GET", "/metrics", "", header...); got.status != tt.whenClosed {
				t.Errorf("closed, %.12s: %d %s, want %d", tt.key, got.status, got.body, tt.whenClosed)
			}
			if got := open.do(t, "GET", "/metrics", "", header...); got.status != tt.whenOpen {
				t.Errorf("open, %.12s: %d %s, want %d", tt.key, got.status, got.body, tt.whenOpen)
			}
		}
	}
	if got := closed.do(t, "GET", "/metrics", "", "X-Api-Key: "+goodKey); got.status != 200 {
		t.Errorf("of the file: %d %s", got.status, got.body)
	}
}

package httpapi

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/internal/budget"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/test/openapi"
	"github.com/topsail-serving/topsail/test/wait"
)

// described are the apps of a document.
func described(t *testing.T, r reply) []string {
	t.Helper()
	var document struct{ Paths map[string]any }
	if err := json.Unmarshal([]byte(r.body), &document); err != nil {
		t.Fatalf("%d %.200s: %v", r.status, r.body, err)
	}
	var apps []string
	for path := range maps.Keys(document.Paths) {
		if app, ok := strings.CutSuffix(path, "/predict"); ok {
			apps = append(apps, app[1:])
		}
	}
	slices.Sort(apps)
	return apps
}

func TestDocument(t *testing.T) {
	core, _ := keyed(nil)
	s := start(t, Config{MaxBatch: 7}, core)
	got := s.do(t, "GET", "/openapi.json", "", "X-Request-Id: mine")
	if got.status != 200 || got.header.Get("Content-Type") != "application/json" || got.header.Get("Cache-Control") != "no-store" || got.header.Get("X-Request-Id") != "mine" {
		t.Fatalf("%d %v %.200s", got.status, got.header, got.body)
	}
	if apps := described(t, got); !slices.Equal(apps, []string{"bytes", "doubles", "floats", "integers", "strings"}) {
		t.Errorf("it has %v", apps)
	}
	contract := openapi.Load(t, []byte(got.body))
	if contract["update_doubles"] == nil || contract["getMetrics"] != nil || !strings.Contains(got.body, `"maxItems":7`) || strings.Contains(got.body, `"security":[{`) {
		t.Errorf("%s", got.body)
	}
	head := s.do(t, "HEAD", "/openapi.json", "")
	if head.status != 200 || head.body != "" || head.header.Get("Content-Length") != strconv.Itoa(len(got.body)) {
		t.Errorf("HEAD: %d %v", head.status, head.header)
	}
	if n := s.server.config.Budget.Used(); n > 4<<20 {
		t.Errorf("%d bytes are in use", n)
	}

	core, _ = keyed(nil)
	core.updater = nil
	got = start(t, Config{Inspect: func(page []byte) []byte { return page }}, core).do(t, "GET", "/openapi.json", "")
	contract = openapi.Load(t, []byte(got.body))
	if contract["update_doubles"] != nil || contract["getMetrics"] == nil {
		t.Errorf("%s", got.body)
	}
}

// A caller sees the apps that it may ask, and no others.
func TestDocumentByKeys(t *testing.T) {
	core, secrets := keyed(func(cat *serving.Catalog) { cat.Apps["integers"].RequireKey = true },
		&serving.Key{Name: "all", Role: serving.RoleQuery}, &serving.Key{Name: "operator", Role: serving.RoleOperator}, &serving.Key{Name: "viewer", Role: serving.RoleViewer},
		&serving.Key{Name: "two", Role: serving.RoleQuery, Apps: []string{"integers", "floats", "gone"}}, &serving.Key{Name: "none", Role: serving.RoleQuery, Apps: []string{"gone"}},
		&serving.Key{Name: "expired", Role: serving.RoleQuery, Expires: time.Now().Add(-time.Minute)})
	open, closed := start(t, Config{}, core), start(t, Config{Keys: newKeys(t)}, core)
	all, free := []string{"bytes", "doubles", "floats", "integers", "strings"}, []string{"bytes", "doubles", "floats", "strings"}
	for _, tt := range []struct {
		name, key    string
		open, closed int
		seen         []string // where it is 200
	}{
		{name: "none", open: 200, closed: 401, seen: free},
		{name: "wrong", key: "wrong-0123456789abcdef", open: 401, closed: 401},
		{name: "expired", key: secrets["expired"], open: 401, closed: 401},
		{name: "all", key: secrets["all"], open: 200, closed: 200, seen: all},
		{name: "operator", key: secrets["operator"], open: 200, closed: 200, seen: all},
		{name: "viewer", key: secrets["viewer"], open: 403, closed: 403},
		{name: "two", key: secrets["two"], open: 200, closed: 200, seen: []string{"floats", "integers"}},
		{name: "none of these", key: secrets["none"], open: 200, closed: 200},
		{name: "of the file", key: goodKey, open: 401, closed: 200, seen: all},
	} {
		for _, port := range []struct {
			*running
			status   int
			security string
		}{{open, tt.open, `"security":[{},{"bearer":[]},{"key":[]}]`}, {closed, tt.closed, `"security":[{"bearer":[]},{"key":[]}]`}} {
			var header []string
			if tt.key != "" {
				header = []string{"X-Api-Key: " + tt.key}
			}
			got := port.do(t, "GET", "/openapi.json", "", header...)
			if got.status != port.status || (got.header.Get("WWW-Authenticate") != "") != (got.status == 401) {
				t.Errorf("%s: %d %.200s, want %d", tt.name, got.status, got.body, port.status)
			}
			if got.status != 200 {
				got.refusal(t)
				continue
			}
			if apps := described(t, got); !slices.Equal(apps, tt.seen) || !strings.Contains(got.body, port.security) {
				t.Errorf("%s: it has %v, want %v: %s", tt.name, apps, tt.seen, got.body)
			}
			for _, app := range all { // the document and the port agree on who may ask
				status := port.do(t, "POST", "/"+app+"/predict", `{}`, header...).status
				if seen := slices.Contains(tt.seen, app); seen != (status == 400) {
					t.Errorf("%s: asking %s is a %d, and the document has it = %v", tt.name, app, status, seen)
				}
			}
		}
	}
}

// An app that the predictor does not serve, since a catalog could not be used, is not there.
func TestDocumentOfWhatIsServed(t *testing.T) {
	core, _ := keyed(nil)
	s := start(t, Config{}, core)
	apps := maps.Clone(core.apps)
	apps["new"] = &serving.App{Name: "new", InputType: serving.Doubles}
	s.server.Serve(&serving.Catalog{Apps: apps})
	if apps := described(t, s.do(t, "GET", "/openapi.json", "")); slices.Contains(apps, "new") || len(apps) != 5 {
		t.Errorf("it has %v", apps)
	}
}

func TestDocumentBeforeTheFirstCatalog(t *testing.T) {
	core := newFake()
	core.apps = nil
	s := start(t, Config{}, core)
	if got := s.do(t, "GET", "/openapi.json", ""); got.status != 503 {
		t.Errorf("%d %s", got.status, got.body)
	}
	core.apps = map[string]*serving.App{}
	s.server.Serve(&serving.Catalog{})
	if apps := described(t, s.do(t, "GET", "/openapi.json", "")); len(apps) != 0 {
		t.Errorf("it has %v", apps)
	}
}

// A document that there is no room for is refused, and takes nothing.
func TestDocumentTakesOfTheBudget(t *testing.T) {
	core, _ := keyed(nil)
	b := budget.New(128 << 10)
	s := start(t, Config{Budget: b}, core)
	if got := s.do(t, "GET", "/openapi.json", ""); got.status != 200 {
		t.Fatalf("%d %s", got.status, got.body)
	}
	for i := range 100 {
		name := "app-" + strconv.Itoa(i)
		core.apps[name] = &serving.App{Name: name, InputType: serving.Doubles}
	}
	s.server.Serve(&serving.Catalog{Apps: core.apps})
	got := s.do(t, "GET", "/openapi.json", "")
	if class, _ := got.refusal(t); got.status != 503 || class != "No memory" || got.header.Get("Retry-After") != "1" {
		t.Errorf("%d %s", got.status, got.body)
	}
	wait.Until(t, "that nothing is taken", func() bool { return b.Used() == 0 })
}

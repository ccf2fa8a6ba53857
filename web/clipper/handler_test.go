package clipper

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/internal/budget"
	"github.com/topsail-serving/topsail/internal/obs"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/serving/catalog"
	"github.com/topsail-serving/topsail/test/require"
	"github.com/topsail-serving/topsail/web/auth"
	"github.com/topsail-serving/topsail/web/change"
	"github.com/topsail-serving/topsail/web/inflight"
)

func with(text, from, to string) string { return strings.Replace(text, from, to, 1) }

func emptyCatalog() *serving.Catalog { return &serving.Catalog{} }

// TestSession is a session of Clipper's client.
func TestSession(t *testing.T) {
	store := &memory{cat: emptyCatalog()}
	h := handler(store, nobody)
	for _, step := range []struct{ name, body string }{
		{"add_app", `{"name":"app","input_type":"double","default_output":"0","latency_slo_micros":100000}`},
		{"add_model", with(with(newModel, `[]`, `["x"]`), "NO_CONTAINER", "me/image:1")},
		{"add_model_links", `{"app_name":"app","model_names":["q"]}`},
		{"add_model", with(with(newModel, `"1"`, `"2"`), "-1", "8")},
		{"set_model_version", `{"model_name":"q","model_version":"1"}`},
	} {
		if status, text := post(h, step.name, step.body); status != 200 {
			t.Fatalf("%s: %d %s", step.name, status, text)
		}
	}
	v := store.cat.Version(serving.ModelID{Model: "q", Version: "2"})
	if v.Origin != serving.FromAPI || v.Replicas != 0 || v.Batch != (serving.BatchSpec{Strategy: "fixed", MaxSize: 8}) || store.cat.Apps["app"].Origin != serving.FromAPI {
		t.Errorf("kept %+v", v)
	}
	const models = `[{"model_name":"q","model_version":"1","input_type":"doubles","labels":["x"],"container_name":"me/image:1","model_data_path":"DEPRECATED","is_current_version":true},` +
		`{"model_name":"q","model_version":"2","input_type":"doubles","labels":[],"container_name":"NO_CONTAINER","model_data_path":"DEPRECATED","is_current_version":false}]`
	if _, text := post(h, "get_all_models", `{"verbose":true}`); text != models {
		t.Errorf("models: %s", text)
	}
	post(h, "delete_versioned_model", `{"model_name":"q","model_version":"1"}`)
	if m := store.cat.Models["q"]; m.Current != "" || len(store.cat.Apps["app"].Models) != 1 {
		t.Errorf("after its current version the model has %q", m.Current)
	}
	post(h, "delete_versioned_model", `{"model_name":"q","model_version":"2"}`)
	if _, text := post(h, "get_linked_models", `{"app_name":"app"}`); text != "[]" {
		t.Errorf("links to a model that is gone: %s", text)
	}
	post(h, "delete_app", `{"name":"app"}`)
	if len(store.cat.Apps) != 0 {
		t.Error("the app is still there")
	}
}

func TestIncompatibleVersionIsNotSet(t *testing.T) {
	store := having(t)
	h := handler(store, nobody)
	post(h, "delete_model_links", `{"app_name":"a","model_names":["m"]}`)
	if status, text := post(h, "add_model", with(with(newModel, `"q","model_version":"1"`, `"m","model_version":"3"`), `"d"`, `"strings"`)); status != 200 {
		t.Fatal(text)
	}
	post(h, "set_model_version", `{"model_name":"m","model_version":"1"}`)
	post(h, "add_model_links", `{"app_name":"a","model_names":["m"]}`)
	const want = "Model with name 'm' is already linked to app 'a' using input type 'doubles'. The input type you provided for a new version of the model, 'strings', is not compatible."
	if status, text := post(h, "set_model_version", `{"model_name":"m","model_version":"3"}`); status != 400 || text != want {
		t.Errorf("%d %s", status, text)
	}
}

func TestSeveralLinksAreMadeTogetherOrNotAtAll(t *testing.T) {
	store := having(t)
	h := handler(store, nobody)
	revision := store.cat.Revision
	if status, _ := post(h, "add_model_links", `{"app_name":"b","model_names":["s","m"]}`); status != 400 || store.cat.Revision != revision {
		t.Errorf("%d, and the catalog is %+v", status, store.cat.Apps["b"])
	}
	post(h, "delete_model_links", `{"app_name":"a","model_names":["m"]}`)
	status, text := post(h, "add_model_links", `{"app_name":"a","model_names":["n","m"]}`)
	if status != 200 || text != "Successfully linked model with name 'n', 'm' to application 'a'" {
		t.Errorf("%d %s", status, text)
	}
	if got := store.cat.Apps["a"].Models; !slices.Equal(got, []string{"n", "m"}) {
		t.Errorf("linked %v", got)
	}
}

func TestAnotherProcessIsQuicker(t *testing.T) {
	store := having(t)
	store.before = []catalog.Change{
		catalog.DeleteApp{Name: "b"},
		catalog.PutVersion{Version: serving.Version{ModelID: serving.ModelID{Model: "q", Version: "1"}, InputType: serving.Doubles}},
	}
	status, text := post(handler(store, nobody), "add_model", newModel)
	if status != 400 || text != "model with name 'q' and version '1' already exists" {
		t.Errorf("%d %s", status, text)
	}
}

func TestStoreAway(t *testing.T) {
	store := having(t)
	store.away = errors.New("redis does not answer")
	if status, text := post(handler(store, nobody), "delete_app", `{"name":"a"}`); status != 503 || text != "redis does not answer" {
		t.Errorf("%d %s", status, text)
	}
}

func TestWaitingEndsWithTheClient(t *testing.T) {
	a := &admin{writer: change.New(having(t))}
	done, err := a.writer.Lock(t.Context())
	require.NoError(t, err)
	defer done()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := a.deleteApp(ctx, request{"name": "a"}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestContainers(t *testing.T) {
	m1, s1 := serving.ModelID{Model: "m", Version: "1"}, serving.ModelID{Model: "s", Version: "1"}
	h := handler(having(t), func() []serving.Endpoint {
		return []serving.Endpoint{
			{Replica: "s-1", Models: []serving.Definition{{ModelID: s1}}, Ready: true},
			{Replica: "m-b", Models: []serving.Definition{{ModelID: m1}}, Ready: true},
			{Replica: "m-0", Models: []serving.Definition{{ModelID: m1}}},
			{Replica: "m-a", Models: []serving.Definition{{ModelID: m1}, {ModelID: serving.ModelID{Model: "m", Version: "gone"}}}, Ready: true},
		}
	})
	const first = `{"model_id":"m:1","model_name":"m","model_version":"1","model_replica_id":0,"input_type":"doubles"}`
	for _, tt := range []struct{ name, body, want string }{
		{"get_all_containers", `{"verbose":false}`, `["m:1:0","m:1:1","s:1:0"]`},
		{"get_all_containers", `{"verbose":true}`, `[` + first + `,` + with(first, `id":0`, `id":1`) + `,{"model_id":"s:1","model_name":"s","model_version":"1","model_replica_id":0,"input_type":"strings"}]`},
		{"get_container", `{"model_name":"m","model_version":"1","replica_id":0}`, first},
		{"get_container", `{"model_name":"m","model_version":"1","replica_id":2}`, `{}`},
		{"get_container", `{"model_name":"m","model_version":"1","replica_id":-1}`, `{}`},
	} {
		if status, text := post(h, tt.name, tt.body); status != 200 || text != tt.want {
			t.Errorf("%s %s: %d %s", tt.name, tt.body, status, text)
		}
	}
}

func TestContainerNames(t *testing.T) {
	for want, c := range map[string]serving.Container{
		"NO_CONTAINER":   {},
		"me/image:1":     {Image: "me/image:1", Command: []string{"run"}},
		"127.0.0.1:7000": {Addr: "127.0.0.1:7000"},
		"python3":        {Command: []string{"python3", "--token=secret"}},
	} {
		if got := containerName(c); got != want {
			t.Errorf("%+v: %s", c, got)
		}
	}
}

func TestMethodsAndPaths(t *testing.T) {
	h := handler(having(t), nobody)
	for _, tt := range []struct {
		method, path string
		status       int
		allow        string
	}{
		{"GET", "/admin/ping", 200, ""},
		{"POST", "/admin/ping", 405, "GET"},
		{"GET", "/admin/add_app", 405, "POST"},
		{"DELETE", "/admin/get_all_models", 405, "POST"},
		{"POST", "/admin/add_app/", 404, ""},
		{"POST", "/admin/", 404, ""},
		{"POST", "/admin/metrics", 404, ""},
		{"GET", "/admin/none", 404, ""},
	} {
		w := send(h, tt.method, tt.path, "{}")
		if w.Code != tt.status || w.Header().Get("Allow") != tt.allow {
			t.Errorf("%s %s: %d, allowed %q", tt.method, tt.path, w.Code, w.Header().Get("Allow"))
		}
		if w.Code == 200 {
			if w.Body.String() != "PONG" || w.Header().Get("Content-Type") != "application/json" || w.Header().Get("Content-Length") != "4" {
				t.Errorf("%s %s: %s %v", tt.method, tt.path, w.Body, w.Header())
			}
			continue
		}
		var said struct{ Status int }
		if err := json.Unmarshal(w.Body.Bytes(), &said); err != nil || said.Status != tt.status {
			t.Errorf("%s %s: %s", tt.method, tt.path, w.Body)
		}
	}
}

func TestBodiesAreBounded(t *testing.T) {
	h := handler(having(t), nobody)
	for size, want := range map[int]int{maxBody: 200, maxBody + 1: 413, 10 << 20: 413} {
		body := `{"name":"a"` + strings.Repeat(" ", size-12) + `}`
		if w := send(h, "POST", "/admin/get_application", body); w.Code != want {
			t.Errorf("%d bytes: %d", size, w.Code)
		}
	}
}

// TestHostileNames: whatever a name is, it is refused with a sentence or makes nothing.
func TestHostileNames(t *testing.T) {
	store := having(t)
	h := handler(store, nobody)
	revision := store.cat.Revision
	for _, name := range []string{"", ".", "../../etc", "a/b", "a b", "a\x00b", "<script>alert(1)</script>", "*", "a\n", "ü", strings.Repeat("x", 64), "'; drop", "%2e"} {
		quoted, _ := json.Marshal(name)
		for op, body := range map[string]string{
			"add_app":                `{"name":` + string(quoted) + `,"input_type":"d","default_output":"","latency_slo_micros":20000}`,
			"delete_app":             `{"name":` + string(quoted) + `}`,
			"add_model":              with(with(newModel, `"q"`, string(quoted)), `"1"`, string(quoted)),
			"add_model_links":        `{"app_name":"a","model_names":[` + string(quoted) + `]}`,
			"delete_model_links":     `{"app_name":` + string(quoted) + `,"model_names":["m"]}`,
			"set_model_version":      `{"model_name":"m","model_version":` + string(quoted) + `}`,
			"delete_versioned_model": `{"model_name":` + string(quoted) + `,"model_version":"1"}`,
		} {
			w := send(h, "POST", "/admin/"+op, body)
			if w.Code != 400 || w.Body.Len() == 0 || w.Header().Get("X-Content-Type-Options") != "nosniff" || strings.Contains(w.Body.String(), "Error parsing") {
				t.Errorf("%s %q: %d %s", op, name, w.Code, w.Body)
			}
		}
	}
	if store.cat.Revision != revision {
		t.Errorf("%d changes", store.cat.Revision-revision)
	}
}

// TestPrepared: a version that a container manager has prepared is completed by its
// registration, with the replicas that it was prepared for.
func TestPrepared(t *testing.T) {
	store := &memory{cat: emptyCatalog()}
	h := handler(store, nobody)
	const bundle = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
	id := serving.ModelID{Model: "q", Version: "1"}
	prepared := serving.Version{ModelID: id, InputType: serving.Doubles, Replicas: 3, Prepared: true, Container: serving.Container{Bundle: bundle}}
	if _, err := store.Apply(t.Context(), catalog.PutVersion{Version: prepared, KeepCurrent: true}, 0); err != nil {
		t.Fatal(err)
	}
	if status, text := post(h, "add_model", with(newModel, "NO_CONTAINER", "me/image:1")); status != 400 || !strings.Contains(text, "already exists") {
		t.Errorf("another image: %d %s", status, text)
	} else if !strings.Contains(text, "image is") || !strings.Contains(text, "use a new version") {
		t.Errorf("another image: it says %s", text)
	}
	if status, text := post(h, "add_model", with(with(newModel, `[]`, `["x"]`), "NO_CONTAINER", bundle)); status != 200 {
		t.Fatalf("%d %s", status, text)
	}
	v := store.cat.Version(id)
	if v.Prepared || v.Replicas != 3 || len(v.Labels) != 1 || store.cat.Models["q"].Current != "1" {
		t.Errorf("kept %+v", v)
	}
	if status, text := post(h, "add_model", with(newModel, "NO_CONTAINER", bundle)); status != 400 || text != "model with name 'q' and version '1' already exists" {
		t.Errorf("again: %d %s", status, text)
	}
}

// TestRoles: who may only read changes nothing.
func TestRoles(t *testing.T) {
	store := having(t)
	h := Handler(System{Store: store, Replicas: nobody, Check: func(*serving.Version) error { return errors.New("images need a cluster") }})
	for _, tt := range []struct {
		caller  auth.Caller
		request string
		body    string
		status  int
	}{
		{auth.Caller{}, "get_all_models", `{"verbose":true}`, 401},
		{auth.Caller{Role: serving.RoleQuery}, "get_all_models", `{"verbose":true}`, 403},
		{auth.Caller{Role: serving.RoleViewer}, "get_all_models", `{"verbose":true}`, 200},
		{auth.Caller{Role: serving.RoleViewer}, "set_model_version", `{"model_name":"m","model_version":"1"}`, 403},
		{auth.Caller{Role: serving.RoleOperator}, "set_model_version", `{"model_name":"m","model_version":"1"}`, 200},
		{auth.Caller{Role: serving.RoleOperator}, "delete_app", `{"name":"b"}`, 403},
		{auth.Caller{Role: serving.RoleDeployer, Apps: []string{"a"}}, "delete_app", `{"name":"b"}`, 403},
		{auth.Caller{Role: serving.RoleDeployer}, "delete_app", `{"name":"b"}`, 200},
		{auth.Caller{Role: serving.RoleDeployer}, "add_model", newModel, 400}, // the check refuses it
	} {
		r := httptest.NewRequest("POST", "/admin/"+tt.request, strings.NewReader(tt.body))
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r.WithContext(auth.With(r.Context(), tt.caller)))
		if w.Code != tt.status {
			t.Errorf("%+v, %s: %d %s", tt.caller, tt.request, w.Code, w.Body)
		}
	}
}

// TestDeployed registers a model with Clipper's request: the version says who did, and with what.
func TestDeployed(t *testing.T) {
	store := having(t)
	h := Handler(System{Store: store, Replicas: nobody, Check: func(*serving.Version) error { return nil }})
	r := httptest.NewRequest("POST", "/admin/add_model", strings.NewReader(`{"model_name":"new","model_version":"1","labels":[],"input_type":"doubles","container_name":"i","model_data_path":"p","batch_size":-1}`))
	caller := auth.Caller{Name: "ada", Role: serving.RoleDeployer, Client: "python-requests/2.32"}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r.WithContext(auth.With(r.Context(), caller)))
	if w.Code != http.StatusOK {
		t.Fatal(w.Body)
	}
	d := store.Catalog().Version(serving.ModelID{Model: "new", Version: "1"}).Deployed
	if d == nil || d.By != "ada" || d.Client != "python-requests/2.32" || d.Commit != "" || time.Since(d.At) > time.Minute {
		t.Errorf("it is deployed by %+v", d)
	}
}

// When memory is short, large requests and lists are refused, and others are served on.
func TestWhenMemoryIsShort(t *testing.T) {
	store := having(t)
	b := budget.New(1 << 20)
	h := inflight.New(b, obs.NewRegistry()).Handler(handler(store, nobody))
	large := strings.Repeat(" ", 100_000)
	if status, text := post(h, "get_all_applications", `{"verbose":true}`+large); status != 200 {
		t.Fatalf("%d %s", status, text)
	}
	other := b.Lease()
	if !other.Take(1 << 19) {
		t.Fatal("no room")
	}
	answer := send(h, "POST", "/admin/get_all_applications", `{"verbose":true}`+large)
	if answer.Code != 503 || answer.Header().Get("Retry-After") != "1" || !strings.Contains(answer.Body.String(), "no_memory") {
		t.Errorf("%d %s", answer.Code, answer.Body)
	}
	if status, text := post(h, "get_all_applications", `{"verbose":true}`); status != 200 {
		t.Errorf("%d %s", status, text)
	}
}

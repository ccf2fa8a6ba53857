package web

import (
	"context"
	"errors"
	"html"
	"net/http/httptest"
	"strings"
	"testing"

	"topsail/internal/access"
	"topsail/internal/access/testca"
	"topsail/serving"
	"topsail/serving/catalog"
	"topsail/web/clipper"
)

// having is a system with apps.
type having []*serving.App

func (apps having) Learned(_ context.Context, app, user, about string) (*serving.Learning, error) {
	for _, a := range apps {
		if a.Name == app {
			return &serving.Learning{App: app, Policy: a.Policy.KindName(), User: user, Context: about, Steps: 3, Models: []serving.ModelLearning{
				{ModelID: serving.ModelID{Model: "m", Version: "1"}, Share: 0.5},
			}}, nil
		}
	}
	if app == "away" {
		return nil, errors.New("the store is away")
	}
	return nil, serving.ErrUnknownApp
}

func (apps having) Store() clipper.Store { return stored{apps.Status().Catalog} }

// stored is a catalog that nobody changes.
type stored struct{ cat *serving.Catalog }

func (s stored) Catalog() *serving.Catalog { return s.cat }

func (s stored) Apply(_ context.Context, change catalog.Change, ifRevision uint64) (*serving.Catalog, error) {
	return catalog.Apply(s.cat, change, ifRevision)
}

// running is a system with replicas.
type running struct {
	having
	replicas []Replica
}

func (r running) Status() Status {
	s := r.having.Status()
	s.Replicas = r.replicas
	return s
}

func (r running) Store() clipper.Store {
	id := serving.ModelID{Model: "m", Version: "1"}
	return stored{&serving.Catalog{Models: map[string]*serving.Model{"m": {Name: "m", Current: "1", Versions: map[string]*serving.Version{"1": {ModelID: id}}}}}}
}

func TestClipperSeesReadyReplicas(t *testing.T) {
	system := running{replicas: []Replica{
		{Name: "m-1-0", State: "starting"},
		{Name: "m-1-1", State: "ready", Models: []serving.ModelID{{Model: "m", Version: "1"}}},
	}}
	w := httptest.NewRecorder()
	Handler(system, nil).ServeHTTP(w, httptest.NewRequest("POST", "/admin/get_all_containers", strings.NewReader(`{"verbose":false}`)))
	if w.Code != 200 || w.Body.String() != `["m:1:0"]` {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

func TestOtherSitesChangeNothing(t *testing.T) {
	for site, want := range map[string]int{"cross-site": 403, "same-site": 403, "same-origin": 200, "": 200} {
		w, r := httptest.NewRecorder(), httptest.NewRequest("POST", "/admin/delete_app", strings.NewReader(`{"name":"wine"}`))
		if site != "" {
			r.Header.Set("Sec-Fetch-Site", site)
		}
		Handler(having{{Name: "wine"}}, nil).ServeHTTP(w, r)
		if w.Code != want {
			t.Errorf("from %q: %d %s", site, w.Code, w.Body)
		}
	}
}

func TestLearned(t *testing.T) {
	for _, tt := range []struct {
		path   string
		status int
		says   string
	}{
		{"/api/v1/apps/wine/learned?uid=ann&context=night", 200, `{"app":"wine","policy":"exp3","uid":"ann","context":"night","steps":3,"loss":0,"regret":0,"models":[{"model":"m","version":"1","share":0.5,"worth":0,"judged":0,"loss":0}]}`},
		{"/api/v1/apps/none/learned", 404, `"title":"Unknown app"`},
		{"/api/v1/apps/away/learned", 503, "the store is away"},
	} {
		w := httptest.NewRecorder()
		Handler(having{{Name: "wine", Policy: serving.PolicySpec{Kind: serving.PolicyExp3}}}, nil).ServeHTTP(w, httptest.NewRequest("GET", tt.path, nil))
		if w.Code != tt.status || !strings.Contains(w.Body.String(), tt.says) {
			t.Errorf("%s: %d %s", tt.path, w.Code, w.Body)
		}
	}
}

func (apps having) Status() Status {
	cat := &serving.Catalog{Apps: map[string]*serving.App{}}
	for _, a := range apps {
		cat.Apps[a.Name] = a
	}
	return Status{Gateway: "127.0.0.1:1337", Catalog: cat}
}

func TestOnlyHealthIsOpenWithKeys(t *testing.T) {
	const key = "key-0123456789abcdef"
	keys, err := access.KeysFile(testca.Write(t, t.TempDir(), "keys", []byte(key)), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		path          string
		keys          *access.Keys
		shown         string
		status        int
		says, saysNot string
	}{
		{"/", nil, "", 200, "127.0.0.1:1337", "key"},
		{"/admin/ping", nil, "", 200, "PONG", "key"},
		{"/", keys, "", 401, "Unauthorized", "1337"},
		{"/admin/ping", keys, "", 401, "Unauthorized", "PONG"},
		{"/admin/ping", keys, key[1:], 401, "Unauthorized", "PONG"},
		{"/admin/add_app", keys, "", 401, "Unauthorized", "PONG"},
		{"/admin/none", keys, key, 404, "no such request", "PONG"},
		{"/", keys, key, 200, "127.0.0.1:1337", "Unauthorized"},
		{"/admin/ping", keys, key, 200, "PONG", "Unauthorized"},
		{"/health", keys, "", 200, "ok", "Unauthorized"},
	} {
		w, r := httptest.NewRecorder(), httptest.NewRequest("GET", tt.path, nil)
		if tt.shown != "" {
			r.Header.Set("Authorization", "Bearer "+tt.shown)
		}
		Handler(having{}, tt.keys).ServeHTTP(w, r)
		if body := w.Body.String(); w.Code != tt.status || !strings.Contains(body, tt.says) || strings.Contains(body, tt.saysNot) {
			t.Errorf("%s with %q: %d %s", tt.path, tt.shown, w.Code, body)
		}
	}
}

func TestPoliciesAreShown(t *testing.T) {
	apps := having{
		{Name: "plain", InputType: serving.Doubles},
		{Name: "judged", InputType: serving.Doubles, Models: []string{"a", "b"}, Policy: serving.PolicySpec{
			Kind: serving.PolicyVote, Models: []string{"b", "a"}, Weights: map[string]float64{"b": 2, "a": 1}, Agreement: 0.5,
			Qualifier: "</code><script>",
		}},
	}
	w := httptest.NewRecorder()
	Handler(apps, nil).ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
	page := html.UnescapeString(w.Body.String())
	for _, want := range []string{
		`<td><code>{ kind = "single" }</code></td>`,
		`<td><code>{ kind = "vote", models = ["b", "a"], weights = { "a" = 1, "b" = 2 }, agreement = 0.5, `,
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %s:\n%s", want, page)
		}
	}
	if strings.Contains(w.Body.String(), "<script>") {
		t.Error("an option is a part of the page")
	}
}

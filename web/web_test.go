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

package auth_test

import (
	"crypto/tls"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/internal/access"
	"github.com/topsail-serving/topsail/internal/access/testca"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/web/auth"
)

// world is a guard with a key of the file and keys of a catalog.
type world struct {
	*auth.Guard
	cat *serving.Catalog
	now time.Time
}

const fileKey = "file-key-0123456789abcdef"

// having is a world; keys says where the keys are: in a "file", in the "catalog", which
// are required then, or "" where they are not.
func having(t *testing.T, keys string) *world {
	t.Helper()
	w := &world{cat: &serving.Catalog{Keys: map[string]*serving.Key{}}, now: time.Date(2026, 9, 1, 12, 0, 0, 0, time.UTC)}
	config := auth.Config{
		Catalog: func() *serving.Catalog { return w.cat }, Require: keys == "catalog", Hosts: []string{"models.example", "192.0.2.9"},
		Now: func() time.Time { return w.now },
	}
	if keys == "file" {
		var err error
		if config.Keys, err = access.KeysFile(testca.Write(t, t.TempDir(), "keys", []byte("ann:"+fileKey)), nil); err != nil {
			t.Fatal(err)
		}
	}
	w.Guard = auth.New(config)
	return w
}

func (w *world) key(name string, role serving.Role, apps ...string) (*serving.Key, string) {
	k, secret := serving.NewKey()
	k.Name, k.Role, k.Apps = name, role, apps
	w.cat.Keys[k.ID] = k
	return k, secret
}

// ask says who asks with these headers, and the status of the answer.
func (w *world) ask(method, url string, headers ...string) (auth.Caller, *httptest.ResponseRecorder) {
	r := httptest.NewRequest(method, url, nil)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	answer := httptest.NewRecorder()
	var caller auth.Caller
	w.Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { caller = auth.Of(r.Context()) })).ServeHTTP(answer, r)
	return caller, answer
}

func show(c auth.Caller) string {
	return strings.TrimSpace(fmt.Sprintf("%s %s %s", c.Name, c.Role, strings.Join(c.Apps, ",")))
}

func TestWhoAsks(t *testing.T) {
	for _, keys := range []string{"file", "catalog", ""} {
		w := having(t, keys)
		_, alice := w.key("alice", serving.RoleOperator, "a")
		late, expired := w.key("late", serving.RoleAdmin)
		late.Expires = w.now
		nobody := map[bool]string{true: "local admin"}[keys == ""]
		for _, tt := range []struct {
			header, value, who string
			status             int
		}{
			{"X-None", "", nobody, 200},
			{"X-Api-Key", alice, "alice operator a", 200},
			{"Authorization", "Bearer " + alice, "alice operator a", 200},
			{"Authorization", "Basic eDp5", nobody, 200},
			{"X-Api-Key", alice + "x", "", 401},
			{"X-Api-Key", alice[:len(alice)-1], "", 401},
			{"X-Api-Key", "x", "", 401},
			{"Authorization", "Bearer wrong", "", 401},
			{"X-Api-Key", expired, "", 401},
			{"Cookie", "topsail_session=x.y.z", nobody, 200},
		} {
			caller, answer := w.ask("GET", "http://localhost:1338/", tt.header, tt.value)
			if show(caller) != tt.who || answer.Code != tt.status {
				t.Errorf("keys %q, %s %q: %q %d", keys, tt.header, tt.value, show(caller), answer.Code)
			}
			if answer.Code == 401 && (answer.Header().Get("WWW-Authenticate") == "" || strings.Contains(answer.Body.String(), tt.value)) {
				t.Errorf("%v %s", answer.Header(), answer.Body)
			}
		}
		if want := keys != ""; w.Required() != want {
			t.Errorf("keys %q are required: %v", keys, w.Required())
		}
	}
	w := having(t, "file")
	caller, _ := w.ask("GET", "http://any.example/", "X-Api-Key", fileKey)
	if show(caller) != "ann admin" || caller.From != "192.0.2.1" || caller.ID != "" {
		t.Errorf("got %+v", caller)
	}
	if got := caller.Author(); got != (serving.Author{Who: "ann", From: "192.0.2.1"}) {
		t.Errorf("signs as %+v", got)
	}
}

// A revoked key is refused at once.
func TestRevokedKey(t *testing.T) {
	w := having(t, "catalog")
	k, secret := w.key("x", serving.RoleViewer)
	if _, answer := w.ask("GET", "http://h/", "X-Api-Key", secret); answer.Code != 200 {
		t.Errorf("got %d", answer.Code)
	}
	delete(w.cat.Keys, k.ID)
	if _, answer := w.ask("GET", "http://h/", "X-Api-Key", secret); answer.Code != 401 {
		t.Errorf("got %d", answer.Code)
	}
}

func TestRebinding(t *testing.T) {
	for _, tt := range []struct {
		host   string
		status int
	}{
		{"localhost:1338", 200}, {"LOCALHOST", 200}, {"localhost.", 200}, {"127.0.0.1:1338", 200}, {"127.1.2.3", 200}, {"[::1]:1338", 200}, {"[::1]", 200},
		{"[::ffff:127.0.0.1]:1", 200}, {"models.example:1338", 200}, {"192.0.2.9:1338", 200},
		{"evil.example:1338", 403}, {"localhost.evil.example", 403}, {"192.0.2.1", 403}, {"10.0.0.1:1338", 403}, {"", 403}, {"0.0.0.0:1338", 403}, {"[::]:1338", 403}, {"127.0.0.1.evil.example", 403},
	} {
		w := having(t, "")
		for _, method := range []string{"GET", "POST"} {
			r := httptest.NewRequest(method, "/", nil)
			r.Host = tt.host
			answer := httptest.NewRecorder()
			reached := false
			w.Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached = true })).ServeHTTP(answer, r)
			if answer.Code != tt.status || reached != (tt.status == 200) {
				t.Errorf("%s by %q: %d %s", method, tt.host, answer.Code, answer.Body)
			}
			if !reached && !strings.Contains(answer.Body.String(), "localhost") {
				t.Errorf("it does not say what to do: %s", answer.Body)
			}
		}
	}
	// Who must show a key cannot be tricked by a name.
	if _, answer := having(t, "file").ask("GET", "http://any.example/", "X-Api-Key", fileKey); answer.Code != 200 {
		t.Errorf("got %d", answer.Code)
	}
}

func TestOtherSites(t *testing.T) {
	for _, keys := range []string{"catalog", ""} {
		w := having(t, keys)
		_, secret := w.key("x", serving.RoleAdmin)
		for _, method := range []string{"GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE"} {
			safe := slices.Contains([]string{"GET", "HEAD", "OPTIONS"}, method)
			for _, tt := range []struct {
				name, value string
				own         bool
			}{
				{"Sec-Fetch-Site", "cross-site", false}, {"Sec-Fetch-Site", "same-site", false}, {"Sec-Fetch-Site", "same-origin", true}, {"Sec-Fetch-Site", "none", true},
				{"Origin", "https://evil.example", false}, {"Origin", "null", false}, {"Origin", "http://localhost:1338", true}, {"X-None", "", true},
			} {
				_, answer := w.ask(method, "http://localhost:1338/x", tt.name, tt.value, "X-Api-Key", secret)
				if (answer.Code == 200) != (safe || tt.own) {
					t.Errorf("%s with %s %s: %d", method, tt.name, tt.value, answer.Code)
				}
			}
		}
	}
}

func TestNeeds(t *testing.T) {
	w := having(t, "catalog")
	_, viewer := w.key("viewer", serving.RoleViewer)
	_, deployer := w.key("deployer", serving.RoleDeployer)
	_, scoped := w.key("scoped", serving.RoleDeployer, "a")
	for secret, want := range map[string]int{"": 401, viewer: 403, deployer: 200, scoped: 403} {
		r := httptest.NewRequest("GET", "/", nil)
		if secret != "" {
			r.Header.Set("X-Api-Key", secret)
		}
		answer := httptest.NewRecorder()
		w.Handler(auth.Needs(serving.RoleDeployer, http.NotFoundHandler())).ServeHTTP(answer, r)
		if (answer.Code == 404) != (want == 200) || want != 200 && answer.Code != want {
			t.Errorf("got %d, want %d", answer.Code, want)
		}
	}
	if auth.Of(t.Context()).Role != "" {
		t.Error("somebody asks without a request")
	}
}

// signIn begins a session with a key, and says its cookie and the error.
func (w *world) signIn(key string, from string, encrypted bool) (*http.Cookie, auth.Caller, error) {
	r := httptest.NewRequest("POST", "/", nil)
	r.RemoteAddr = from
	if encrypted {
		r.TLS = &tls.ConnectionState{}
	}
	answer := httptest.NewRecorder()
	caller, err := w.SignIn(answer, r, key)
	if cookies := answer.Result().Cookies(); len(cookies) > 0 {
		return cookies[0], caller, err
	}
	return nil, caller, err
}

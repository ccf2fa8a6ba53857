package auth_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/internal/access"
	"github.com/topsail-serving/topsail/internal/access/testca"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/test/require"
	"github.com/topsail-serving/topsail/test/wait"
	"github.com/topsail-serving/topsail/web/auth"
	"github.com/topsail-serving/topsail/web/problem"
)

func TestSession(t *testing.T) {
	for _, keys := range []string{"file", "catalog"} {
		w := having(t, keys)
		k, secret := w.key("alice", serving.RoleOperator, "a")
		who := "alice operator a"
		if keys == "file" {
			secret, who = fileKey, "ann admin"
		}
		cookie, caller, err := w.signIn(secret, "192.0.2.7:1234", false)
		if err != nil || show(caller) != who || caller.From != "192.0.2.7" {
			t.Fatalf("got %+v, error %v", caller, err)
		}
		if !cookie.HttpOnly || cookie.Secure || cookie.SameSite != http.SameSiteStrictMode || cookie.Path != "/" || cookie.MaxAge != 12*3600 || cookie.Name != "topsail_session" {
			t.Errorf("got the cookie %+v", cookie)
		}
		if strings.Contains(cookie.Value, secret) || strings.Contains(cookie.Value, secret[20:]) {
			t.Error("the cookie has the key")
		}
		if got, _ := w.ask("GET", "http://h/", "Cookie", cookie.String()); show(got) != who {
			t.Errorf("the session is that of %q", show(got))
		}
		// A key that is shown counts more than a session.
		if _, answer := w.ask("GET", "http://h/", "Cookie", cookie.String(), "X-Api-Key", "wrong"); answer.Code != 401 {
			t.Errorf("got %d", answer.Code)
		}
		if encrypted, _, _ := w.signIn(secret, "192.0.2.7:1234", true); !encrypted.Secure {
			t.Error("the cookie may travel in clear")
		}
		// Nothing of it can be changed.
		for i := range cookie.Value {
			forged := *cookie
			forged.Value = cookie.Value[:i] + string(cookie.Value[i]^1) + cookie.Value[i+1:]
			if got, _ := w.ask("GET", "http://h/", "Cookie", forged.Name+"="+forged.Value); got.Role != "" {
				t.Errorf("a session with another byte %d of %q is that of %q", i, cookie.Value, show(got))
			}
		}
		w.now = w.now.Add(auth.SessionLasts)
		if got, answer := w.ask("GET", "http://h/", "Cookie", cookie.String()); got.Role != "" || answer.Code != 200 {
			t.Errorf("after its time the session is that of %q, %d", show(got), answer.Code)
		}
		w.now = w.now.Add(-time.Second)
		if got, _ := w.ask("GET", "http://h/", "Cookie", cookie.String()); got.Role == "" {
			t.Error("the session ends early")
		}
		if delete(w.cat.Keys, k.ID); keys == "catalog" {
			if got, _ := w.ask("GET", "http://h/", "Cookie", cookie.String()); got.Role != "" {
				t.Error("the session outlives its key")
			}
		}
	}
}

// A session of a key of the file ends with the key, and with the process.
func TestSessionsOfTheFile(t *testing.T) {
	dir := t.TempDir()
	path := testca.Write(t, dir, "keys", []byte("ann:"+fileKey))
	open := func() *world {
		keys, err := access.KeysFile(path, nil)
		require.NoError(t, err)
		w := having(t, "")
		w.Guard = auth.New(auth.Config{Keys: keys, Catalog: func() *serving.Catalog { return w.cat }})
		return w
	}
	w := open()
	cookie, _, err := w.signIn(fileKey, "192.0.2.7:1", false)
	require.NoError(t, err)
	if got, _ := open().ask("GET", "http://h/", "Cookie", cookie.String()); got.Role != "" {
		t.Error("another process takes the session")
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "keys"), []byte("ann:another-key-0123456789"), 0o600))
	wait.Until(t, "the end of the session with its key, though another one has its name", func() bool {
		got, _ := w.ask("GET", "http://h/", "Cookie", cookie.String())
		return got.Role == ""
	})
}

func TestSessionsOfOtherKeys(t *testing.T) {
	w := having(t, "catalog")
	_, one := w.key("one", serving.RoleViewer)
	two, _ := w.key("two", serving.RoleAdmin)
	cookie, _, _ := w.signIn(one, "192.0.2.7:1", false)
	parts := strings.SplitN(cookie.Value, ".", 2)
	for _, forged := range []string{"c-" + two.ID + "." + parts[1], "f-" + parts[1], "c-." + parts[1], parts[0], parts[0] + ".", parts[0] + "." + strconv.FormatInt(w.now.Unix()+9, 10) + ".", "f-YW5u.9999999999.", "..", ""} {
		if got, _ := w.ask("GET", "http://h/", "Cookie", "topsail_session="+forged); got.Role != "" {
			t.Errorf("%q is the session of %q", forged, show(got))
		}
	}
}

func TestSignOut(t *testing.T) {
	w := having(t, "catalog")
	answer := httptest.NewRecorder()
	w.SignOut(answer, httptest.NewRequest("DELETE", "/", nil))
	if c := answer.Result().Cookies()[0]; c.MaxAge >= 0 || c.Value != "" || c.Name != auth.SessionCookie || c.Path != "/" {
		t.Errorf("got %+v", c)
	}
}

func statusOf(err error) int {
	if p, ok := errors.AsType[*problem.Problem](err); ok {
		return p.Status
	}
	return 0
}

func TestSignInIsRefused(t *testing.T) {
	w := having(t, "catalog")
	_, query := w.key("query", serving.RoleQuery)
	late, expired := w.key("late", serving.RoleAdmin)
	late.Expires = w.now
	for key, want := range map[string]int{"": 401, "wrong": 401, query: 403, expired: 401, strings.Repeat("x", 1<<20): 401} {
		cookie, caller, err := w.signIn(key, "192.0.2.7:1", false)
		if statusOf(err) != want || cookie != nil || caller.Role != "" {
			t.Errorf("%.40q: %v, %v, error %v", key, cookie, caller, err)
		}
	}
}

func TestFewWrongKeys(t *testing.T) {
	w := having(t, "catalog")
	_, good := w.key("good", serving.RoleViewer)
	try := func(key, from string) int {
		_, _, err := w.signIn(key, from, false)
		return statusOf(err)
	}
	for range 30 {
		if got := try(good, "192.0.2.7:1"); got != 0 {
			t.Fatalf("a good key: %d", got)
		}
	}
	for i := range 10 {
		if got := try("wrong", fmt.Sprintf("192.0.2.7:%d", i)); got != 401 {
			t.Fatalf("after %d: %d", i, got)
		}
	}
	for _, key := range []string{"wrong", good} {
		if got := try(key, "192.0.2.7:1"); got != 429 {
			t.Errorf("after 10 wrong keys: %d", got)
		}
	}
	_, _, err := w.signIn("wrong", "192.0.2.7:1", false)
	if p, ok := errors.AsType[*problem.Problem](err); !ok || p.Header.Get("Retry-After") != "7" {
		t.Errorf("got %+v", p)
	}
	if got := try(good, "192.0.2.8:1"); got != 0 {
		t.Errorf("somebody else: %d", got)
	}
	w.now = w.now.Add(6 * time.Second)
	if got := try("wrong", "192.0.2.7:1"); got != 401 {
		t.Errorf("6 s later: %d", got)
	}
	if got := try("wrong", "192.0.2.7:1"); got != 429 {
		t.Errorf("and again: %d", got)
	}
	w.now = w.now.Add(time.Minute)
	for range 10 {
		if got := try("wrong", "[2001:db8::1]:1"); got != 401 {
			t.Errorf("got %d", got)
		}
	}
	if got := try("wrong", "[2001:db8::2]:1"); got != 429 { // the same network
		t.Errorf("got %d", got)
	}
}

func FuzzSession(f *testing.F) {
	cat := &serving.Catalog{Keys: map[string]*serving.Key{}}
	k, _ := serving.NewKey()
	k.Name, k.Role = "x", serving.RoleAdmin
	cat.Keys[k.ID] = k
	guard := auth.New(auth.Config{Catalog: func() *serving.Catalog { return cat }, Require: true})
	for _, seed := range []string{"c-" + k.ID + ".9999999999.AAAA", "f-eA.1.x", "..", "c-"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, value string) {
		r := httptest.NewRequest("GET", "/", nil)
		r.Header["Cookie"] = []string{"topsail_session=" + value}
		guard.Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			if auth.Of(r.Context()).Role != "" {
				t.Fatalf("%q is a session", value)
			}
		})).ServeHTTP(httptest.NewRecorder(), r)
	})
}

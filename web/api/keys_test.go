package api

import (
	"strings"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/internal/access"
	"github.com/topsail-serving/topsail/web/auth"
)

func TestKeys(t *testing.T) {
	w := having(t)
	answer := w.ask("POST", "/keys", `{"name":"shop","role":"query","apps":["a"],"expires":"2026-09-02T12:00:00Z","limit":{"per_second":5}}`)
	expect(t, answer, 201, `"role":"query"`, `"apps":["a"]`, `"created":"2026-09-01T12:00:00Z"`, `"limit":{"per_second":5}`, "!", "hash")
	made := read[KeyWithSecret](t, answer)
	if got := answer.Header().Get("Location"); got != "/api/v1/keys/"+made.ID {
		t.Errorf("it is at %q", got)
	}
	if k := w.cat.Key([]byte(made.Secret), w.now); k == nil || k.Name != "shop" {
		t.Errorf("the secret opens %v", k)
	}
	expect(t, w.ask("GET", "/keys/"+made.ID, ""), 200, `"name":"shop"`, "!", "secret", "hash", made.Secret)
	expect(t, w.ask("GET", "/keys", ""), 200, `"items":[{"id":`, `"name":"shop"`, "!", "secret", "hash")
	expectCode(t, w.ask("POST", "/keys", `{"name":"shop","role":"query"}`), 409, "exists", "shop")
	for body, says := range map[string]string{
		`{"name":"x","role":"god"}`:                                     "is unknown",
		`{"name":"","role":"viewer"}`:                                   "needs a name",
		`{"name":"x"}`:                                                  `\"role\" is missing`,
		`{"name":"x","role":"admin","apps":["a"]}`:                      "covers everything",
		`{"name":"x","role":"viewer","expires":"2020-01-01T00:00:00Z"}`: "in the past",
		`{"name":"x","role":"viewer","secret":"mine"}`:                  "is unknown",
		`{"name":"x","role":"viewer","apps":["<script>"]}`:              "app name",
	} {
		expectCode(t, w.ask("POST", "/keys", body), 400, "invalid", says)
	}
	expect(t, w.ask("DELETE", "/keys/"+made.ID, ""), 204)
	expectCode(t, w.ask("DELETE", "/keys/"+made.ID, ""), 404, "not_found")
	expectCode(t, w.ask("GET", "/keys/"+made.ID, ""), 404, "not_found")
}

// Nobody revokes the key without which nobody could make another one.
func TestTheLastKeyOfAnAdministrator(t *testing.T) {
	w := having(t)
	own := w.cat.Key([]byte(w.keys["admin"]), w.now).ID
	short := read[KeyWithSecret](t, w.ask("POST", "/keys", `{"name":"short","role":"admin","expires":"2026-09-01T13:00:00Z"}`))
	expect(t, w.ask("DELETE", "/keys/"+own+"?dry_run=true", ""), 200)
	w.now = w.now.Add(time.Hour)
	for _, path := range []string{"/keys/" + own, "/keys/" + own + "?dry_run=true"} {
		expectCode(t, w.ask("DELETE", path, ""), 409, "refused", `the key \"admin\" is the last one`)
	}
	expect(t, w.ask("DELETE", "/keys/"+short.ID, ""), 204) // it lets nobody in
	expect(t, w.ask("DELETE", "/keys/"+w.cat.Key([]byte(w.keys["deployer"]), w.now).ID, ""), 204)
	expect(t, w.ask("POST", "/keys", `{"name":"next","role":"admin"}`), 201)
	expect(t, w.ask("DELETE", "/keys/"+own, ""), 204)
}

// Where no keys are asked for, or a file has some, nobody is locked out.
func TestTheLastKeyOfTheCatalog(t *testing.T) {
	for _, config := range []auth.Config{{}, {Require: true, Keys: &access.Keys{}}} {
		w := having(t)
		config.Catalog = w.Catalog
		w.api.guard = auth.New(config)
		expect(t, w.ask("DELETE", "/keys/"+w.cat.Key([]byte(w.keys["admin"]), w.now).ID, ""), 204)
	}
}

func TestExpiredAndRevokedKeys(t *testing.T) {
	w := having(t)
	made := read[KeyWithSecret](t, w.ask("POST", "/keys", `{"name":"short","role":"viewer","expires":"2026-09-01T13:00:00Z"}`))
	w.keys["short"] = made.Secret
	signedIn := w.askBy("", "POST", "/session", `{"key":"`+made.Secret+`"}`)
	expect(t, signedIn, 200, `"name":"short"`)
	cookie, _, _ := strings.Cut(signedIn.Header().Get("Set-Cookie"), ";")
	expect(t, w.askBy("short", "GET", "/apps", ""), 200)
	expect(t, w.askBy("", "GET", "/apps", "", "Cookie", cookie), 200)
	w.now = w.now.Add(time.Hour)
	expectCode(t, w.askBy("short", "GET", "/apps", ""), 401, "unauthorized")
	expectCode(t, w.askBy("", "GET", "/apps", "", "Cookie", cookie), 401, "unauthorized")

	made = read[KeyWithSecret](t, w.ask("POST", "/keys", `{"name":"long","role":"viewer"}`))
	w.keys["long"] = made.Secret
	signedIn = w.askBy("", "POST", "/session", `{"key":"`+made.Secret+`"}`)
	cookie, _, _ = strings.Cut(signedIn.Header().Get("Set-Cookie"), ";")
	expect(t, w.askBy("", "GET", "/me", "", "Cookie", cookie), 200, `"name":"long"`)
	expect(t, w.ask("DELETE", "/keys/"+made.ID, ""), 204)
	expectCode(t, w.askBy("long", "GET", "/apps", ""), 401, "unauthorized")
	expectCode(t, w.askBy("", "GET", "/me", "", "Cookie", cookie), 401, "unauthorized")
}

func TestSessionsAndMe(t *testing.T) {
	w := having(t)
	expect(t, w.askBy("alice", "GET", "/me", ""), 200,
		`{"name":"alice","role":"deployer","apps":["a"],"keys":true,"mode":"cluster","version":"0.1","gateway":"http://127.0.0.1:1337"}`)
	expectCode(t, w.askBy("", "POST", "/session", `{"key":"wrong-and-long-enough"}`), 401, "unauthorized")
	expectCode(t, w.askBy("", "POST", "/session", `{}`), 400, "invalid", "missing")
	expectCode(t, w.askBy("", "POST", "/session", `{"key":"`+w.keys["query"]+`"}`), 403, "forbidden", "for queries")
	answer := w.askBy("", "DELETE", "/session", "")
	expect(t, answer, 204)
	if got := answer.Header().Get("Set-Cookie"); !strings.HasPrefix(got, "topsail_session=; ") || !strings.Contains(got, "Max-Age=0") {
		t.Errorf("got the cookie %q", got)
	}
}

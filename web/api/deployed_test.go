package api

import (
	"strings"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/serving"
)

const commit = "0123456789abcdef0123456789abcdef01234567"

// TestDeployed registers a version: whoever may read sees who did, when, with what and of
// which commit, which nobody says of themselves, until it becomes something else.
func TestDeployed(t *testing.T) {
	w := having(t)
	claims := `{"version":"3","input_type":"d","command":["m"],"deployed":{"by":"somebody else","at":"2020-01-01T00:00:00Z","client":"another","commit":"c0"}}`
	expect(t, w.askBy("deployer", "POST", "/models/m/versions?commit="+commit, claims, "User-Agent", "curl/8\x01.1 \xff"+strings.Repeat("é", 200)), 201, `"by":"deployer"`)
	first := *deployed(t, w, "3")
	if first.By != "deployer" || first.Commit != commit || time.Since(first.At) > time.Minute || first.At.Location() != time.UTC {
		t.Errorf("it is deployed by %+v", first)
	}
	if !strings.HasPrefix(first.Client, "curl/8.1 é") || len(first.Client) > 200 || len(first.Client) < 190 {
		t.Errorf("the client is %q", first.Client)
	}
	for _, name := range []string{"viewer", "alice"} {
		for _, path := range []string{"/models/m/versions/3", "/models/m/versions"} {
			expect(t, w.askBy(name, "GET", path, ""), 200, `"by":"deployer"`, `"commit":"`+commit+`"`)
		}
	}
	same := func(what string) {
		t.Helper()
		if now := deployed(t, w, "3"); now == nil || *now != first {
			t.Errorf("%s: it is deployed by %+v", what, now)
		}
	}
	expect(t, w.ask("POST", "/models/m/versions?replace=true&commit=c2", `{"version":"3","input_type":"d","command":["m"]}`), 200, commit)
	same("the same again")
	expect(t, w.ask("PUT", "/models/m/versions/3/scale", `{"replicas":4}`), 200, commit)
	same("scaled")
	exported := w.ask("GET", "/catalog", "").Body.String()
	expect(t, w.ask("POST", "/catalog?commit=c2", exported), 200)
	expect(t, w.ask("POST", "/catalog?dry_run=true&commit=c3", exported), 200, `"changes":[]`)
	same("exported and applied")
	other := `{"version":"3","input_type":"d","command":["other"]}`
	dryRunOf := w.askBy("alice", "POST", "/models/m/versions?replace=true&dry_run=true", other)
	expect(t, dryRunOf, 200, `"command":["other"]`, `"by":"alice"`)
	same("after a dry run")
	expect(t, w.askBy("alice", "POST", "/models/m/versions?replace=true", other, "User-Agent", "topsail/1"), 200)
	if now := deployed(t, w, "3"); now.By != "alice" || now.Client != "topsail/1" || now.Commit != "" || now.At.Before(first.At) {
		t.Errorf("replaced it is deployed by %+v", now)
	}
	expect(t, w.ask("POST", "/catalog?commit=c3", `{"versions":[{"model":"m","version":"4","input_type":"d","command":["m"]}]}`), 200)
	if now := deployed(t, w, "4"); now.By != "admin" || now.Commit != "c3" {
		t.Errorf("applied it is deployed by %+v", now)
	}
	for path, body := range map[string]string{"/models/m/versions": `{"version":"5","input_type":"d","command":["m"]}`, "/catalog": `{}`} {
		for _, bad := range []string{"%20x", "-x", "x%0a", strings.Repeat("x", 129), "a&commit=b"} {
			expectCode(t, w.ask("POST", path+"?commit="+bad, body), 400, "invalid", "commit")
		}
	}
	expect(t, w.ask("GET", "/models/m/versions/1", ""), 200, "!", `"deployed"`) // it was registered without anybody's name
}

func deployed(t *testing.T, w *world, version string) *serving.Deployed {
	t.Helper()
	return w.cat.Version(serving.ModelID{Model: "m", Version: version}).Deployed
}

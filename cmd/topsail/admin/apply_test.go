package admin

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/test/require"
	"github.com/topsail-serving/topsail/web/api"
)

const demo = `
[[app]]
name = "wine"
input_type = "doubles"
default_output = "-1"
models = ["forest"]
cache.ttl_micros = 1000000
policy.kind = "exp3"
policy.gamma = 0.25

[[model]]
name = "forest"
version = "1"
input_type = "doubles"
replicas = 0
command = ["./serve"]
scale = { max = 3, idle_micros = 5000000 }
batch.delay_micros = 500
env = { KEY = "hunter2" }
`

func configFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "topsail.toml")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func TestApply(t *testing.T) {
	f := newFake(t)
	f.here(t)
	path := configFile(t, demo)
	const would = `{"applied": false, "revision": 3, "changes": [{"action": "create", "kind": "app", "name": "wine", "after": {}},
		{"action": "update", "kind": "version", "name": "forest:1", "before": {"replicas": 2}, "after": {"replicas": 0}}, {"action": "delete", "kind": "app", "name": "old"}],
		"notes": [{"level": "info", "text": "nobody reads this"}, {"level": "warn", "text": "the definition in the file replaces the one made through the API"}]}`
	f.answer("POST /api/v1/catalog?dry_run=true", answer{status: 200, body: would})
	f.answer("POST /api/v1/catalog", answer{status: 200, body: strings.Replace(would, "false", "true", 1)})
	const plan = "+ app wine\n~ version forest:1\n    replicas: 2 → 0\n- app old\n! the definition in the file replaces the one made through the API\n"

	r := f.run(t, "apply", "-f", path, "--dry-run")
	if r.status != exitUsage || r.out != plan || r.err != "" {
		t.Errorf("a dry run: %+v", r)
	}
	if r := f.run(t, "apply", "-f", path, "--dry-run", "-o", "json"); r.status != exitUsage || !json.Valid([]byte(r.out)) {
		t.Errorf("a dry run for programs: %+v", r)
	}
	r = f.run(t, "apply", "-f", path)
	if r.status != exitFailed || !strings.HasPrefix(r.err, plan) || !strings.Contains(r.err, "--yes") {
		t.Errorf("where nobody can be asked: %+v", r)
	}
	for _, sent := range f.requests() {
		if !strings.Contains(sent.what, "dry_run") {
			t.Fatalf("it sends %s", sent.what)
		}
	}
	f.asked = nil
	r = f.run(t, "apply", "-f", path, "--yes", "--prune")
	if r.status != 0 || r.out != plan+"applied\n" {
		t.Errorf("%+v", r)
	}
	sent := f.requests()
	if len(sent) != 2 {
		t.Fatalf("%+v", sent)
	}
	var doc api.Catalog
	require.NoError(t, json.Unmarshal([]byte(sent[1].body), &doc))
	a, v := doc.Apps[0], doc.Versions[0]
	if !doc.Prune || doc.Current["forest"] != "1" || a.SLO.Std() != 100*time.Millisecond || a.Cache.TTL.Std() != time.Second || a.Policy.Kind != serving.PolicyExp3 || a.Policy.Gamma != 0.25 ||
		v.Replicas != 0 || v.Scale.Idle.Std() != 5*time.Second || v.Batch.Delay.Std() != 500*time.Microsecond || v.Env["KEY"] != "hunter2" || v.Dir != filepath.Dir(path) {
		t.Errorf("it sends %s", sent[1].body)
	}
	if strings.Contains(sent[1].body, "null") {
		t.Errorf("it sends null: %s", sent[1].body)
	}
}

func TestNothingToApply(t *testing.T) {
	f := newFake(t)
	f.here(t)
	f.answer("POST /api/v1/catalog?dry_run=true", answer{status: 200, body: `{"applied": false, "changes": [], "notes": []}`})
	for _, more := range [][]string{nil, {"--dry-run"}, {"--yes"}} {
		r := f.run(t, append([]string{"apply", "-f", configFile(t, demo)}, more...)...)
		if r.status != 0 || r.out != "nothing to change\n" {
			t.Errorf("%v: %+v", more, r)
		}
	}
	if r := f.run(t, "apply", "-f", configFile(t, "[[app]]\nnme = 1\n")); r.status != exitFailed || !strings.Contains(r.err, `topsail.toml:2:1: nme is unknown: did you mean "name"?`) {
		t.Errorf("%+v", r)
	}
	if r := f.run(t, "apply", "-f", "/nothing"); r.status != exitFailed {
		t.Errorf("%+v", r)
	}
}

func TestExport(t *testing.T) {
	f := newFake(t)
	f.here(t)
	f.answer("GET /api/v1/catalog", answer{status: 200, body: "[[app]]\n"}, answer{status: 200, body: `{"apps": []}`})
	if r := f.run(t, "export"); r.status != 0 || r.out != "[[app]]\n" || f.asked[0].header.Get("Accept") != "application/toml" {
		t.Errorf("%+v %+v", r, f.asked)
	}
	if r := f.run(t, "export", "-o", "json"); r.status != 0 || !json.Valid([]byte(r.out)) || f.asked[1].header.Get("Accept") != "application/json" {
		t.Errorf("%+v %+v", r, f.asked)
	}
}

func TestRollBack(t *testing.T) {
	f := newFake(t)
	f.here(t)
	f.answers["GET /api/v1/models/m"] = []answer{{status: 200, body: `{}`, header: map[string]string{"ETag": `"5"`}}}
	f.answer("POST /api/v1/models/m/rollback?dry_run=true", answer{status: 200, body: `{"dry_run": true, "changes": [{"action": "update", "kind": "model", "name": "m", "before": {"current": "2"}, "after": {"current": "1"}}], "effects": ["Queries go to 1 at once."]}`})
	f.answer("POST /api/v1/models/m/rollback", answer{status: 200, body: `{"name": "m"}`})
	const effect = "~ model m\n    current: \"2\" → \"1\"\nQueries go to 1 at once.\n"
	if r := f.run(t, "rollback", "m", "--dry-run"); r.status != 0 || r.out != effect {
		t.Errorf("%+v", r)
	}
	if r := f.run(t, "rollback", "m"); r.status != exitFailed || !strings.HasPrefix(r.err, effect) || !strings.Contains(r.err, "pass --yes to go ahead") {
		t.Errorf("%+v", r)
	}
	if r := f.run(t, "rollback", "m", "1", "--yes"); r.status != 0 || !strings.HasPrefix(r.out, "model m is rolled back") {
		t.Errorf("%+v", r)
	}
	sent := f.requests()
	last := sent[len(sent)-1]
	if last.what != "POST /api/v1/models/m/rollback" || last.body != `{"version":"1"}` {
		t.Errorf("%+v", last)
	}
	for _, one := range sent {
		if one.header.Get("If-Match") != `"5"` {
			t.Errorf("%+v", one)
		}
	}
	if r := f.run(t, "rollback", "x", "--yes"); r.status != exitUnknown {
		t.Errorf("%+v", r)
	}
}

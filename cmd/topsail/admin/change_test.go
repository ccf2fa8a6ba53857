package admin

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestChanges holds which request each command sends, and what it says then. A command is
// split at spaces; _ stands for a space in an argument.
func TestChanges(t *testing.T) {
	f := newFake(t)
	f.here(t)
	for _, test := range []struct{ command, request, body, said string }{
		{"app create wine --input-type doubles", "POST /api/v1/apps", `{"input_type":"doubles","latency_slo_micros":100000,"name":"wine"}`, "app wine is created: query it with `topsail predict wine INPUT`\n"},
		{
			"app create a --input-type ints --slo 5ms --default -1 --model m --model n --weight 2 --limit 10 --burst 3 --no-cache --cache-ttl 1s --require-key --example [1] --cold-start 1s --output-type label --cache-round 0.5",
			"POST /api/v1/apps",
			`{"cache":{"off":true,"round":0.5,"ttl_micros":1000000},"cold_start_micros":1000000,"default_output":"-1","example":"[1]","input_type":"ints","latency_slo_micros":5000,"limit":{"burst":3,"per_second":10},"models":["m","n"],"name":"a","output_type":"label","require_key":true,"weight":2}`,
			"app a is created: query it with `topsail predict a INPUT`\n",
		},
		{"app create a --input-type ints --limit 0", "POST /api/v1/apps", `{"input_type":"ints","latency_slo_micros":100000,"name":"a"}`, "app a is created: query it with `topsail predict a INPUT`\n"},
		{"app set wine --limit 0 --slo 20ms", "PATCH /api/v1/apps/wine", `{"latency_slo_micros":20000,"limit":null}`, "app wine is changed\n"},
		{"app delete wine --yes", "DELETE /api/v1/apps/wine", ``, "app wine is deleted\n"},
		{"app link wine m", "PUT /api/v1/apps/wine/links/m", ``, "app wine is linked to model m\n"},
		{"app unlink wine m", "DELETE /api/v1/apps/wine/links/m", ``, "app wine is no longer linked to model m\n"},
		{"gateways 3 --reason night", "PUT /api/v1/cluster/roles/gateway/count", `{"count":3,"reason":"night"}`, "gateways: 3 from now on\n"},
		{"schedulers 2", "PUT /api/v1/cluster/roles/scheduler/count", `{"count":2,"reason":""}`, "schedulers: 2 from now on\n"},
		{"management 2", "PUT /api/v1/cluster/roles/web/count", `{"count":2,"reason":""}`, "management processes: 2 from now on\n"},
		{"app forget wine --uid ann --context a_b --yes", "DELETE /api/v1/apps/wine/learned?context=a+b&uid=ann", ``, "the policy of app wine is reset; its previous state is kept for a day\n"},
		{"app policy wine kind=single", "PUT /api/v1/apps/wine/policy", `{"kind":"single"}`, "app wine has a new policy\n"},
		{"policy set wine kind=versions canary=2 share=0.1 weights.1=0.9 weights.1.2=0.1", "PUT /api/v1/apps/wine/policy", `{"canary":"2","kind":"versions","share":0.1,"weights":{"1":0.9,"1.2":0.1}}`, "app wine has a new policy\n"},
		{"policy set wine gamma=0.2 costs.wine-boost= models=a,_b", "PUT /api/v1/apps/wine/policy", `{"costs":{},"gamma":0.2,"kind":"exp3","models":["a","b"]}`, "app wine has a new policy\n"},
		{"policy set wine kind=custom model=judge fallback.kind=vote fallback.weights.m=2 sticky=true", "PUT /api/v1/apps/wine/policy", `{"fallback":{"kind":"vote","weights":{"m":2}},"kind":"custom","model":"judge","sticky":true}`, "app wine has a new policy\n"},
		{"model delete m --yes", "DELETE /api/v1/models/m", ``, "model m is deleted\n"},
		{"model current m:3 --replace-contract", "PUT /api/v1/models/m/current?replace_contract=true", `{"version":"3"}`, "m:3 is current; it gets queries as soon as one of its replicas is ready\n"},
		{"version create m:2 --replace-contract --bundle sha256:x", "POST /api/v1/models/m/versions?replace_contract=true", `{"bundle":"sha256:x","version":"2"}`, "m:2 is registered; `topsail replica list --model m` shows its replicas\n"},
		{"model current m 2", "PUT /api/v1/models/m/current", `{"version":"2"}`, "m:2 is current; it gets queries as soon as one of its replicas is ready\n"},
		{"version create m:2 --bundle sha256:x --label a --replicas 0 --min 1 --max 4", "POST /api/v1/models/m/versions", `{"bundle":"sha256:x","labels":["a"],"replicas":0,"scale":{"min":1,"max":4},"version":"2"}`, "m:2 is registered; `topsail replica list --model m` shows its replicas\n"},
		{"version create m 2 --replace --input-type ints -- ./serve", "POST /api/v1/models/m/versions?replace=true", `{"command":["./serve"],"input_type":"ints","version":"2"}`, "m:2 is registered; `topsail replica list --model m` shows its replicas\n"},
		{"version create m 2 --keep-current --input-type ints --dir /srv --env A=b=c --batch-size 8 -- ./serve -x", "POST /api/v1/models/m/versions?keep_current=true", `{"batch":{"max_size":8},"command":["./serve","-x"],"dir":"/srv","env":{"A":"b=c"},"input_type":"ints","version":"2"}`, "m:2 is registered; `topsail replica list --model m` shows its replicas\n"},
		{"version create m:2 --image i --driver docker --cpu 900 --memory 8000 --gpus 2 --gpu-memory 16000 --gpu-device nvidia/gpu --secret T=item --artifact sha256:x@https://h/w@1", "POST /api/v1/models/m/versions", `{"artifacts":[{"source":"https://h/w@1","checksum":"sha256:x"}],"driver":"docker","image":"i","resources":{"cpu":900,"gpu":{"count":2,"device":"nvidia/gpu","memory_mb":16000},"memory_mb":8000},"secrets":{"T":"item"},"version":"2"}`, "m:2 is registered; `topsail replica list --model m` shows its replicas\n"},
		{"version create m:2 --bundle sha256:x --batch-strategy fixed --batch-size 8 --batch-delay 2ms --batch-pad", "POST /api/v1/models/m/versions", `{"batch":{"delay_micros":2000,"max_size":8,"pad":true,"strategy":"fixed"},"bundle":"sha256:x","version":"2"}`, "m:2 is registered; `topsail replica list --model m` shows its replicas\n"},
		{"version create m:2 --bundle sha256:x --gpus 1 --gpu-runtime r --artifact local/w=sha512:x@https://h/w?a=b", "POST /api/v1/models/m/versions", `{"artifacts":[{"source":"https://h/w?a=b","checksum":"sha512:x","destination":"local/w"}],"bundle":"sha256:x","resources":{"gpu":{"count":1,"runtime":"r"}},"version":"2"}`, "m:2 is registered; `topsail replica list --model m` shows its replicas\n"},
		{"version create m:2 --container-addr h:1", "POST /api/v1/models/m/versions", `{"container_addr":"h:1","protocol":"v1","version":"2"}`, "m:2 is registered; `topsail replica list --model m` shows its replicas\n"},
		{"version delete m:1 --yes", "DELETE /api/v1/models/m/versions/1", ``, "m:1 is deleted\n"},
		{"version scale m:1 3", "PUT /api/v1/models/m/versions/1/scale", `{"replicas":3}`, "m:1 will have 3 replicas\n"},
		{"version scale m 1 --max 3", "PUT /api/v1/models/m/versions/1/scale", `{"scale":{"min":0,"max":3}}`, "m:1 will have between 0 and 3 replicas\n"},
		{"version pin m:1 --pause --reason because", "PUT /api/v1/models/m/versions/1/pin", `{"count":-1,"reason":"because"}`, "m:1 is pinned; release it with `topsail version release m:1`\n"},
		{"version pin m 1 4", "PUT /api/v1/models/m/versions/1/pin", `{"count":4}`, "m:1 is pinned; release it with `topsail version release m:1`\n"},
		{"version release m:1", "DELETE /api/v1/models/m/versions/1/pin", ``, "m:1 is released; the scheduler sets its number of replicas\n"},
		{"replica restart m-1-0", "POST /api/v1/replicas/m-1-0/restart", ``, "m-1-0 restarts\n"},
		{"replica drain a/b", "POST /api/v1/replicas/a%2Fb/drain", ``, "a/b drains\n"},
		{"key revoke shop --yes", "DELETE /api/v1/keys/abcdefghij", ``, "key abcdefghij of shop is revoked\n"},
		{"artifact delete --yes sha256:" + digest, "DELETE /api/v1/artifacts/sha256:" + digest, ``, "bundle sha256:" + digest + " is deleted\n"},
	} {
		f.answers[test.request] = []answer{{status: 204}}
		f.asked = nil
		r := f.run(t, words(test.command)...)
		if r.status != 0 || r.out != test.said {
			t.Errorf("%s: %d, says %q%s", test.command, r.status, r.out, r.err)
		}
		sent := f.requests()
		if len(sent) != 1 || sent[0].what != test.request || sent[0].body != test.body {
			t.Errorf("%s: sends %+v", test.command, sent)
			continue
		}
		if patch := strings.HasPrefix(test.request, "PATCH"); patch != (sent[0].header.Get("Content-Type") == "application/merge-patch+json") {
			t.Errorf("%s: is of the type %q", test.command, sent[0].header.Get("Content-Type"))
		}
	}
}

// words splits a command at its spaces.
func words(command string) []string {
	all := strings.Fields(command)
	for i := range all {
		all[i] = strings.ReplaceAll(all[i], "_", " ")
	}
	return all
}

func TestDryRun(t *testing.T) {
	f := newFake(t)
	f.here(t)
	f.answer("PATCH /api/v1/apps/wine?dry_run=true", answer{status: 200, body: `{"dry_run": true, "effects": ["Queries wait less."], "changes": [
		{"action": "update", "kind": "app", "name": "wine", "before": {"slo": 100000, "cache": {"off": true}, "models": ["a"], "env": {"K": "hunter2"}}, "after": {"slo": 20000, "models": ["a", "b"], "env": {"K": "hunter3"}}},
		{"action": "delete", "kind": "model", "name": "m"}, {"action": "create", "kind": "app", "name": "x"}]}`})
	r := f.run(t, "app", "set", "wine", "--slo", "20ms", "--dry-run")
	golden(t, "dryrun", r.out)
	if r.status != 0 || r.err != "" {
		t.Errorf("%+v", r)
	}
	if r := f.run(t, "app", "set", "wine", "--slo", "20ms", "--dry-run", "-o", "json"); !json.Valid([]byte(r.out)) || !strings.Contains(r.out, "Queries wait less.") {
		t.Errorf("%+v", r)
	}
	for _, sent := range f.requests() {
		if !strings.Contains(sent.what, "dry_run=true") {
			t.Errorf("a dry run sends %s", sent.what)
		}
	}
}

// TestChangedPolicyIsTheOneSeen holds that options change the policy that was there when
// they were read.
func TestChangedPolicyIsTheOneSeen(t *testing.T) {
	f := newFake(t)
	f.here(t)
	f.answers["GET /api/v1/apps/wine/policy"] = []answer{{status: 200, body: `{"kind": "exp3"}`, header: map[string]string{"ETag": `"7"`}}}
	f.answer("PUT /api/v1/apps/wine/policy", answer{status: 412, body: `{"detail": "app wine was changed meanwhile: look at it again"}`})
	r := f.run(t, "policy", "set", "wine", "gamma=0.3")
	if r.status != exitFailed || r.err != "topsail: app wine was changed meanwhile: look at it again\n" {
		t.Errorf("%+v", r)
	}
	if sent := f.requests(); sent[0].header.Get("If-Match") != `"7"` {
		t.Errorf("%+v", sent)
	}
}

func TestPolicyFile(t *testing.T) {
	f := newFake(t)
	f.here(t)
	f.answer("PUT /api/v1/apps/wine/policy", answer{status: 200, body: `{}`})
	for text, want := range map[string]string{
		"kind = 'exp3'\ngamma = 0.25\n[costs]\na = 1": `{"kind":"exp3","costs":{"a":1},"gamma":0.25}`,
		` {"kind": "vote", "weights": {"a": 2}}`:      `{"kind":"vote","weights":{"a":2}}`,
	} {
		f.asked = nil
		r := f.runWith(t.Context(), t, text, "policy", "set", "wine", "-f", "-")
		if sent := f.requests(); r.status != 0 || len(sent) != 1 || compact(sent[0].body) != want {
			t.Errorf("%s: %+v, %+v", text, r, sent)
		}
	}
	for _, text := range []string{"kind = ", `{"kind": 1}`, "gama = 1", `{`} {
		if r := f.runWith(t.Context(), t, text, "policy", "set", "wine", "-f", "-"); r.status != exitUsage {
			t.Errorf("%s: %+v", text, r)
		}
	}
}

func compact(text string) string {
	return strings.ReplaceAll(strings.ReplaceAll(text, ": ", ":"), ", ", ",")
}

func TestVersionFile(t *testing.T) {
	f := newFake(t)
	f.here(t)
	f.answer("POST /api/v1/models/m/versions", answer{status: 201, body: `{}`})
	file := filepath.Join(t.TempDir(), "v.json")
	if err := os.WriteFile(file, []byte(`{"input_type": "ints", "replicas": 1, "labels": ["x"]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	r := f.run(t, "version", "create", "m:3", "-f", file, "--replicas", "2")
	if sent := f.requests(); r.status != 0 || sent[0].body != `{"input_type":"ints","labels":["x"],"replicas":2,"version":"3"}` {
		t.Errorf("%+v %+v", r, sent)
	}
	if r := f.runWith(t.Context(), t, `[1]`, "version", "create", "m:3", "-f", "-"); r.status != exitUsage {
		t.Errorf("%+v", r)
	}
	if r := f.runWith(t.Context(), t, strings.Repeat(" ", maxFileBytes+1), "version", "create", "m:3", "-f", "-"); r.status != exitUsage || !strings.Contains(r.err, "larger than 1.05 MB") {
		t.Errorf("%+v", r)
	}
}

func TestKeySecret(t *testing.T) {
	f := newFake(t)
	f.here(t)
	f.answer("POST /api/v1/keys", answer{status: 201, body: `{"id": "abc", "name": "shop", "role": "query", "created": "2026-01-02T03:04:05Z", "secret": "topsail_abc_SECRET"}`})
	r := f.run(t, "key", "create", "shop", "--role", "query", "--app", "wine", "--limit", "5")
	if r.out != "topsail_abc_SECRET\n" || r.err != "key abc of shop is created; its secret cannot be shown again\n" {
		t.Errorf("%+v", r)
	}
	if sent := f.requests()[0]; sent.body != `{"apps":["wine"],"limit":{"per_second":5},"name":"shop","role":"query"}` {
		t.Errorf("%+v", sent)
	}
	file := filepath.Join(t.TempDir(), "shop.key")
	if r := f.run(t, "key", "create", "shop", "--role", "query", "--secret-file", file); r.status != 0 || strings.Contains(r.out+r.err, "SECRET") {
		t.Errorf("%+v", r)
	}
	text, err := os.ReadFile(file)
	info, _ := os.Stat(file)
	if err != nil || string(text) != "topsail_abc_SECRET\n" || info.Mode().Perm() != 0o600 {
		t.Errorf("%q %v %v", text, info.Mode(), err)
	}
	before := len(f.requests())
	if r := f.run(t, "key", "create", "shop", "--role", "query", "--secret-file", file); r.status != exitFailed || len(f.requests()) != before {
		t.Errorf("a key was made whose file exists: %+v", r)
	}
	f.answers["POST /api/v1/keys"] = []answer{{status: 403, body: `{"detail": "this needs the role admin"}`}}
	other := filepath.Join(t.TempDir(), "other.key")
	if r := f.run(t, "key", "create", "shop", "--role", "query", "--secret-file", other); r.status != exitRefused {
		t.Errorf("%+v", r)
	}
	if _, err := os.Stat(other); err == nil {
		t.Error("a file stays without a secret")
	}
}

// What cannot be undone is not done by a script that does not say --yes.
func TestWithoutATerminalNothingIsDeleted(t *testing.T) {
	f := newFake(t)
	f.here(t)
	for _, command := range []string{
		"app delete wine", "app forget wine", "model delete m", "version delete m:1", "stream delete s", "key revoke shop", "artifact delete sha256:" + digest,
	} {
		f.asked = nil
		r := f.run(t, strings.Fields(command)...)
		if r.status != exitFailed || !strings.Contains(r.err, "cannot ask for confirmation without a terminal: pass --yes to go ahead") {
			t.Errorf("%s: %+v", command, r)
		}
		for _, sent := range f.requests() {
			if !strings.HasPrefix(sent.what, "GET ") {
				t.Errorf("%s sends %s", command, sent.what)
			}
		}
	}
}

func TestRevokeByName(t *testing.T) {
	f := newFake(t)
	f.here(t)
	f.answers["GET /api/v1/keys?limit=1000"] = []answer{{status: 200, body: `{"items": [{"id": "a", "name": "x"}, {"id": "b", "name": "x"}, {"id": "x1", "name": "a"}]}`}}
	f.answer("DELETE /api/v1/keys/a", answer{status: 204})
	if r := f.run(t, "key", "revoke", "x", "--yes"); r.status != exitFailed || !strings.Contains(r.err, `2 keys are named "x"`) {
		t.Errorf("%+v", r)
	}
	if r := f.run(t, "key", "revoke", "y", "--yes"); r.status != exitUnknown {
		t.Errorf("%+v", r)
	}
	// The id wins over a name that another key has.
	if r := f.run(t, "key", "revoke", "a", "--yes"); r.status != 0 || !slices.ContainsFunc(f.requests(), func(a asked) bool { return a.what == "DELETE /api/v1/keys/a" }) {
		t.Errorf("%+v", r)
	}
}

// FuzzOptions holds that no pairs make the parser panic, and that what it takes makes a
// policy of known options.
func FuzzOptions(f *testing.F) {
	for _, pair := range []string{"kind=exp3", "gamma=0.1", "weights.1.2=3", "fallback.fallback.kind=x", "models=a,,b", "sticky=maybe", "share=NaN", "=", "a", "costs=", "fallback.x", "most=1e9", "share=1e999"} {
		f.Add(pair, "kind=vote")
	}
	f.Fuzz(func(t *testing.T, one, other string) {
		options, err := parseOptions([]string{one, other})
		if err != nil {
			return
		}
		body, err := changeOptions(json.RawMessage(`{"kind":"exp3","gamma":0.5,"costs":{"a":1}}`), options)
		if err == nil && !json.Valid(body) {
			t.Fatalf("%q %q: %s", one, other, body)
		}
	})
}

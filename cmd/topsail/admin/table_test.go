package admin

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/web/api"
)

// lists are the commands that only read, each with the name of its golden file.
var lists = map[string]string{
	"app_list":        "app list",
	"app_list_wide":   "app list -o wide",
	"app_get":         "app get wine",
	"app_policy":      "app policy wine",
	"model_history":   "model history wine-forest",
	"app_insight":     "app insight wine --uid ann",
	"app_traffic":     "app traffic",
	"policy_get":      "policy get wine",
	"model_list":      "model list",
	"model_get":       "model get wine-forest",
	"version_list":    "version list",
	"version_wide":    "version list wine-forest -o wide",
	"version_get":     "version get wine-forest:1",
	"version_job":     "version job wine-forest 1",
	"version_staged":  "version get digits:3",
	"version_stages":  "version stages digits 3",
	"version_whole":   "version stages wine-forest:1 --window 15m",
	"replica_staged":  "replica get digits-3-0",
	"replica_list":    "replica list",
	"replica_wide":    "replica list -o wide",
	"replica_get":     "replica get wine-forest-1-0",
	"key_list":        "key list",
	"stream_list":     "stream list",
	"artifact_list":   "artifact list",
	"artifact_get":    "artifact get sha256:" + digest,
	"decision_list":   "decision list",
	"audit":           "audit",
	"top":             "top",
	"usage":           "usage",
	"usage_app":       "usage --app wine -o wide",
	"usage_model":     "usage --model wine-forest",
	"app_traffic_one": "app traffic wine",
}

const digest = "1111111111111111111111111111111111111111111111111111111111111111"

func TestTables(t *testing.T) {
	f := newFake(t)
	f.here(t)
	for name, command := range lists {
		r := f.run(t, strings.Fields(command)...)
		if r.status != 0 {
			t.Errorf("%s: %s", command, r.err)
		}
		out := r.out
		if name == "app_traffic_one" { // its times are those of this place
			for _, at := range []int64{0, 10} {
				out = strings.ReplaceAll(out, time.Unix(at, 0).Format(time.TimeOnly), "HH:MM:SS")
			}
		}
		golden(t, name, out)
		if strings.Contains(out, "hunter2") {
			t.Errorf("%s shows a secret", command)
		}
	}
}

// TestJSON holds that programs get one document, and that of a single answer nothing is
// lost.
func TestJSON(t *testing.T) {
	f := newFake(t)
	f.here(t)
	for _, command := range lists {
		command = strings.ReplaceAll(command, " -o wide", "")
		r := f.run(t, append(strings.Fields(command), "-o", "json")...)
		if !json.Valid([]byte(r.out)) || r.status != 0 || r.err != "" {
			t.Errorf("%s: %d %s\n%s", command, r.status, r.err, r.out)
		}
	}
	r := f.run(t, "app", "get", "wine", "-o", "json")
	var got, want any
	if json.Unmarshal([]byte(r.out), &got) != nil || json.Unmarshal([]byte(f.answers["GET /api/v1/apps/wine"][0].body), &want) != nil {
		t.Fatal(r.out)
	}
	g, _ := json.Marshal(got)
	if w, _ := json.Marshal(want); string(g) != string(w) {
		t.Errorf("got %s, want %s", g, w)
	}
}

func TestPages(t *testing.T) {
	f := newFake(t)
	f.here(t)
	f.answers["GET /api/v1/apps?limit=1000"] = []answer{{status: 200, body: `{"items": [{"name": "a"}], "next": "x y"}`}}
	f.answer("GET /api/v1/apps?cursor=x+y&limit=1000", answer{status: 200, body: `{"items": [{"name": "b"}]}`})
	if r := f.run(t, "app", "list", "-o", "json"); strings.Join(strings.Fields(r.out), "") != `{"items":[{"name":"a"},{"name":"b"}]}` {
		t.Errorf("got %s%s", r.out, r.err)
	}
	f.answers["GET /api/v1/apps?limit=1000"] = []answer{{status: 200, body: `{"items": []}`}}
	if r := f.run(t, "app", "list"); r.out != "" || !strings.HasPrefix(r.err, "there are no apps yet: ") || r.status != 0 {
		t.Errorf("an empty list: %+v", r)
	}
}

// TestHostileNames holds that nothing that a server sends makes a terminal obey, and that
// every object is one line.
func TestHostileNames(t *testing.T) {
	f := newFake(t)
	f.here(t)
	evil := `"a\u001b[2J\u001b]0;x\u0007\nb\u009b1m\u202e<script>"`
	f.answers["GET /api/v1/apps?limit=1000"] = []answer{{status: 200, body: `{"items": [{"name": ` + evil + `, "input_type": "ints", "default_output": ` + evil + `, "models": [` + evil + `]}]}`}}
	f.answers["GET /api/v1/models?limit=1000"] = []answer{{status: 200, body: `{"items": [{"name": ` + evil + `, "versions": [` + evil + `], "apps": []}]}`}}
	f.answers["GET /api/v1/replicas?limit=1000"] = []answer{{status: 200, body: `{"items": [{"id": ` + evil + `, "model": "m", "version": "1", "state": ` + evil + `, "reason": ` + evil + `}]}`}}
	f.answers["GET /api/v1/audit?limit=20"] = []answer{{status: 200, body: `{"items": [{"who": ` + evil + `, "action": "update", "before": {` + evil + `: 1}, "after": {}}]}`}}
	f.answers["GET /api/v1/apps/wine"] = []answer{{status: 400, body: `{"detail": ` + evil + `}`}}
	for _, command := range []string{"app list", "model list", "replica list", "audit", "app get wine"} {
		r := f.run(t, strings.Fields(command)...)
		if strings.ContainsAny(r.out+r.err, "\x1b\a\u009b\u202e") {
			t.Errorf("%s: %q", command, r.out+r.err)
		}
		if lines := strings.Count(r.out, "\n"); lines > 2 {
			t.Errorf("%s: one object in %d lines: %q", command, lines-1, r.out)
		}
	}
	if r := f.run(t, "__complete", "app", "get", ""); strings.Contains(r.out, "script") {
		t.Errorf("the shell is offered %q", r.out)
	}
}

func TestCompletion(t *testing.T) {
	f := newFake(t)
	f.here(t)
	for command, want := range map[string]string{
		"app get |":               "wine\nsentiment\n:4\n",
		"app get w|":              "wine\n:4\n",
		"app get wine |":          ":4\n",
		"app link wine wine|":     "wine-forest\n:4\n",
		"version get |":           "wine-forest:1\nwine-forest:2\necho:a\n:4\n",
		"rollback wine-forest |":  "1\n2\n:4\n",
		"replica restart |":       "wine-forest-1-0\nwine-forest-2-0\n:4\n",
		"predict w|":              "wine\n:4\n",
		"key revoke |":            "abcdefghij\nklmnopqrst\n:4\n",
		"artifact get |":          "sha256:" + digest + "\n:4\n",
		"logs wine-forest-1|":     "wine-forest-1-0\n:4\n",
		"model current nothing |": ":4\n",
	} {
		var out strings.Builder
		root := newRoot()
		root.SetArgs(append([]string{"__complete"}, strings.Split(strings.TrimSuffix(command, "|"), " ")...))
		root.SetOut(&out)
		root.SetErr(&strings.Builder{})
		if err := root.ExecuteContext(t.Context()); err != nil || out.String() != want {
			t.Errorf("%s: %v, got %q, want %q", command, err, out.String(), want)
		}
	}
}

func TestNotesOnStages(t *testing.T) {
	much, little := 0.9, 0.2
	for want, s := range map[string]api.StageTraffic{
		"bottleneck":         {Stage: "embed", Workers: 2, Ready: 1, Busy: &much},
		"busiest":            {Stage: "embed", Workers: 2, Ready: 2, Busy: &little},
		"no worker is ready": {Stage: "embed", Workers: 2},
		"":                   {Stage: "rank", Workers: 2, Ready: 2, Busy: &much},
	} {
		if got := noteOn(s, "embed"); got != want {
			t.Errorf("%+v: %q, want %q", s, got, want)
		}
	}
	if got := noteOn(api.StageTraffic{Stage: "embed"}, ""); got != "" {
		t.Errorf("of a stage that nobody runs: %q", got)
	}
}

package api

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/serving/bundle"
	"github.com/topsail-serving/topsail/serving/catalog"
)

const fullVersion = `{"model":"m","version":"v3","input_type":"d","input_length":4,"labels":["x"],"replicas":2,
	"scale":{"min":1,"max":5,"metric":"rate","target":9,"utilisation":0.7,"idle_micros":1,"step_up":2,"step_down":3,"cooldown_up_micros":4,"cooldown_down_micros":5,"dead_band":0.1},
	"batch":{"strategy":"fixed","max_size":8,"delay_micros":500},"resources":{"cpu":100,"memory_mb":200,"gpu":{"count":1,"device":"nvidia/gpu"}},
	"command":["run","it"],"dir":"/srv","env":{"A":"b"},"watch":["f"],"connections":2,"protocol":"v2","driver":"exec",
	"artifacts":[{"source":"https://models.example/a","checksum":"sha256:0000000000000000000000000000000000000000000000000000000000000000","destination":"local/"}],
	"secrets":{"S":"item"},"origin":"file","current":false,"serving":true,"used_by":["x"],"example":"[]","pin":{"count":7}}`

func TestCreateVersion(t *testing.T) {
	w := having(t)
	answer := w.ask("POST", "/models/m/versions", fullVersion)
	expect(t, answer, 201, `"current":true`, `"serving":false`, `"used_by":["a"]`, `"env":{"A":"b"}`, `"delay_micros":500`, `"cooldown_down_micros":5`, "!", `"pin"`, `"example"`)
	if got := answer.Header().Get("Location"); got != "/api/v1/models/m/versions/v3" {
		t.Errorf("it is at %q", got)
	}
	want := &serving.Version{
		ModelID: serving.ModelID{Model: "m", Version: "v3"}, InputType: serving.Doubles, InputLength: 4, Labels: []string{"x"}, Replicas: 2,
		Scale: &serving.ScaleSpec{Min: 1, Max: 5, Metric: "rate", Target: 9, Utilisation: 0.7, Idle: serving.Duration(1e3), StepUp: 2, StepDown: 3, CooldownUp: serving.Duration(4e3), CooldownDown: serving.Duration(5e3), DeadBand: 0.1},
		Batch: serving.BatchSpec{Strategy: "fixed", MaxSize: 8, Delay: serving.Duration(5e5)}, Resources: serving.Resources{CPU: 100, MemoryMB: 200, GPU: serving.GPU{Count: 1, Device: "nvidia/gpu"}},
		Container: serving.Container{
			Command: []string{"run", "it"}, Dir: "/srv", Env: map[string]string{"A": "b"}, Watch: []string{"f"}, Connections: 2, Protocol: "v2", Driver: "exec",
			Artifacts: []serving.Artifact{{Source: "https://models.example/a", Checksum: fmt.Sprintf("sha256:%064d", 0), Destination: "local/"}},
			Secrets:   map[string]string{"S": "item"},
		},
		Origin: serving.FromAPI,
	}
	want.Generation, want.Deployed = w.cat.Models["m"].Versions["v3"].Generation, w.cat.Models["m"].Versions["v3"].Deployed
	if got := w.cat.Models["m"].Versions["v3"]; !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	shown := w.ask("GET", "/models/m/versions/v3", "")
	if shown.Body.String() != answer.Body.String() || shown.Header().Get("ETag") != answer.Header().Get("ETag") {
		t.Errorf("created %s, shown %s", answer.Body, shown.Body)
	}
	expect(t, w.ask("POST", "/models/m/versions", fullVersion), 200)
	other := `{"version":"v3","input_type":"d","command":["run","it"],"env":{"A":"c"}}`
	expectCode(t, w.ask("POST", "/models/m/versions", other), 409, "exists", "immutable", "env.A has another secret", "replicas was 2 and is 1", "--replace")
	expectCode(t, w.ask("POST", "/models/m/versions?dry_run=true", other), 409, "exists")
	expect(t, w.ask("POST", "/models/m/versions?replace=true", other), 200, `"env":{"A":"c"}`, "!", want.Generation)
	expect(t, w.ask("POST", "/models/m/versions?replace=true", other), 200)
	if v := w.cat.Models["m"].Versions["v3"]; v.Generation == want.Generation || v.Container.Env["A"] != "c" {
		t.Errorf("replaced it is %+v", v)
	}
	expect(t, w.ask("GET", "/models/m/versions", ""), 200, `"items":[{"model":"m","version":"1"`, `"version":"v3"`)
	expectCode(t, w.ask("GET", "/models/none/versions", ""), 404, "not_found")
	expectCode(t, w.ask("GET", "/models/m/versions/none", ""), 404, "not_found")
}

func TestCurrentAfterCreation(t *testing.T) {
	w := having(t)
	expect(t, w.ask("POST", "/models/m/versions?keep_current=true", `{"version":"3","input_type":"d","command":["m"]}`), 201, `"current":false`, `"replicas":1`)
	expect(t, w.ask("POST", "/models/m/versions", `{"version":"3","input_type":"d","command":["m"]}`), 200, `"current":true`) // the same again, and asked for
	expect(t, w.ask("POST", "/models/fresh/versions", `{"version":"1","input_type":"s","replicas":0}`), 201, `"current":true`, `"replicas":0`)
	expectCode(t, w.ask("POST", "/models/m/versions?keep_current=yes", `{"version":"4","input_type":"d","command":["m"]}`), 400, "invalid", "keep_current")
}

// A version that was made without replicas, since it has nothing to run, gets none later.
func TestNothingToRunStaysSo(t *testing.T) {
	w := having(t)
	expect(t, w.ask("POST", "/models/fresh/versions", `{"version":"1","input_type":"s","replicas":0}`), 201)
	for _, sent := range []struct{ method, path, body string }{
		{"PUT", "/models/fresh/versions/1/scale", `{"replicas":2}`},
		{"PUT", "/models/fresh/versions/1/scale", `{"scale":{"min":0,"max":2}}`},
		{"PUT", "/models/fresh/versions/1/pin", `{"count":1,"reason":"r"}`},
		{"POST", "/models/fresh/versions", `{"version":"1","input_type":"s","replicas":1}`},
		{"POST", "/catalog", `{"versions":[{"model":"fresh","version":"1","input_type":"s","replicas":1}]}`},
	} {
		expectCode(t, w.ask(sent.method, sent.path, sent.body), 400, "invalid", "nothing to run: give the version a bundle")
	}
	expect(t, w.ask("PUT", "/models/fresh/versions/1/scale", `{"replicas":0}`), 200)
	expect(t, w.ask("PUT", "/models/fresh/versions/1/pin", `{"count":0,"reason":"r"}`), 200)
}

// A version that names no way to size batches has the one that it has in a file. Others,
// such as Clipper's API, leave it open: that is the same.
func TestBatchStrategy(t *testing.T) {
	w := having(t)
	expect(t, w.ask("POST", "/models/m/versions", `{"version":"3","input_type":"d","command":["m"],"batch":{"max_size":4}}`), 201, `"batch":{"strategy":"aimd","max_size":4}`)
	expect(t, w.ask("POST", "/models/m/versions", `{"version":"3","input_type":"d","command":["m"],"batch":{"strategy":"aimd","max_size":4}}`), 200)
	for _, strategy := range []string{"", "aimd"} {
		body := `{"version":"1","input_type":"d","command":["python","m.py"],"env":{"TOKEN":"s3cret"},"batch":{"strategy":"` + strategy + `"}}`
		expect(t, w.ask("POST", "/models/m/versions", body), 200, "!", `"batch"`)
		expectCode(t, w.ask("POST", "/models/m/versions", strings.Replace(body, strategy+`"}}`, `quantile"}}`, 1)), 409, "exists")
	}
	expect(t, w.ask("POST", "/catalog", `{"versions":[{"model":"new","version":"1","input_type":"d","command":["m"]}]}`), 200, `"batch":{"strategy":"aimd"}`)
}

func TestVersionsThatAreRefused(t *testing.T) {
	w := having(t)
	for body, says := range map[string]string{
		`{"model":"n","version":"9","input_type":"d","command":["m"]}`: "the path says",
		`{"version":"9"}`:    "needs an input_type",
		`{"input_type":"d"}`: `\"version\" is missing`,
		`{"version":"9:8","input_type":"d","command":["m"]}`:                     "use 1 to 63",
		`{"version":"9","input_type":"i","command":["m"]}`:                       "takes doubles, and its model",
		`{"version":"9","input_type":"d","env":{"A":"(hidden)"}}`:                "give the value itself",
		`{"version":"9","input_type":"d","env":{"A=":"b"}}`:                      "is not a valid variable",
		`{"version":"9","input_type":"d"}`:                                       "nothing to run: give the version a bundle",
		`{"version":"9","input_type":"d","scale":{"max":2},"replicas":0}`:        "nothing to run: give the version a bundle",
		`{"version":"9","input_type":"d","env":{"":"b"}}`:                        "is not a valid variable",
		`{"version":"9","input_type":"d","scale":{"min":1}}`:                     `\"scale.max\" is missing`,
		`{"version":"9","input_type":"d","replicas":1.5}`:                        `\"replicas\" must be a whole number`,
		`{"version":"9","input_type":"d","batch":{"delay_micros":9e99}}`:         `\"batch.delay_micros\" must be a whole number that fits`,
		`{"version":"9","input_type":"d","resources":{"gpu":{"cuont":1}}}`:       `\"resources.gpu.cuont\" is unknown`,
		`{"version":"9","input_type":"d","bundle":"sha256:12"}`:                  "must be a digest",
		`{"version":"9","input_type":"d","bundle":"` + digestOf(5) + `"}`:        "upload it first",
		`{"version":"9","bundle":"` + digestOf(5) + `","bundle_url":"http://x"}`: "needs an input_type",
	} {
		answer := w.ask("POST", "/models/m/versions", body)
		expect(t, answer, 400, says)
	}
	if n := len(w.cat.Models["m"].Versions); n != 2 {
		t.Errorf("there are %d versions", n)
	}
}

func digestOf(n int) string { return fmt.Sprintf("sha256:%064x", n) }

func TestVersionsOfStages(t *testing.T) {
	w := having(t)
	body := `{"version":"3","input_type":"d","command":["serve"],"stages":[{"name":"a","code":"m:A","workers":2,"cpus":[1,2]},
		{"name":"b","after":["a","input"],"batch":{"strategy":"fixed","max_size":4,"delay_micros":250},"idempotent":true}]}`
	expect(t, w.ask("POST", "/models/m/versions", body), 201, `"stages":[{"name":"a","code":"m:A","workers":2,"cpus":[1,2]},{"name":"b","after":["a","input"]`, `"delay_micros":250`)
	want := serving.Pipeline{
		{Name: "a", Code: "m:A", Workers: 2, CPUs: []int{1, 2}},
		{Name: "b", After: []string{"a", "input"}, Batch: serving.StageBatch{Strategy: "fixed", MaxSize: 4, Delay: serving.Duration(250e3)}, Idempotent: true},
	}
	if got := w.cat.Models["m"].Versions["3"].Stages; !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	expect(t, w.ask("POST", "/models/m/versions", body), 200)
	expect(t, w.ask("GET", "/catalog", ""), 200, `"stages":[{"name":"a"`)
	for body, says := range map[string]string{
		`"stages":[{"workers":2}]`:                                          `\"stages[0].name\" is missing`,
		`"stages":[{"name":"a","model":"m"}]`:                               `model and app are for the stages of apps`,
		`"stages":[{"name":"a","cpus":[1.5]}]`:                              `\"stages[0].cpus[0]\" must be a whole number`,
		`"stages":[{"name":"a","batch":{"delay_micros":9223372036854776}}]`: `\"stages[0].batch.delay_micros\" is out of range`,
		`"stages":[{"name":"a"}]`:                                           "need a command or a bundle",
		`"command":["c"],"stages":[{"name":"a"},{"name":"a"}]`:              "another stage has this name",
		`"command":["c"],"stages":[{"name":"a"}],"batch":{"max_size":2}`:    "give each stage its own",
	} {
		expect(t, w.ask("POST", "/models/m/versions", `{"version":"9","input_type":"d",`+body+`}`), 400, says)
	}
}

func TestVersionsOfBundles(t *testing.T) {
	w := having(t)
	upload := func(manifest string) string {
		answer := w.ask("POST", "/artifacts", manifest, "Content-Type", "application/zip")
		expect(t, answer, 201)
		return read[Artifact](t, answer).Digest
	}
	good := upload(`{"format":1,"runtime":"python","python":"3.11","input_type":"doubles","input_length":3,"example":[1,2,3],"files":{}}`)
	old := upload(`{"format":1,"runtime":"python","python":"2.7","input_type":"doubles","files":{}}`)
	expect(t, w.ask("POST", "/models/m/versions", `{"version":"3","bundle":"`+good+`"}`), 201,
		`"input_type":"doubles"`, `"input_length":3`, `"example":"[1,2,3]"`)
	expect(t, w.ask("GET", "/models/m/versions/3", ""), 200, `"example":"[1,2,3]"`)
	expect(t, w.ask("POST", "/models/m/versions", `{"version":"3","bundle":"`+good+`"}`), 200)
	expect(t, w.ask("POST", "/models/fresh/versions", `{"version":"4","input_type":"ints","bundle":"`+good+`"}`), 201, `"input_type":"integers"`, "!", "input_length")
	expectCode(t, w.ask("POST", "/models/m/versions", `{"version":"5","bundle":"`+old+`"}`), 400, "not_runnable", "Python 2.7")
	expectCode(t, w.ask("POST", "/models/m/versions", `{"version":"5","bundle":"`+digestOf(1)+`"}`), 400, "no_bundle", "upload it first")
	expect(t, w.ask("POST", "/models/m/versions", `{"version":"5","input_type":"d","bundle":"`+digestOf(1)+`","bundle_url":"https://models.example/b"}`), 201)
}

func TestImagesNeedACluster(t *testing.T) {
	w := having(t)
	body := `{"version":"9","input_type":"d","image":"models.example/i:1"}`
	w.api.Mode = "local"
	expectCode(t, w.ask("POST", "/models/m/versions", body), 400, "invalid", "local mode cannot run images")
	expectCode(t, w.ask("POST", "/catalog", `{"versions":[{"model":"x",`+body[1:]+`]}`), 400, "invalid", "local mode cannot run images")
	expect(t, w.ask("POST", "/models/m/versions", `{"version":"9","input_type":"d","image":"i","command":["x"]}`), 201)
	w.api.Mode = "cluster"
	expect(t, w.ask("POST", "/models/fresh/versions", body), 201)
}

func TestEnvIsHidden(t *testing.T) {
	w := having(t)
	for name, shown := range map[string]string{"viewer": catalog.Hidden, "operator": catalog.Hidden, "deployer": "s3cret", "admin": "s3cret", "bob": "", "alice": "s3cret"} {
		answer := w.askBy(name, "GET", "/models/m/versions/1", "")
		if shown == "" {
			expectCode(t, answer, 404, "not_found")
			continue
		}
		expect(t, answer, 200, `"env":{"TOKEN":"`+shown+`"}`)
		expect(t, w.askBy(name, "GET", "/models/m/versions", ""), 200, `"env":{"TOKEN":"`+shown+`"}`)
		if etag := answer.Header().Get("ETag"); etag != w.ask("GET", "/models/m/versions/1", "").Header().Get("ETag") {
			t.Errorf("%s has another ETag", name)
		}
	}
	expect(t, w.askBy("operator", "DELETE", "/models/m/versions/1/pin?dry_run=true", ""), 200, "!", "s3cret")
	expect(t, w.askBy("operator", "PUT", "/models/m/versions/1/scale", `{"replicas":2}`), 200, catalog.Hidden, "!", "s3cret")
}

// What is secret in a URL is hidden like a variable.
func TestURLsAreHidden(t *testing.T) {
	w := having(t)
	checksum := digestOf(1)
	body := `{"version":"9","input_type":"d","bundle":"` + checksum + `","bundle_url":"https://u:s3cret@models.example/b?sig=s3cret",
		"artifacts":[{"source":"https://models.example/a?token=s3cret","checksum":"` + checksum + `"}]}`
	expect(t, w.ask("POST", "/models/m/versions", body), 201, "u:s3cret@", "token=s3cret")
	for _, path := range []string{"/models/m/versions/9", "/models/m/versions", "/catalog"} {
		expect(t, w.askBy("viewer", "GET", path, ""), 200, "https://(hidden)@models.example/b?(hidden)", "https://models.example/a?(hidden)", "!", "s3cret")
		expect(t, w.askBy("deployer", "GET", path, ""), 200, "u:s3cret@")
	}
	expect(t, w.askBy("viewer", "GET", "/catalog", "", "Accept", tomlType), 200, "!", "s3cret")
	for _, body := range []string{
		`{"version":"10","input_type":"d","bundle":"` + checksum + `","bundle_url":"https://(hidden)@models.example/b"}`,
		`{"version":"10","input_type":"d","command":["c"],"artifacts":[{"source":"https://models.example/a?(hidden)","checksum":"` + checksum + `"}]}`,
	} {
		expectCode(t, w.ask("POST", "/models/m/versions", body), 400, "invalid", "give the value itself")
	}
}

func TestRuntimesThatAreRefused(t *testing.T) {
	host, hosted := &serving.Version{Host: &serving.HostSpec{}}, &serving.Version{HostedBy: "small"}
	for _, test := range []struct {
		version       *serving.Version
		runtime, says string
	}{
		{host, "python", "a host runs a bundle with the runtime"},
		{host, bundle.HostRuntime, ""},
		{&serving.Version{}, bundle.HostRuntime, "give the version host.memory_mb"},
		{&serving.Version{}, bundle.LoRARuntime, "set hosted_by"},
		{hosted, bundle.CommandRuntime, "which is a separate program"},
		{hosted, bundle.LoRARuntime, ""},
	} {
		if err := checkRuntime(test.version, test.runtime); (err == nil) != (test.says == "") || err != nil && !strings.Contains(err.Error(), test.says) {
			t.Errorf("%+v with a bundle of %s: %v, want %q", test.version, test.runtime, err, test.says)
		}
	}
}

func TestDeleteVersion(t *testing.T) {
	w := having(t)
	w.must(t, catalog.SetServing{serving.ModelID{Model: "m", Version: "1"}},
		catalog.PutVersion{Version: serving.Version{ModelID: serving.ModelID{Model: "m", Version: "0"}, InputType: serving.Doubles}, KeepCurrent: true})
	expectCode(t, w.ask("DELETE", "/models/m/versions/2", ""), 409, "in_use", `current one of model \"m\", which app \"a\" calls`)
	expectCode(t, w.ask("DELETE", "/models/m/versions/1", ""), 409, "in_use", `until version \"2\" has a ready replica`)
	expectCode(t, w.ask("DELETE", "/models/m/versions/0", "", "If-Match", `"x"`), 412, "changed")
	expect(t, w.ask("DELETE", "/models/m/versions/0", ""), 204)
	expectCode(t, w.ask("DELETE", "/models/m/versions/0", ""), 404, "not_found")
	expect(t, w.ask("DELETE", "/models/free/versions/1", ""), 204) // current, and nobody asks it
	expectCode(t, w.ask("GET", "/models/free", ""), 404, "not_found")
}

func TestSetScale(t *testing.T) {
	w := having(t)
	at := "/models/m/versions/1/scale"
	expect(t, w.ask("PUT", at, `{"scale":{"min":0,"max":4}}`), 200, `"replicas":1,"scale":{"min":0,"max":4}`)
	expect(t, w.ask("PUT", at, `{"replicas":3}`), 200, `"replicas":3`, "!", `"scale"`)
	expect(t, w.ask("PUT", at, `{"replicas":2,"scale":{"max":4}}`), 200, `"replicas":2,"scale":{"min":0,"max":4}`)
	for body, says := range map[string]string{
		`{}`: "give replicas", `{"replicas":-1}`: "between 0 and 1000", `{"replicas":1001}`: "between 0 and 1000", `{"scale":{"min":3,"max":2}}`: "min ≤ max",
	} {
		expectCode(t, w.ask("PUT", at, body), 400, "invalid", says)
	}
	expectCode(t, w.ask("PUT", at, `{"replicas":1}`, "If-Match", `"x"`), 412, "changed")
	expectCode(t, w.ask("PUT", "/models/m/versions/9/scale", `{"replicas":1}`), 404, "not_found")
}

func TestPins(t *testing.T) {
	w := having(t)
	at := "/models/m/versions/1/pin"
	expect(t, w.ask("PUT", at, `{"count":-1,"reason":"<b>","until":"2026-09-01T13:00:00Z"}`), 200, `"pin":{"count":-1,"until":"2026-09-01T13:00:00Z"`)
	for body, says := range map[string]string{
		`{}`: `\"count\" is missing`, `{"count":-2}`: "between 0 and 1000", `{"count":1,"until":"yesterday"}`: `\"until\"`,
		`{"count":1,"until":"2020-01-01T00:00:00Z"}`: "in the past",
	} {
		expectCode(t, w.ask("PUT", at, body), 400, "invalid", says)
	}
	expect(t, w.ask("DELETE", at, ""), 200, "!", `"pin"`)
	expect(t, w.ask("DELETE", at, ""), 200)
	expectCode(t, w.ask("DELETE", "/models/m/versions/9/pin", ""), 404, "not_found")
}

// TestPerformance shows what a version did to whoever may read, beside the version and not as a part of it.
func TestPerformance(t *testing.T) {
	w := having(t)
	for _, path := range []string{"/models/m/versions/2", "/models/m/versions"} {
		expect(t, w.askBy("viewer", "GET", path, ""), 200, `"performance":{"since":"2001-09-09T01:46:40Z","answers":4,"errors":0.5,"batches":2,"batch_mean":0.5,"p50_micros":10250,`)
	}
	expect(t, w.askBy("viewer", "GET", "/models/m/versions/1", ""), 200, "!", `"performance"`)
	shown := w.ask("GET", "/models/m/versions/2", "")
	expect(t, w.ask("PUT", "/models/m/versions/2/scale?dry_run=true", `{"replicas":2}`, "If-Match", shown.Header().Get("ETag")), 200, "!", `"performance"`)
	again := strings.Replace(shown.Body.String(), `"replicas":1`, `"replicas":2`, 1)
	expect(t, w.ask("POST", "/models/m/versions?replace=true", again), 200, `"replicas":2`)
	expect(t, w.ask("GET", "/catalog", ""), 200, "!", `"performance"`)
}

package api

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/serving/catalog"
	"github.com/topsail-serving/topsail/test/require"
	"github.com/topsail-serving/topsail/web/rest"
)

// What is exported comes in again without a change, wherever it came from.
func TestExportAndImport(t *testing.T) {
	w := having(t)
	w.ints(t)
	expect(t, w.ask("POST", "/apps", fullApp), 201)
	expect(t, w.ask("POST", "/models/m/versions", fullVersion), 201)
	exported := w.ask("GET", "/catalog", "")
	expect(t, exported, 200, `"current":{"free":"1","i":"1","m":"v3","n":"1"}`, `"s3cret"`)

	other := having(t)
	other.cat = &serving.Catalog{Keys: other.cat.Keys}
	plan := read[Plan](t, other.ask("POST", "/catalog", exported.Body.String()))
	if !plan.Applied || plan.Revision != other.cat.Revision || len(plan.Changes) != 3+6+4 || len(plan.Notes) == 0 {
		t.Errorf("got %+v", plan)
	}
	again := other.ask("GET", "/catalog", "")
	if got, want := plainCatalog(t, again.Body.Bytes()), plainCatalog(t, exported.Body.Bytes()); got != want {
		t.Errorf("got\n%s, want\n%s", got, want)
	}
	plan = read[Plan](t, other.ask("POST", "/catalog", again.Body.String()))
	if len(plan.Changes) > 0 || len(plan.Notes) > 0 {
		t.Errorf("the same catalog again: %+v", plan)
	}
}

// plainCatalog is an exported catalog without what differs between two systems: versions
// of the first one may not say how batches are sized.
func plainCatalog(t *testing.T, text []byte) string {
	var doc Catalog
	require.NoError(t, json.Unmarshal(text, &doc))
	doc.Revision = 0
	for i := range doc.Apps {
		doc.Apps[i].Origin = ""
	}
	for i := range doc.Versions {
		doc.Versions[i].Origin, doc.Versions[i].Generation, doc.Versions[i].Deployed = "", "", nil
		if b := doc.Versions[i].Batch; b == (serving.BatchSpec{}) {
			doc.Versions[i].Batch = serving.BatchSpec{Strategy: "aimd"}
		}
	}
	text, _ = json.Marshal(doc)
	return string(text)
}

func TestImport(t *testing.T) {
	w := having(t)
	first := `{"apps":[{"name":"f","input_type":"d","latency_slo_micros":1000,"models":["fm"]}],
		"versions":[{"model":"fm","version":"1","input_type":"d","command":["m"]},{"model":"fm","version":"2","input_type":"d","command":["m"]}],"current":{"fm":"1"}}`
	answer := w.ask("POST", "/catalog?dry_run=true", first)
	expect(t, answer, 200, `"applied":false`, `"action":"create","kind":"app","name":"f"`, `"level":"info"`, `app \"f\" is new in the file`)
	if w.cat.Apps["f"] != nil || read[Plan](t, answer).Revision != w.cat.Revision {
		t.Error("a dry run has changed the catalog")
	}
	expect(t, w.ask("POST", "/catalog", first), 200, `"applied":true`)
	if w.cat.Models["fm"].Current != "1" || w.cat.Apps["f"].Origin != serving.FromApply || len(w.signed) != 1 {
		t.Errorf("got %+v, signed by %v", w.cat.Models["fm"], w.signed)
	}
	second := `{"apps":[],"versions":[{"model":"fm","version":"2","input_type":"d","command":["m"]}]}`
	expect(t, w.ask("POST", "/catalog", second), 200)
	if w.cat.Apps["f"] == nil || w.cat.Apps["a"] == nil {
		t.Error("an import without prune has deleted an app")
	}
	expect(t, w.ask("POST", "/catalog", strings.Replace(second, "{", `{"prune":true,`, 1)), 200, `"action":"delete","kind":"app","name":"f"`)
	if w.cat.Apps["f"] != nil || w.cat.Apps["a"] == nil || len(w.cat.Models["fm"].Versions) != 1 {
		t.Error("prune takes back what an import brought in, and that alone")
	}
	for body, says := range map[string]string{
		`{"apps":[{"name":"x","input_type":"d","latency_slo_micros":1000,"models":["ghost"]}]}`:                                                    "does not exist",
		`{"apps":[{"name":"x","input_type":"d","latency_slo_micros":1000,"policy":{"kind":"single","model":"m"}}]}`:                                "does not link it",
		`{"apps":[{"name":"x","input_type":"d"}]}`:                                                                                                 `\"apps[0].latency_slo_micros\" is missing`,
		`{"versions":[{"model":"x","version":"1","input_type":"d","command":["m"]},{"model":"x","version":"1","input_type":"d","command":["m"]}]}`: "defined twice",
		`{"versions":[{"model":"m","version":"1","input_type":"d","env":{"TOKEN":"(hidden)"}}]}`:                                                   "give the value itself",
		`{"current":{"m":"9"}}`: "does not exist",
		`{"currnt":{}}`:         `\"currnt\" is unknown`,
	} {
		expectCode(t, w.ask("POST", "/catalog", body), 400, "invalid", says)
	}
}

// A version may become something else only where that was said.
func TestImportReplaces(t *testing.T) {
	w := having(t)
	was := w.cat.Models["m"].Versions["1"].Generation
	other := `{"versions":[{"model":"m","version":"1","input_type":"d","command":["python","other.py"],"env":{"TOKEN":"s3cret-2"}}]}`
	expectCode(t, w.ask("POST", "/catalog", other), 409, "exists", `command was [\"python\",\"m.py\"] and is [\"python\",\"other.py\"], env.TOKEN has another secret`, "--replace")
	expectCode(t, w.ask("POST", "/catalog?dry_run=true", other), 409, "exists")
	expect(t, w.ask("POST", "/catalog", strings.Replace(other, "{", `{"replace":true,`, 1)), 200, `"level":"warn"`, "a new generation")
	v := w.cat.Models["m"].Versions["1"]
	if v.Container.Command[1] != "other.py" || v.Generation == was {
		t.Errorf("it is %+v", v)
	}
	labels := strings.Replace(other, `"input_type"`, `"labels":["x"],"input_type"`, 1)
	expect(t, w.ask("POST", "/catalog", labels), 200)
	if now := w.cat.Models["m"].Versions["1"]; len(now.Labels) != 1 || now.Generation != v.Generation {
		t.Errorf("with other labels it is %+v", now)
	}
}

func TestExportHides(t *testing.T) {
	w := having(t)
	expect(t, w.askBy("viewer", "GET", "/catalog", ""), 200, `"(hidden)"`, "!", "s3cret", "topsail_", "hash")
	for accept, kind := range map[string]string{
		"": rest.JSONType, "*/*": rest.JSONType, "application/toml": tomlType, "application/json;q=0.5, application/toml": tomlType,
		"application/toml;q=0.2, */*": rest.JSONType, "text/html": rest.JSONType, "application/*;q=0.1, application/toml;q=0": rest.JSONType, ";;": rest.JSONType,
	} {
		if got := w.askBy("viewer", "GET", "/catalog", "", "Accept", accept).Header().Get("Content-Type"); got != kind {
			t.Errorf("who accepts %q gets %s", accept, got)
		}
	}
	expect(t, w.askBy("viewer", "GET", "/catalog", "", "Accept", tomlType), 200, "TOKEN is (hidden)")
	expect(t, w.askBy("deployer", "GET", "/catalog", "", "Accept", tomlType), 200, "TOKEN is s3cret")
	if w.cat.Models["m"].Versions["1"].Container.Env["TOKEN"] != "s3cret" {
		t.Error("the catalog itself has been redacted")
	}
}

// Another process is quicker than the import: it is planned again.
func TestImportAmongOthers(t *testing.T) {
	w := having(t)
	w.before = []catalog.Change{catalog.PutVersion{Version: serving.Version{ModelID: serving.ModelID{Model: "late", Version: "1"}, InputType: serving.Ints}}}
	plan := read[Plan](t, w.ask("POST", "/catalog", `{"apps":[{"name":"x","input_type":"d","latency_slo_micros":1000}]}`))
	if len(plan.Changes) != 1 || len(plan.Notes) != 1 || w.cat.Models["late"] == nil || w.cat.Apps["x"] == nil {
		t.Errorf("got %+v", plan)
	}
}

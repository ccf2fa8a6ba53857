package api

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/serving/catalog"
	"github.com/topsail-serving/topsail/web/rest"
)

const fullApp = `{"name":"shop","input_type":"ints","default_output":"0","latency_slo_micros":50000,"cold_start_micros":900000,
	"models":["i"],"output_type":"number","policy":{"kind":"epsilon_greedy","epsilon":0.2},"weight":2.5,
	"cache":{"round":0.5,"ttl_micros":7},"example":"[1]","require_key":true,"limit":{"per_second":9,"burst":3},"origin":"file"}`

func (w *world) ints(t testing.TB) {
	w.must(t, catalog.PutVersion{Version: serving.Version{ModelID: serving.ModelID{Model: "i", Version: "1"}, InputType: serving.Ints}})
}

// small is an app with little to say.
const small = `{"name":"c","input_type":"d","latency_slo_micros":1000}`

func TestCreateApp(t *testing.T) {
	w := having(t)
	w.ints(t)
	answer := w.ask("POST", "/apps", fullApp)
	expect(t, answer, 201)
	if got := answer.Header().Get("Location"); got != "/api/v1/apps/shop" {
		t.Errorf("it is at %q", got)
	}
	want := &serving.App{
		Name: "shop", InputType: serving.Ints, DefaultOutput: "0", SLO: serving.Duration(5e7), ColdStart: serving.Duration(9e8), Models: []string{"i"}, OutputType: serving.OutputNumber,
		Policy: serving.PolicySpec{Kind: serving.PolicyEpsilonGreedy, Epsilon: 0.2}, Weight: 2.5, Cache: serving.CacheSpec{Round: 0.5, TTL: serving.Duration(7e3)},
		Example: "[1]", RequireKey: true, Limit: &serving.Limit{PerSecond: 9, Burst: 3}, Origin: serving.FromAPI,
	}
	if got := w.cat.Apps["shop"]; !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	shown := w.ask("GET", "/apps/shop", "")
	if shown.Body.String() != answer.Body.String() || shown.Header().Get("ETag") != answer.Header().Get("ETag") {
		t.Errorf("created %s, shown %s", answer.Body, shown.Body)
	}
	expect(t, shown, 200, `"latency_slo_micros":50000`, `"policy":{"kind":"epsilon_greedy","epsilon":0.2}`, `"origin":"api"`)
	if !slices.Equal(w.signed, []serving.Author{{Who: "admin", From: "192.0.2.1"}}) {
		t.Errorf("signed by %v", w.signed)
	}
	// A client whose answer was lost sends it again: what is there and equal is no conflict, and no change.
	again := w.ask("POST", "/apps", fullApp)
	expect(t, again, 200, shown.Body.String())
	if again.Header().Get("ETag") != shown.Header().Get("ETag") || len(w.signed) != 1 {
		t.Errorf("%v, signed by %v", again.Header(), w.signed)
	}
	expectCode(t, w.askBy("alice", "POST", "/apps", fullApp), 403, "forbidden")
	expectCode(t, w.ask("POST", "/apps", strings.Replace(fullApp, "2.5", "3.5", 1)), 409, "exists", "shop")
}

func TestAppsThatAreRefused(t *testing.T) {
	w := having(t)
	app := func(with string) string {
		return `{"name":"x","input_type":"d","latency_slo_micros":1000` + with + `}`
	}
	for body, says := range map[string]string{
		app(`,"models":["ghost"]`):                                         `links model \"ghost\", which does not exist`,
		app(`,"models":["m","m"]`):                                         "twice",
		app(`,"policy":{"kind":"best","nonsense":1}`):                      `\"policy.nonsense\" is unknown: use one of kind, model, models`,
		app(`,"policy":{"kind":"single","model":"m"}`):                     "does not link it",
		app(`,"models":["m"],"policy":{"kind":"vote","models":["m:9"]}`):   `version \"9\" of model \"m\", which does not exist`,
		app(`,"policy":{"kind":"custom","model":"ghost"}`):                 `\"ghost\", which decides, does not exist`,
		app(`,"policy":{"kind":"custom","model":"free"}`):                  "must take strings",
		app(`,"stages":[{"name":"s","app":"ghost"}]`):                      `stage \"s\" calls app \"ghost\", which does not exist`,
		app(`,"stages":[{"name":"s","app":"a","model":"m"}]`):              "it names a model and an app",
		app(`,"cache":{"rond":1}`):                                         `\"cache.rond\" is unknown: did you mean \"round\"?`,
		app(`,"cache":{"ttl_micros":9223372036854775807}`):                 `\"cache.ttl_micros\" is out of range`,
		app(`,"Weight":1`):                                                 `\"Weight\" is unknown`,
		app(`,"weight":1,"weight":2`):                                      `\"weight\" is given twice`,
		app(`,"weight":null`):                                              `\"weight\" must not be null`,
		app(`,"weight":"2"`):                                               `\"weight\" must be a number that fits, not a string`,
		app(`,"weight":1e999`):                                             `\"weight\" must be a number that fits`,
		app(`,"models":"m"`):                                               `\"models\" must be a list of strings, not a string`,
		app(`,"models":[1]`):                                               `\"models[0]\" must be a string, not 1`,
		app(`,"models":{}`):                                                `\"models\" must be a list of strings, not an object`,
		app(`,"cache":[]`):                                                 `\"cache\" must be an object, not a list`,
		app(`,"limit":{"per_second":-1}`):                                  "per_second",
		`{"name":"x","input_type":"d","latency_slo_micros":9999999999999}`: "between 100 and",
		`{"name":"x","input_type":"z","latency_slo_micros":1000}`:          `\"input_type\" is invalid: input type \"z\" is unknown`,
		`{"name":"x","input_type":"d"}`:                                    `\"latency_slo_micros\" is missing`,
		`{"name":"admin","input_type":"d","latency_slo_micros":1000}`:      "is reserved",
		`{"name":"<script>","input_type":"d","latency_slo_micros":1000}`:   "use 1 to 63 letters",
		`[]`:                       "the body must be an object, not a list",
		`"x"`:                      "the body must be an object, not a string",
		`{"name":"x"} {}`:          "not valid JSON",
		`{"name":"x"`:              "not valid JSON",
		"{\"name\":\"\xff\"}":      "UTF-8",
		" ":                        "empty",
		strings.Repeat("[", 50000): "not valid JSON",
		`{"policy":` + strings.Repeat(`{"fallback":`, 40) + `1` + strings.Repeat("}", 41): "too deep",
	} {
		expectCode(t, w.ask("POST", "/apps", body), 400, "invalid", says)
	}
	if len(w.cat.Apps) != 2 {
		t.Errorf("there are %d apps", len(w.cat.Apps))
	}
}

func TestBodiesThatAreNotTaken(t *testing.T) {
	w := having(t)
	for _, kind := range []string{"", "text/plain", "application/x-www-form-urlencoded", "application/merge-patch+json", "json", ";"} {
		expectCode(t, w.ask("POST", "/apps", fullApp, "Content-Type", kind), 415, "unsupported_type", "application/json")
	}
	expectCode(t, w.ask("PATCH", "/apps/a", "{}", "Content-Type", "application/json-patch+json"), 415, "unsupported_type")
	expect(t, w.ask("PATCH", "/apps/a", "{}", "Content-Type", "Application/JSON; charset=utf-8"), 200)
	large := `{"name":"x","default_output":"` + strings.Repeat("x", 10<<20) + `"}`
	for method, paths := range map[string][]string{
		"POST":  {"/apps", "/models/m/versions", "/models/m/rollback", "/catalog", "/keys", "/session"},
		"PUT":   {"/apps/a", "/apps/a/policy", "/models/m/current", "/models/m/versions/1/scale", "/models/m/versions/1/pin"},
		"PATCH": {"/apps/a"},
	} {
		for _, path := range paths {
			expectCode(t, w.ask(method, path, large), 413, "too_large", "bytes")
		}
	}
}

func TestPutApp(t *testing.T) {
	w := having(t)
	app := `{"name":"new","input_type":"doubles","latency_slo_micros":1000}`
	expectCode(t, w.ask("PUT", "/apps/other", app), 400, "invalid", "the path says")
	expectCode(t, w.ask("PUT", "/apps/new", app, "If-Match", "*"), 412, "changed", "does not exist")
	answer := w.ask("PUT", "/apps/new", app)
	expect(t, answer, 201, `"models":[]`)
	etag := answer.Header().Get("ETag")
	expectCode(t, w.ask("PUT", "/apps/new", app, "If-None-Match", "*"), 412, "changed", "already exists")
	answer = w.ask("PUT", "/apps/new", app)
	expectCode(t, answer, 428, "if_match_required", "If-Match")
	if answer.Header().Get("ETag") != etag {
		t.Errorf("got the ETag %s, want %s", answer.Header().Get("ETag"), etag)
	}
	revision := w.cat.Revision
	expect(t, w.ask("PUT", "/apps/new", app, "If-Match", etag), 200)
	if w.cat.Revision != revision {
		t.Error("the same app again is a change")
	}
	changed := strings.Replace(app, "1000", "2000", 1)
	expect(t, w.ask("PUT", "/apps/new", changed, "If-Match", `"other", `+etag), 200, `"latency_slo_micros":2000`)
	answer = w.ask("PUT", "/apps/new", changed, "If-Match", etag)
	expectCode(t, answer, 412, "changed", "read it again")
	if now := w.ask("GET", "/apps/new", "").Header().Get("ETag"); answer.Header().Get("ETag") != now || now == etag {
		t.Errorf("got the ETag %s, and it is %s", answer.Header().Get("ETag"), now)
	}
	expectCode(t, w.ask("PUT", "/apps/new", changed, "If-Match", "W/"+etag), 412, "changed")
	expect(t, w.ask("PUT", "/apps/new", app, "If-Match", "*"), 200)
	for _, bad := range []string{"x", `"x`, `"x" "y"`, `*, "x"`, `W/x`} {
		expectCode(t, w.ask("PUT", "/apps/new", app, "If-Match", bad), 400, "invalid", "If-Match")
	}
}

func TestPatchApp(t *testing.T) {
	w := having(t)
	w.must(t, catalog.Link{App: "a", Model: "n"})
	for patch, want := range map[string]string{
		`{"latency_slo_micros":7000}`:                                 `"latency_slo_micros":7000`,
		`{"policy":{"kind":"vote","agreement":0.5}}`:                  `"policy":{"kind":"vote","agreement":0.5}`,
		`{"cache":{"ttl_micros":5}}`:                                  `"cache":{"ttl_micros":5}`,
		`{"cache":null,"example":null,"limit":null}`:                  `"name":"a"`,
		`{"models":["n","m"],"origin":"file","default_output":"<b>"}`: `"default_output":"\u003cb\u003e","latency_slo_micros"`,
	} {
		expect(t, w.ask("PATCH", "/apps/a", patch, "Content-Type", rest.MergePatchType), 200, want)
	}
	for patch, says := range map[string]string{
		`{"name":"c"}`:                `name cannot be changed`,
		`{"name":null}`:               `\"name\" is missing`,
		`{"nonsense":null}`:           `\"nonsense\" is unknown`,
		`{"cache":{"round":"x"}}`:     `\"cache.round\" must be a number`,
		`{"policy":{"nonsense":1}}`:   "nonsense",
		`{"latency_slo_micros":null}`: "is missing",
		`[]`:                          "must be a JSON object",
		`null`:                        "must be a JSON object",
		`{"weight":1,"weight":1}`:     "given twice",
	} {
		expectCode(t, w.ask("PATCH", "/apps/a", patch), 400, "invalid", says)
	}
	expectCode(t, w.ask("PATCH", "/apps/none", "{}"), 404, "not_found", "none")
	expectCode(t, w.ask("PATCH", "/apps/a", "{}", "If-Match", `"old"`), 412, "changed")
	revision := w.cat.Revision
	expect(t, w.ask("PATCH", "/apps/a", "{}"), 200)
	if w.cat.Revision != revision {
		t.Error("an empty patch is a change")
	}
}

// What a policy names may have gone: that keeps nobody from changing other things.
func TestStaleNamesStay(t *testing.T) {
	w := having(t)
	expect(t, w.ask("PATCH", "/apps/a", `{"policy":{"kind":"vote","models":["m:1"]}}`), 200)
	expectCode(t, w.ask("DELETE", "/models/m/versions/1", ""), 409, "in_use", `policy of app \"a\"`)
	w.must(t, catalog.DeleteVersion{ID: serving.ModelID{Model: "m", Version: "1"}})
	expect(t, w.ask("PATCH", "/apps/a", `{"weight":3}`), 200, `"models":["m:1"]`)
}

func TestDeleteApp(t *testing.T) {
	w := having(t)
	expectCode(t, w.ask("DELETE", "/apps/a", "", "If-Match", `"old"`), 412, "changed")
	answer := w.ask("DELETE", "/apps/a", "", "If-Match", w.ask("GET", "/apps/a", "").Header().Get("ETag"))
	expect(t, answer, 204)
	if answer.Body.Len() > 0 {
		t.Errorf("it says %s", answer.Body)
	}
	expectCode(t, w.ask("DELETE", "/apps/a", ""), 404, "not_found")
	expectCode(t, w.ask("GET", "/apps/a", ""), 404, "not_found")
}

// An app that is a stage of others stays, and comes back to none of them.
func TestAppsAsStages(t *testing.T) {
	w := having(t)
	expect(t, w.ask("POST", "/apps", `{"name":"x","input_type":"d","latency_slo_micros":1000,"stages":[{"name":"s","model":"m"},{"name":"t","app":"a"}]}`), 201, `{"name":"t","app":"a"}`)
	expectCode(t, w.ask("DELETE", "/apps/a", ""), 409, "in_use", `app \"a\" is a stage of app \"x\"`)
	expectCode(t, w.ask("PATCH", "/apps/a", `{"models":[],"stages":[{"name":"s","app":"x"}]}`), 400, "invalid", "calls itself by way of app")
	expect(t, w.ask("GET", "/apps/x/usage", ""), 200, `"stage":"t","app":"a"`)
	expect(t, w.ask("DELETE", "/apps/x", ""), 204)
	expect(t, w.ask("DELETE", "/apps/a", ""), 204)
}

func TestLinks(t *testing.T) {
	w := having(t)
	expect(t, w.ask("PUT", "/apps/a/links/free", ""), 200, `"models":["m","free"]`)
	revision := w.cat.Revision
	expect(t, w.ask("PUT", "/apps/a/links/free", ""), 200)
	if w.cat.Revision != revision {
		t.Error("a link that is there is a change")
	}
	expect(t, w.ask("DELETE", "/apps/a/links/m", ""), 200, `"models":["free"]`)
	expectCode(t, w.ask("DELETE", "/apps/a/links/m", ""), 404, "not_found")
	expectCode(t, w.ask("PUT", "/apps/a/links/none", ""), 404, "not_found", `model \"none\"`)
	expectCode(t, w.ask("PUT", "/apps/none/links/m", ""), 404, "not_found", `app \"none\"`)
	w.ints(t)
	expectCode(t, w.ask("PUT", "/apps/a/links/i", ""), 400, "invalid", "takes doubles")
}

func TestPolicy(t *testing.T) {
	w := having(t)
	answer := w.ask("GET", "/apps/a/policy", "")
	expect(t, answer, 200, `{"kind":"single"}`)
	etag := answer.Header().Get("ETag")
	expect(t, w.ask("PUT", "/apps/a/policy", `{"kind":"versions","weights":{"1":1,"2":3}}`, "If-Match", etag), 200, `"weights":{"1":1,"2":3}`, `"name":"a"`)
	expectCode(t, w.ask("PUT", "/apps/a/policy", `{"kind":"single"}`, "If-Match", etag), 412, "changed")
	for body, says := range map[string]string{
		`{"kind":"none"}`:               "is unknown: use one of",
		`{"kind":"single","share":0.5}`: "no option share",
		`[]`:                            "must be an object",
		`{"kind":"mean","kind":"best"}`: "given twice",
	} {
		expectCode(t, w.ask("PUT", "/apps/a/policy", body), 400, "invalid", says)
	}
	expectCode(t, w.ask("GET", "/apps/none/policy", ""), 404, "not_found")
}

func TestUnchangedIsNotSentAgain(t *testing.T) {
	w := having(t)
	for _, path := range []string{"/apps/a", "/models/m", "/models/m/versions/1", "/apps/a/policy"} {
		etag := w.ask("GET", path, "").Header().Get("ETag")
		for _, have := range []string{etag, "W/" + etag, "*", `"x",` + etag} {
			answer := w.ask("GET", path, "", "If-None-Match", have)
			expect(t, answer, 304)
			if answer.Body.Len() > 0 || answer.Header().Get("ETag") != etag {
				t.Errorf("%s: %q %v", path, answer.Body, answer.Header())
			}
		}
		expect(t, w.ask("GET", path, "", "If-None-Match", `"x"`), 200)
		expectCode(t, w.ask("GET", path, "", "If-None-Match", `x`), 400, "invalid")
	}
}

func TestHead(t *testing.T) {
	w := having(t)
	expect(t, w.ask("HEAD", "/apps/a", ""), 200)
	expect(t, w.ask("HEAD", "/apps/none", ""), 404)
}

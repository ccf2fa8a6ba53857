package api

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/serving/catalog"
)

func TestDryRun(t *testing.T) {
	w := having(t)
	w.replicas = []Replica{
		{ID: "1", Model: "m", Version: "1", State: "ready"}, {ID: "2", Model: "m", Version: "2", State: "ready"},
		{ID: "3", Model: "m", Version: "2", State: "starting"}, {ID: "4", Model: "free", Version: "1", State: "draining"},
	}
	w.must(t, catalog.SetServing{serving.ModelID{Model: "m", Version: "2"}}, catalog.SetPin{ID: serving.ModelID{Model: "n", Version: "1"}, Pin: &serving.Pin{Count: 2}})
	revision := w.cat.Revision
	key := w.cat.Key([]byte(w.keys["viewer"]), w.now)
	for _, tt := range []struct {
		method, path, body string
		changes            string // action kind name, …
		effects            []string
	}{
		{"POST", "/apps", `{"name":"c","input_type":"d","latency_slo_micros":1000}`, "create app c",
			[]string{`App "c" accepts queries from now on.`, `App "c" links no model: every query gets its default.`}},
		{"PUT", "/apps/c", `{"name":"c","input_type":"d","latency_slo_micros":1000,"models":["m"]}`, "create app c",
			[]string{`App "c" accepts queries from now on.`, `App "c" calls version "2" of model "m" from now on.`}},
		{"PATCH", "/apps/a", `{"latency_slo_micros":2000,"models":["free"],"policy":{"kind":"best"},"require_key":true}`, "update app a", []string{
			`App "a" no longer calls model "m".`, `App "a" calls version "1" of model "free" from now on.`, `App "a" answers within 2ms; it was 100ms.`,
			`App "a" chooses by the policy "best" from now on; it was "single".`, `Queries to app "a" need a key from now on.`}},
		{"PUT", "/apps/a/policy", `{"kind":"single","model":"m"}`, "update app a", []string{`The policy of app "a" has other options from now on.`}},
		{"PATCH", "/apps/a", `{}`, "", []string{"Nothing changes."}},
		{"PATCH", "/apps/a", `{"limit":{"per_second":100}}`, "update app a", []string{
			`App "a" accepts 100 queries a second at each gateway from now on, and refuses more.`}},
		{"PATCH", "/apps/a", `{"weight":1}`, "update app a", []string{"It is stored in another form, with the same meaning."}},
		{"PATCH", "/apps/a", `{"weight":2.5,"cold_start_micros":2000000,"default_output":"0","cache":{"off":true},"example":"[1]","output_type":"number"}`, "update app a", []string{
			`Queries to app "a" wait up to 2s for the first replica of a model; it was 100ms.`, `App "a" has the weight 2.5 when capacity is short; it was 1.`,
			`App "a" has another output type from now on.`, `App "a" has another default answer from now on.`,
			`App "a" has another use of the cache from now on.`, `App "a" has another example from now on.`}},
		{"DELETE", "/apps/a", "", "delete app a", []string{`App "a" is deleted: queries to it are refused.`}},
		{"DELETE", "/apps/a/links/m", "", "update app a", []string{`App "a" no longer calls model "m".`, `App "a" links no model: every query gets its default.`}},
		{"PUT", "/models/m/current", `{"version":"1"}`, "update model m", []string{
			`App "a" calls version "1" of model "m" from now on; it called version "2".`, `Version "1" of model "m" has 1 ready replica, and gets the queries at once.`}},
		{"POST", "/models/m/rollback", "", "update model m", []string{
			`App "a" calls version "1" of model "m" from now on; it called version "2".`, `Version "1" of model "m" has 1 ready replica, and gets the queries at once.`}},
		{"POST", "/models/m/versions", `{"version":"3","input_type":"d","command":["m"],"scale":{"min":1,"max":3}}`, "update model m, create version m:3", []string{
			`App "a" calls version "3" of model "m" from now on; it called version "2".`, `Version "3" of model "m" is registered, with 1 to 3 replicas by demand.`,
			`Version "3" of model "m" has no ready replica: version "2" answers until it has one.`}},
		{"POST", "/models/x/versions", `{"version":"1","input_type":"d","command":["m"]}`, "create model x, create version x:1", []string{
			`Version "1" of model "x" is registered, with 1 replica.`, `Version "1" of model "x" has no ready replica: queries get the default until it has one.`}},
		{"DELETE", "/models/m/versions/1", "", "update model m, delete version m:1", []string{`Version "1" of model "m" is deleted, with 1 replica.`}},
		{"DELETE", "/models/free", "", "delete model free, delete version free:1", []string{
			`Model "free" is deleted.`, `Version "1" of model "free" is deleted, with 1 replica.`}},
		{"PUT", "/models/m/versions/2/scale", `{"replicas":4}`, "update version m:2", []string{`Version "2" of model "m" gets 4 replicas; it had 1 replica. 1 is ready.`}},
		{"PUT", "/models/m/versions/2/pin", `{"count":-1}`, "update version m:2", []string{`Version "2" of model "m" keeps its 2 replicas, until the pin is released.`}},
		{"PUT", "/models/m/versions/2/pin", `{"count":5,"until":"2027-01-01T00:00:00Z"}`, "update version m:2", []string{
			`Version "2" of model "m" gets 5 replicas, until 2027-01-01T00:00:00Z, whatever the demand.`}},
		{"DELETE", "/models/n/versions/1/pin", "", "update version n:1", []string{`The number of replicas of version "1" of model "n" is no longer pinned.`}},
		{"DELETE", "/keys/" + key.ID, "", "delete key " + key.ID, []string{`Requests with the key "viewer" are refused within a second, and its sessions end.`}},
	} {
		answer := w.ask(tt.method, tt.path+"?dry_run=true", tt.body)
		expect(t, answer, 200, `"dry_run":true`)
		got := read[DryRun](t, answer)
		var changes []string
		for _, c := range got.Changes {
			changes = append(changes, c.Action+" "+c.Kind+" "+c.Name)
			if (c.Before == nil) != (c.Action == "create") || (c.After == nil) != (c.Action == "delete") {
				t.Errorf("%s %s: %s from %v to %v", tt.method, tt.path, c.Action, c.Before, c.After)
			}
		}
		if list := strings.Join(changes, ", "); list != tt.changes || !slices.Equal(got.Effects, tt.effects) {
			t.Errorf("%s %s: got %s and\n%s", tt.method, tt.path, list, strings.Join(got.Effects, "\n"))
		}
	}
	limit := func(limit string) string { return `{"limit":` + limit + `}` }
	for _, tt := range [][3]string{
		{`{"per_second":0.5,"burst":3}`, `null`, `App "b" accepts any number of queries from now on; its limit was 0.5 queries a second, or 3 at once, at each gateway.`},
		{`{"per_second":1}`, `{"per_second":2}`, `App "b" accepts 2 queries a second at each gateway from now on, and refuses more; its limit was 1 queries a second at each gateway.`},
	} {
		other := having(t)
		expect(t, other.ask("PATCH", "/apps/b", limit(tt[0])), 200)
		if got := read[DryRun](t, other.ask("PATCH", "/apps/b?dry_run=true", limit(tt[1]))).Effects; !slices.Equal(got, []string{tt[2]}) {
			t.Errorf("from %s to %s: %q", tt[0], tt[1], got)
		}
	}
	answer := w.ask("POST", "/keys?dry_run=true", `{"name":"k","role":"viewer"}`)
	expect(t, answer, 200, `The key \"k\" is valid, with the role viewer.`, "!", "secret", "hash", "topsail_")
	if w.cat.Revision != revision || len(w.signed) > 0 {
		t.Error("a dry run has changed the catalog")
	}
	expectCode(t, w.ask("DELETE", "/apps/a?dry_run=maybe", ""), 400, "invalid", "dry_run")
	expectCode(t, w.ask("DELETE", "/apps/a?dry_run=true", "", "If-Match", `"x"`), 412, "changed")
	expectCode(t, w.ask("DELETE", "/models/m?dry_run=true", ""), 409, "in_use")
}

// TestEveryMemberHasAnEffect changes each member of an app by itself.
func TestEveryMemberHasAnEffect(t *testing.T) {
	changes := map[string]string{
		"signature":   `{"outputs":[{"name":"score","type":"float32","shape":[-1]}]}`,
		"description": `"about wine"`, "default_output": `"1"`, "latency_slo_micros": `60000`, "cold_start_micros": `800000`, "models": `[]`,
		"stages": `[{"name":"only","model":"i"}],"models":[],"policy":null`, "output_type": `"label"`,
		"policy": `{"epsilon":0.3}`, "weight": `3`, "cache": `{"ttl_micros":8}`, "example": `"[2]"`, "require_key": `false`, "default_errors": `true`, "slo_between_micros": `2000000`, "slo_total_micros": `60000000`, "share_streams": `true`, "route": `"prefix"`, "limit": `{"burst":4}`, "labels": `["l"]`,
	}
	w := having(t)
	w.ints(t)
	expect(t, w.ask("POST", "/apps", fullApp), 201)
	for _, f := range reflect.VisibleFields(reflect.TypeFor[serving.App]()) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		body := `{"` + name + `":` + changes[name] + `}`
		switch name {
		case "name", "origin": // which nobody changes
			continue
		case "input_type":
			body = `{"input_type":"doubles","models":["m"]}`
		}
		got := read[DryRun](t, w.ask("PATCH", "/apps/shop?dry_run=true", body))
		if len(got.Changes) != 1 || len(got.Effects) == 0 || slices.Contains(got.Effects, "Nothing changes.") || slices.Contains(got.Effects, "It is stored in another form, with the same meaning.") {
			t.Errorf("%s: %d changes, %q", body, len(got.Changes), got.Effects)
		}
	}
}

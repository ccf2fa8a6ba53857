package api

import (
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
			[]string{`App "c" links no model: every query gets its default.`}},
		{"PUT", "/apps/c", `{"name":"c","input_type":"d","latency_slo_micros":1000,"models":["m"]}`, "create app c",
			[]string{`App "c" calls version "2" of model "m" from now on.`}},
		{"PATCH", "/apps/a", `{"latency_slo_micros":2000,"models":["free"],"policy":{"kind":"best"},"require_key":true}`, "update app a", []string{`App "a" calls version "1" of model "free" from now on.`}},
		{"PUT", "/apps/a/policy", `{"kind":"single","model":"m"}`, "update app a", nil},
		{"PATCH", "/apps/a", `{}`, "", []string{"Nothing changes."}},
		{"PATCH", "/apps/a", `{"limit":{"per_second":100}}`, "update app a", nil},
		{"PATCH", "/apps/a", `{"weight":1}`, "update app a", nil},
		{"DELETE", "/apps/a", "", "delete app a", []string{`App "a" is deleted: queries to it are refused.`}},
		{"DELETE", "/apps/a/links/m", "", "update app a", []string{`App "a" links no model: every query gets its default.`}},
		{"PUT", "/models/m/current", `{"version":"1"}`, "update model m", []string{
			`App "a" calls version "1" of model "m" from now on; it called version "2".`, `Version "1" of model "m" has 1 ready replica, and gets the queries at once.`}},
		{"POST", "/models/m/rollback", "", "update model m", []string{
			`App "a" calls version "1" of model "m" from now on; it called version "2".`, `Version "1" of model "m" has 1 ready replica, and gets the queries at once.`}},
		{"POST", "/models/m/versions", `{"version":"3","input_type":"d","command":["m"],"scale":{"min":1,"max":3}}`, "update model m, create version m:3", []string{
			`App "a" calls version "3" of model "m" from now on; it called version "2".`, `Version "3" of model "m" has no ready replica: version "2" answers until it has one.`}},
		{"POST", "/models/x/versions", `{"version":"1","input_type":"d","command":["m"]}`, "create model x, create version x:1", []string{`Version "1" of model "x" has no ready replica: queries get the default until it has one.`}},
		{"DELETE", "/models/m/versions/1", "", "update model m, delete version m:1", []string{`Version "1" of model "m" is deleted, with 1 replica.`}},
		{"DELETE", "/models/free", "", "delete model free, delete version free:1", []string{`Version "1" of model "free" is deleted, with 1 replica.`}},
		{"PUT", "/models/m/versions/2/scale", `{"replicas":4}`, "update version m:2", []string{`Version "2" of model "m" gets 4 replicas; 1 ready now.`}},
		{"PUT", "/models/m/versions/2/pin", `{"count":-1}`, "update version m:2", []string{`Version "2" of model "m" keeps its 2 replicas, until the pin is released.`}},
		{"PUT", "/models/m/versions/2/pin", `{"count":5,"until":"2027-01-01T00:00:00Z"}`, "update version m:2", []string{
			`Version "2" of model "m" gets 5 replicas, until 2027-01-01T00:00:00Z, whatever the demand.`}},
		{"DELETE", "/models/n/versions/1/pin", "", "update version n:1", nil},
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
	answer := w.ask("POST", "/keys?dry_run=true", `{"name":"k","role":"viewer"}`)
	expect(t, answer, 200, `"effects":[]`, "!", "secret", "hash", "topsail_")
	if w.cat.Revision != revision || len(w.signed) > 0 {
		t.Error("a dry run has changed the catalog")
	}
	expectCode(t, w.ask("DELETE", "/apps/a?dry_run=maybe", ""), 400, "invalid", "dry_run")
	expectCode(t, w.ask("DELETE", "/apps/a?dry_run=true", "", "If-Match", `"x"`), 412, "changed")
	expectCode(t, w.ask("DELETE", "/models/m?dry_run=true", ""), 409, "in_use")
}

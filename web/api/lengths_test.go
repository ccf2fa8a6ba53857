package api

import "testing"

// A version with inputs of another length than the current one would have the clients of the apps refused that use the model.
func TestInputsOfAnotherLength(t *testing.T) {
	w := having(t)
	version := func(version, length string) string {
		return `{"version":"` + version + `","input_type":"d","input_length":` + length + `,"command":["m"]}`
	}
	expect(t, w.ask("POST", "/models/later/versions?keep_current=true", version("1", "4")), 201, `"current":false`) // of no current one
	expect(t, w.ask("POST", "/models/iris/versions", version("1", "4")), 201)
	expect(t, w.ask("POST", "/models/iris/versions", version("2", "5")), 201, `"current":true`) // which no app uses
	expect(t, w.ask("PUT", "/models/iris/current", `{"version":"1"}`), 200)
	expect(t, w.ask("POST", "/apps", `{"name":"shop","input_type":"d","latency_slo_micros":1000,"models":["iris"]}`), 201)

	says := []string{`app \"shop\" is used with inputs of length 4`, `version \"1\" of model \"iris\"`, "this one takes 6", "another model", "replace_contract=true", "rollback"}
	expectCode(t, w.ask("POST", "/models/iris/versions", version("3", "6")), 409, "contract", says...)
	expectCode(t, w.ask("POST", "/models/iris/versions?dry_run=true", version("3", "6")), 409, "contract")
	expectCode(t, w.ask("GET", "/models/iris/versions/3", ""), 404, "not_found")
	expectCode(t, w.ask("PUT", "/models/iris/current", `{"version":"2"}`), 409, "contract", "this one takes 5")
	expectCode(t, w.ask("POST", "/models/iris/versions", version("2", "5")), 409, "contract") // the same again, and current
	expect(t, w.ask("POST", "/models/iris/versions", version("4", "4")), 201, `"current":true`)
	expect(t, w.ask("POST", "/models/iris/versions", version("any", "0")), 201, `"current":true`)
	expect(t, w.ask("PUT", "/models/iris/current", `{"version":"4"}`), 200)
	expectCode(t, w.ask("POST", "/models/iris/versions?replace=true", version("4", "7")), 409, "contract", "this one takes 7")

	// Beside the current one it is as wrong.
	expect(t, w.ask("POST", "/models/iris/versions?keep_current=true", version("5", "5")), 201, `"current":false`)
	expectCode(t, w.ask("PUT", "/apps/shop/policy", `{"kind":"versions","canary":"5","share":0.1}`), 409, "contract", `version \"4\"`, "length 4", `version \"5\" takes 5`)
	expect(t, w.ask("PUT", "/apps/shop/policy", `{"kind":"versions","canary":"1","share":0.1}`), 200)

	expectCode(t, w.ask("PUT", "/models/iris/current?replace_contract=maybe", `{"version":"5"}`), 400, "invalid", "replace_contract")
	expect(t, w.ask("PUT", "/models/iris/current?replace_contract=true", `{"version":"5"}`), 200, `"current":"5"`)
	expect(t, w.ask("POST", "/models/iris/rollback", ""), 200, `"current":"4"`) // the way back
	expect(t, w.ask("POST", "/models/iris/versions?replace_contract=true", version("6", "6")), 201, `"current":true`)
}

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

	says := []string{`app \"shop\" is used with inputs of length 4`, `version \"1\" of model \"iris\"`, `version \"3\" of model \"iris\" takes 6`, "another model", "replace_contract=true", "rollback"}
	expectCode(t, w.ask("POST", "/models/iris/versions", version("3", "6")), 409, "contract", says...)
	expectCode(t, w.ask("POST", "/models/iris/versions?dry_run=true", version("3", "6")), 409, "contract")
	expectCode(t, w.ask("GET", "/models/iris/versions/3", ""), 404, "not_found")
	expectCode(t, w.ask("PUT", "/models/iris/current", `{"version":"2"}`), 409, "contract", `version \"2\" of model \"iris\" takes 5`)
	expectCode(t, w.ask("POST", "/models/iris/versions", version("2", "5")), 409, "contract") // the same again, and current
	expect(t, w.ask("POST", "/models/iris/versions", version("4", "4")), 201, `"current":true`)
	expect(t, w.ask("POST", "/models/iris/versions", version("any", "0")), 201, `"current":true`)
	expect(t, w.ask("PUT", "/models/iris/current", `{"version":"4"}`), 200)
	expectCode(t, w.ask("POST", "/models/iris/versions?replace=true", version("4", "7")), 409, "contract", `version \"4\" of model \"iris\" takes 7`)

	// Beside the current one it is as wrong.
	expect(t, w.ask("POST", "/models/iris/versions?keep_current=true", version("5", "5")), 201, `"current":false`)
	expectCode(t, w.ask("PUT", "/apps/shop/policy", `{"kind":"versions","canary":"5","share":0.1}`), 409, "contract", `version \"4\"`, "length 4", `version \"5\" takes 5`)
	expect(t, w.ask("PUT", "/apps/shop/policy", `{"kind":"versions","canary":"1","share":0.1}`), 200)

	expectCode(t, w.ask("PUT", "/models/iris/current?replace_contract=maybe", `{"version":"5"}`), 400, "invalid", "replace_contract")
	expect(t, w.ask("PUT", "/models/iris/current?replace_contract=true", `{"version":"5"}`), 200, `"current":"5"`)
	expect(t, w.ask("POST", "/models/iris/rollback", ""), 200, `"current":"4"`) // the way back
	expect(t, w.ask("POST", "/models/iris/versions?replace_contract=true", version("6", "6")), 201, `"current":true`)
}

// Neither a file nor an app that is given another model may do it unseen.
func TestOtherWaysToAnotherLength(t *testing.T) {
	w := having(t)
	version := func(length string) string {
		return `{"version":"1","input_type":"d","input_length":` + length + `,"command":["m"]}`
	}
	for model, length := range map[string]string{"four": "4", "five": "5", "any": "0", "also": "4"} {
		expect(t, w.ask("POST", "/models/"+model+"/versions", version(length)), 201)
	}
	app := func(models string) string {
		return `{"name":"shop","input_type":"d","latency_slo_micros":1000,"models":[` + models + `]}`
	}
	expect(t, w.ask("POST", "/apps", app(`"four"`)), 201)
	expect(t, w.ask("POST", "/apps", `{"name":"staged","input_type":"d","latency_slo_micros":1000,"stages":[{"name":"a","model":"four"}]}`), 201)
	says := []string{`\"shop\"`, "length 4", `version \"1\" of model \"five\" takes 5`}
	any := []string{"If-Match", "*"}
	for _, c := range [][3]string{
		{"PATCH", "/apps/shop", `{"models":["five"]}`},
		{"PUT", "/apps/shop", app(`"five"`)},
		{"PUT", "/apps/shop/links/five", ""},
		{"POST", "/catalog", `{"apps":[` + app(`"five"`) + `],"versions":[{"model":"five","version":"1","input_type":"d","input_length":5,"command":["m"]}]}`},
	} {
		expectCode(t, w.ask(c[0], c[1], c[2], any...), 409, "contract", says...)
		expectCode(t, w.ask(c[0], c[1]+"?dry_run=true", c[2], any...), 409, "contract", says...)
		expect(t, w.ask(c[0], c[1]+"?dry_run=true&replace_contract=true", c[2], any...), 200)
	}
	expectCode(t, w.ask("PATCH", "/apps/staged", `{"stages":[{"name":"a","model":"five"}]}`), 409, "contract", `\"staged\"`)
	// Of a version that a file brings in: a new one, and another definition of the current one.
	file := func(version, more string) string {
		return `{"versions":[{"model":"four","version":"` + version + `","input_type":"d","input_length":5,"command":["m"]}]` + more + `}`
	}
	for _, body := range []string{file("2", ""), file("1", `,"replace":true`)} {
		expectCode(t, w.ask("POST", "/catalog", body), 409, "contract", `apps \"shop\", \"staged\" are used`, "takes 5")
		expect(t, w.ask("POST", "/catalog?dry_run=true&replace_contract=true", body), 200)
	}
	for _, model := range []string{"any", "also"} {
		expect(t, w.ask("PATCH", "/apps/shop", `{"models":["four","`+model+`"]}`), 200)
	}
	expect(t, w.ask("PATCH", "/apps/shop?replace_contract=true", `{"models":["five"]}`), 200)
}

// A version that does not take what clients send would never be asked, and no one would know why.
func TestACanaryWithOtherNames(t *testing.T) {
	w := having(t)
	version := func(version, column string) string {
		return `{"version":"` + version + `","input_type":"tensors","signature":{"inputs":[{"name":"` + column + `","type":"float64","shape":[]}],"outputs":[{"name":"y","type":"float64","shape":[]}]},"command":["m"]}`
	}
	expect(t, w.ask("POST", "/models/rows/versions", version("1", "a")), 201)
	expect(t, w.ask("POST", "/models/rows/versions?keep_current=true", version("2", "b")), 201)
	expect(t, w.ask("POST", "/apps", `{"name":"shop","input_type":"tensors","latency_slo_micros":1000,"models":["rows"],`+
		`"signature":{"inputs":[{"name":"a","type":"float64","shape":[]}],"outputs":[{"name":"y","type":"float64","shape":[]}]}}`), 201)
	for _, policy := range []string{`{"kind":"versions","canary":"2","share":0.1}`, `{"kind":"versions","weights":{"1":0.5,"2":0.5}}`, `{"kind":"shadow","models":["rows:2"]}`} {
		expectCode(t, w.ask("PUT", "/apps/shop/policy", policy), 409, "contract", `version \"2\"`, `no \"a\"`)
	}
}

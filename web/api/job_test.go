package api

import "testing"

// TestJob: a job has the variables of its containers, which are hidden from those who may not see them in the version.
func TestJob(t *testing.T) {
	w := having(t)
	for name, want := range map[string]string{"viewer": "false", "operator": "false", "deployer": "true", "admin": "true"} {
		expect(t, w.askBy(name, "GET", "/models/m/versions/1/job", ""), 200, `{"kind":"nomad","text":"job m:1, secrets: `+want+`"}`)
	}
	expectCode(t, w.ask("GET", "/models/m/versions/9/job", ""), 404, "not_found")
}

package api

import "testing"

// A change must not be made because of a parameter that says otherwise and is not
// understood.
func TestParametersThatAreRefused(t *testing.T) {
	w := having(t)
	for query, says := range map[string]string{
		"dry_run=":                  "dry_run must be true or false",
		"dry_run=1":                 "dry_run must be true or false",
		"dry_run=true&dry_run=true": "dry_run is given twice",
		"dry_run=true%zz":           "cannot be read",
		"dry_run=true;":             "cannot be read",
		"dryrun=true":               `parameter \"dryrun\" is unknown; this request takes: dry_run`,
	} {
		expectCode(t, w.ask("DELETE", "/apps/a?"+query, ""), 400, "invalid", says)
	}
	if w.cat.Apps["a"] == nil {
		t.Error("the app is gone")
	}
	for path, says := range map[string]string{
		"/replicas/m-1/restart?dry_run=true":   "this request takes: none",
		"/models/m/rollback?version=1":         `parameter \"version\" is unknown`,
		"/models/m/versions?keep-current=true": "this request takes: dry_run, keep_current",
		"/artifacts?dry_run=true":              "this request takes: none",
	} {
		expectCode(t, w.ask("POST", path, "{}"), 400, "invalid", says)
	}
	for _, query := range []string{"dry_run=true", "user=ann"} { // which is uid
		expectCode(t, w.ask("DELETE", "/apps/a/learned?"+query, ""), 400, "invalid", "this request takes: uid, context")
	}
	if len(w.forgot) > 0 {
		t.Error("the policy has forgotten")
	}
	for path, says := range map[string]string{
		"/apps?limit=":           "limit must be a whole number",
		"/apps?limit=1e2":        "limit must be a whole number",
		"/apps?limit=5&limit=6":  "limit is given twice",
		"/apps?cursor=YQ&cursor": "cursor is given twice",
		"/audit?kind=":           "kind must be one of",
		"/audit?name=%ff":        "bytes of UTF-8",
	} {
		expectCode(t, w.ask("GET", path, ""), 400, "invalid", says)
	}
}

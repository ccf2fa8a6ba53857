package main

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/web/api"
)

// health is what /health/ready says.
type health struct {
	Status     string   `json:"status"`
	Conditions []string `json:"conditions"`
}

// ops is the address of a page of the port for operators.
func (in *instance) ops(path string) string {
	in.t.Helper()
	return strings.TrimSuffix(in.line("Metrics"), "/metrics") + path
}

// operations reads such a page.
func (in *instance) operations(path string) (status int, text string) {
	in.t.Helper()
	return page(in.t, in.ops(path))
}

// condition is the first one that has these words, of a process that is ready.
func (in *instance) condition(words string) string {
	in.t.Helper()
	status, text := in.operations("/health/ready")
	var h health
	if err := json.Unmarshal([]byte(text), &h); err != nil || status != http.StatusOK || h.Status != "ok" {
		in.t.Fatalf("it is not ready: %d %s, %v", status, text, err)
	}
	at := slices.IndexFunc(h.Conditions, func(c string) bool { return strings.Contains(c, words) })
	if at < 0 {
		return ""
	}
	return h.Conditions[at]
}

// failing is the configuration of an app whose model says why it cannot start, after a line of its log.
func failing(name string) string {
	return appConfig(name, "doubles", "-1", 100*time.Millisecond, name) +
		modelConfig(name, "doubles", quoted("sh", "-c", "echo 'no weights here' >&2; echo 'INFO model: bye'; exit 3"), "")
}

// TestOneModelThatFails leaves the process ready, and says which one fails and of what.
func TestOneModelThatFails(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	in := start(t, dir, sumConfig(dir, quoted(programs.gosum))+failing("crash")).ready()
	const why = "exit status 3: no weights here"
	in.until("the condition", func() bool { return in.condition("crash:1") == "crash:1 has no ready replica: "+why })
	if out := in.output(); !strings.Contains(out, "crash:1 has failed, and is tried again: "+why) {
		t.Errorf("the greeting:\n%s", out)
	}
	o := operate(t, in)
	in.until("the reason", func() bool {
		replicas := get[struct{ Items []api.Replica }](o, "/replicas").Items
		return slices.ContainsFunc(replicas, func(r api.Replica) bool { return r.Model == "crash" && r.State == "failed" && r.Reason == why })
	})
	o.answers("sum", "[1, 2.5]", "3.5")
	in.until("what the replica uses", func() bool {
		replicas := get[struct{ Items []api.Replica }](o, "/replicas").Items
		return slices.ContainsFunc(replicas, func(r api.Replica) bool { return r.Model == "sum" && r.Memory > 1<<20 && r.CPU < 64 })
	})
	if wide := o.do("replica", "list", "-o", "wide"); !strings.Contains(wide, " cores ") || !strings.Contains(wide, " MB ") {
		t.Errorf("the table:\n%s", wide)
	}
}

// TestNoModelThatWorks leaves nothing to ask for.
func TestNoModelThatWorks(t *testing.T) {
	t.Parallel()
	in := start(t, t.TempDir(), failing("crash")+failing("burn")).ready()
	if out := in.output(); !strings.Contains(out, "Topsail runs, but no model is ready") || strings.Contains(out, "is ready after") {
		t.Errorf("the greeting:\n%s", out)
	}
	in.until("the reasons", func() bool {
		status, text := in.operations("/health/ready")
		return status == http.StatusServiceUnavailable && strings.Contains(text, "no model has a ready replica") &&
			strings.Contains(text, "burn:1 has no ready replica: exit status 3: no weights here") && strings.Contains(text, "crash:1 has no")
	})
}

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/test/require"
	"github.com/topsail-serving/topsail/test/wait"
	"github.com/topsail-serving/topsail/web/api"
)

// TestASessionByCommandLine is a day of an operator, from nothing to a process that is
// killed, and what the next one knows.
func TestASessionByCommandLine(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	in := start(t, dir, "")
	o := operate(t, in)
	deploy(o)
	rollBack(o)
	handleReplicas(o)
	setPolicy(o)
	applyFiles(o, dir)
	takeOver(o, dir)
	readAudit(o)

	before, changes := o.do("export"), o.do("audit", "-n", "0", "-o", "json")
	in.stop(syscall.SIGKILL)
	o = operate(t, start(t, dir, ""))
	if after := o.do("export"); after != before {
		t.Errorf("after the kill there is\n%s\nand before it there was\n%s", after, before)
	}
	if after := o.do("audit", "-n", "0", "-o", "json"); after != changes {
		t.Errorf("after the kill the audit log is\n%s\nand before it was\n%s", after, changes)
	}
	o.ready("sum:1", 1)
	o.answers("sums", "[20, 22.5]", "42.5")
}

// deploy makes an app and a version of a model that answers it.
func deploy(o *operator) {
	o.t.Helper()
	if _, said, _ := o.run("app", "list"); !strings.Contains(said, "topsail app create") {
		o.t.Errorf("the list of no apps does not say what to do:\n%s", said)
	}
	o.do("app", "create", "sums", "--input-type", "doubles", "--default", "-1", "--slo", "2s")
	o.refused(1, `"sums"`, "app", "create", "sums", "--input-type", "doubles")
	o.refused(2, "--input-type", "app", "create", "other")
	o.refused(3, `"nothing"`, "app", "get", "nothing")
	o.do(append([]string{"deploy", "sum", "--input-type", "doubles", "--app", "sums"}, announcing()...)...)
	o.answers("sums", "[1, 2.5]", "3.5")
	o.refused(3, "no app of this name", "predict", "nothing", "[1]")
	o.with("TOPSAIL_ADMIN_URL=http://127.0.0.1:1").refused(5, "127.0.0.1:1", "app", "list")
}

// rollBack deploys a version that fails, and goes back.
func rollBack(o *operator) {
	o.t.Helper()
	o.do("deploy", "sum", "--input-type", "doubles", "--env", "GOSUM_FAILS=1", "--", programs.gosum)
	wait.Until(o.t, "failing version", func() bool {
		out, said, _ := o.run("predict", "sums", "[1, 2.5]")
		return out == "-1\n" && strings.Contains(said, "GOSUM_FAILS is set")
	})
	if would := o.do("rollback", "sum", "--dry-run"); !strings.Contains(would, `"2" → "1"`) {
		o.t.Errorf("the dry run says\n%s", would)
	}
	if m := get[api.Model](o, "/models/sum"); m.Current != "2" {
		o.t.Errorf("a dry run has changed %+v", m)
	}
	o.do("rollback", "sum", "--yes")
	o.answers("sums", "[2, 2.5]", "4.5")
}

// handleReplicas sets their number, restarts one, lets another make way, and reads what
// they print.
func handleReplicas(o *operator) {
	o.t.Helper()
	o.do("version", "scale", "sum:1", "3")
	before := o.ready("sum:1", 3)
	if table := o.do("replica", "list", "--model", "sum", "--version", "1"); strings.Count(table, " ready ") != 3 {
		o.t.Errorf("the table is\n%s", table)
	}
	restarted, drained := before[0], before[1]
	o.do("replica", "restart", restarted.ID)
	wait.Until(o.t, "restarted replica", func() bool {
		r := get[api.Replica](o, "/replicas/"+restarted.ID)
		return r.State == "ready" && r.Restarts == 1 && r.PID != restarted.PID
	})
	wait.Until(o.t, "second start in the log", func() bool {
		return strings.Count(o.do("logs", restarted.ID), "the model starts\n") == 2
	})
	o.do("replica", "drain", drained.ID)
	wait.Until(o.t, "other replica in the drained one's place", func() bool {
		all := o.replicas("sum:1")
		return len(all) == 3 && !slices.ContainsFunc(all, func(r api.Replica) bool { return r.ID == drained.ID || r.State != "ready" })
	})
	o.refused(3, "the replica does not exist", "replica", "restart", drained.ID)
	if out := o.do("logs", "sum:1"); strings.Count(out, " | ") != 4 || strings.Count(out, "the model starts\n") != 4 {
		o.t.Errorf("three replicas, of which one was restarted, have printed\n%s", out)
	}
	o.do("version", "scale", "sum:1", "1")
	o.ready("sum:1", 1)
}

func setPolicy(o *operator) {
	o.t.Helper()
	o.do("policy", "set", "sums", "kind=versions", "canary=2", "share=0.25")
	o.do("policy", "set", "sums", "share=0.5")
	if got := o.do("policy", "get", "sums"); !strings.Contains(got, "0.5") || strings.Contains(got, "0.25") {
		o.t.Errorf("the policy is\n%s", got)
	}
	o.refused(1, "policy", "version", "delete", "sum:2", "--yes")
	o.do("policy", "set", "sums", "kind=single")
	o.do("version", "delete", "sum:2", "--yes")
	o.refused(3, "2", "version", "get", "sum:2")
}

// applyFiles brings files in: what they plan, that a second time changes nothing, and
// that they take away what they brought and nothing else.
func applyFiles(o *operator, dir string) {
	o.t.Helper()
	file := filepath.Join(dir, "more.toml")
	write := func(text string) {
		o.t.Helper()
		require.NoError(o.t, os.WriteFile(file, []byte(text), 0o600))
	}
	write(strings.ReplaceAll(sumConfig(dir, quoted(programs.gosum)), `"sum"`, `"more"`))
	plan, said, code := o.run("apply", "-f", file, "--dry-run")
	if code != 2 || !strings.Contains(plan, "+ app more") || !strings.Contains(plan, "+ version more:1") || strings.Contains(plan, "sums") {
		o.t.Errorf("the plan, with exit status %d, is\n%s%s", code, plan, said)
	}
	o.refused(3, "more", "app", "get", "more")
	o.refused(1, "--yes", "apply", "-f", file)
	o.do("apply", "-f", file, "--yes")
	for range 2 { // the second finds nothing to do, either
		if out := o.do("apply", "-f", file, "--yes"); !strings.Contains(out, "nothing to change") {
			o.t.Errorf("a second time it says\n%s", out)
		}
	}
	o.ready("more:1", 1)
	o.answers("more", "[4, 5.5]", "9.5")

	write("")
	o.do("apply", "-f", file, "--yes")
	o.do("app", "get", "more") // without --prune it stays
	plan, _, _ = o.run("apply", "-f", file, "--prune", "--dry-run")
	if !strings.Contains(plan, "- app more") || strings.Contains(plan, "sum") {
		o.t.Errorf("the plan of a file without anything is\n%s", plan)
	}
	o.do("apply", "-f", file, "--prune", "--yes")
	o.refused(3, "more", "app", "get", "more")
	o.refused(3, "more", "model", "get", "more")
	o.do("app", "get", "sums")
	write("[[app]]\nname = 'broken'\n")
	o.refused(1, "more.toml:1", "apply", "-f", file, "--yes")
}

// takeOver brings in what was exported. That changes who owns it, once; and another
// Topsail that begins with the file has the same.
func takeOver(o *operator, dir string) {
	o.t.Helper()
	file := filepath.Join(dir, "export.toml")
	exported := o.do("export")
	require.NoError(o.t, os.WriteFile(file, []byte(exported), 0o600))
	plan, said, code := o.run("apply", "-f", file, "--dry-run")
	want := "~ app sums\n    origin: \"api\" → \"apply\"\n~ version sum:1\n    origin: \"api\" → \"apply\"\n"
	if code != 2 || plan != want {
		o.t.Errorf("the plan of what was exported, with exit status %d, is\n%s%s", code, plan, said)
	}
	o.do("apply", "-f", file, "--yes")
	other := operate(o.t, start(o.t, o.t.TempDir(), exported))
	for _, one := range []*operator{o, other} {
		if out, said, code := one.run("apply", "-f", file, "--dry-run"); code != 0 || !strings.Contains(out, "nothing to change") {
			o.t.Errorf("what was exported, with exit status %d, changes\n%s%s", code, out, said)
		}
		if again := one.do("export"); withoutComments(again) != withoutComments(exported) {
			o.t.Errorf("what was exported is\n%s\nand comes back as\n%s", exported, again)
		}
	}
}

// withoutComments leaves out the revision, among others.
func withoutComments(file string) string {
	return regexp.MustCompile(`(?m)^#.*\n`).ReplaceAllString(file, "")
}

// readAudit holds the log of changes to what this session did, in its order.
func readAudit(o *operator) {
	o.t.Helper()
	entries := list[serving.AuditEntry](o, "/audit")
	slices.Reverse(entries)
	var did []string
	for _, e := range entries {
		if e.Who != "local" && e.Who != "file" || e.At.IsZero() {
			o.t.Errorf("entry %+v does not say who and when", e)
		}
		if !strings.HasSuffix(e.Name, "more") && e.Name != "more:1" {
			did = append(did, fmt.Sprintf("%s %s %s", e.Action, e.Kind, strings.TrimRight(e.Name, "~0123")))
		}
	}
	want := []string{
		"create app sums", "create model sum", "create version sum:", "update app sums",
		"update model sum", "create version sum:", "update model sum",
		"update version sum:", "restart replica sum:", "drain replica sum:", "update version sum:",
		"update app sums", "update app sums", "update app sums", "update model sum", "delete version sum:",
		"update app sums", "update version sum:",
	}
	if !slices.Equal(did, want) {
		o.t.Errorf("the audit log says\n%s\nand not\n%s", strings.Join(did, "\n"), strings.Join(want, "\n"))
	}
	byApp := o.do("audit", "--kind", "app", "--name", "sums", "-n", "1")
	if !strings.Contains(byApp, `origin: "api" → "apply"`) || strings.Count(byApp, "\n") != 2 {
		o.t.Errorf("the last change of the app is\n%s", byApp)
	}
}

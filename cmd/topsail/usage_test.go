package main

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/web/api"
)

// TestUsageOutlivesRestarts has a process end, and another one be killed: every query is
// counted once, but for what the second had counted in its last second.
func TestUsageOutlivesRestarts(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	config := strings.Replace(sumConfig(dir, quoted(programs.gosum)), `name = "sum"`, "name = \"sum\"\ndescription = \"adds up\"", 2)
	asked := uint64(0)
	ask := func(in *instance, n int) {
		t.Helper()
		for range n {
			asked++
			in.ask(fmt.Sprintf(`{"input": [%d]}`, asked))
		}
	}
	used := func(o *operator) (app, version api.Usage) {
		t.Helper()
		return get[api.Usage](o, "/apps/sum/usage"), get[api.Usage](o, "/models/sum/versions/1/usage")
	}
	counted := func(o *operator, want uint64) {
		t.Helper()
		until(t, fmt.Sprintf("count of %d queries", want), func() bool {
			app, _ := used(o)
			if app.Usage > want {
				t.Fatalf("%d of %d queries are counted", app.Usage, want)
			}
			return app.Usage == want
		})
	}

	first := start(t, dir, config).ready()
	ask(first, 12)
	if err := first.stop(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	second := start(t, dir, config).ready()
	o := operate(t, second)
	counted(o, asked)
	app, version := used(o)
	if app.Description != "adds up" || app.Policy != "single" || app.SLO.Std() != 30*time.Second || app.Since.IsZero() || app.Min == 0 || app.Max < app.Min {
		t.Errorf("of the app: %+v", app)
	}
	if version.Usage == 0 || version.Usage+version.Missed+version.Failed < asked || version.Total == 0 || version.Description != "adds up" {
		t.Errorf("of the version: %+v", version)
	}
	ask(second, 5)
	counted(o, asked)
	if out := o.do("usage", "--app", "sum"); !strings.Contains(out, fmt.Sprintf("  %d ", asked)) {
		t.Errorf("the table of usage is\n%s", out)
	}
	sure := asked
	ask(second, 3)
	second.stop(syscall.SIGKILL)

	third := start(t, dir, config).ready()
	o = operate(t, third)
	after, _ := used(o)
	if after.Usage < sure || after.Usage > asked || !after.Since.Equal(app.Since) {
		t.Errorf("%d queries are counted since %v, of %d since %v", after.Usage, after.Since, asked, app.Since)
	}
	ask(third, 2)
	counted(o, after.Usage+2)
}

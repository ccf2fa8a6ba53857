//go:build system

package main

import (
	"fmt"
	"sync"
	"testing"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/web/api"
)

// TestSixDeploymentsOfOneBundle has six at once deploy the same bundle to the same app: there is
// one version and one bundle of it, all are told of it, and it answers.
func TestSixDeploymentsOfOneBundle(t *testing.T) {
	t.Parallel()
	o := operate(t, start(t, t.TempDir(), ""))
	model := summing(t)
	const operators = 6
	said, codes := make([]string, operators), make([]int, operators)
	var all sync.WaitGroup
	for i := range operators {
		all.Go(func() {
			out, log, code := o.run("deploy", "sum", "--bundle", model, "--app", "sums", "--slo", "2s", "--default", "-1")
			said[i], codes[i] = out+log, code
		})
	}
	all.Wait()
	for i := range operators {
		if codes[i] != 0 {
			t.Errorf("exit status %d:\n%s", codes[i], said[i])
		}
	}
	versions := list[api.Version](o, "/models/sum/versions")
	if len(versions) != 1 || versions[0].ModelID.Version != "1" || !versions[0].Current {
		t.Errorf("there are the versions %+v", versions)
	}
	if bundles := list[api.Artifact](o, "/artifacts"); len(bundles) != 1 || fmt.Sprint(bundles[0].UsedBy) != "[sum:1]" {
		t.Errorf("there are the bundles %+v", bundles)
	}
	if app := get[serving.App](o, "/apps/sums"); fmt.Sprint(app.Models) != "[sum]" {
		t.Errorf("the app asks %v", app.Models)
	}
	o.answers("sums", "[1, 2.5]", "3.5")
}

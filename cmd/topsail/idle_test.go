//go:build system

package main

import (
	"fmt"
	"strings"
	"testing"
)

// Apps and models that are merely registered cost no series: thousands of them would make each
// look at the metrics slow, and one is taken every second.
func TestIdleAppsHaveNoSeries(t *testing.T) {
	dir := t.TempDir()
	var config strings.Builder
	config.WriteString(sumConfig(dir, quoted(programs.gosum)))
	for i := range 300 {
		fmt.Fprintf(&config, "[[app]]\nname = 'idle-%d'\ninput_type = 'doubles'\nmodels = ['idle-%[1]d']\npolicy = { kind = '%s' }\n"+
			"[[model]]\nname = 'idle-%[1]d'\nversion = '1'\ninput_type = 'doubles'\ncommand = ['true']\nreplicas = 0\n", i, []string{"single", "exp3"}[i%2])
	}
	in := start(t, dir, config.String()).ready()
	in.ask(`{"input": [1]}`)
	in.until("decision about the model that has a replica", func() bool { // the same tick decides about the others
		values, _ := in.allSeries(`topsail_scheduler_ready_replicas{model="sum"`)
		return len(values) == 1 && values[0] == 1
	})
	if _, page := in.allSeries("topsail_"); strings.Contains(page, "idle-") {
		at := strings.Index(page, "idle-")
		t.Errorf("an idle app or model has a series: %.200s", page[max(0, at-100):])
	}
}

//go:build system

package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/topsail-serving/topsail/test/require"
	"github.com/topsail-serving/topsail/web/api"
)

// learning is a configuration with an app whose policy learns.
func learning(dir string) string {
	config := sumConfig(dir, quoted(programs.gosum)) + modelConfig("other", "doubles", quoted(programs.gosum), dir)
	return strings.Replace(config, `models = ["sum"]`, "models = [\"sum\", \"other\"]\npolicy = { kind = \"exp3\" }", 1)
}

// learned asks the admin port what an app's policy has learned.
func (in *instance) learned(app string) api.Learned {
	in.t.Helper()
	var insight api.Insight
	require.NoError(in.t, json.Unmarshal([]byte(fetched(in.t, in.web()+"/api/v1/apps/"+app+"/insight")), &insight))
	return *insight.Learned
}

// TestAcknowledgedFeedbackOutlivesAKill sends feedback from several clients until the
// process is killed: what was acknowledged is there afterwards, and no more than was
// sent.
func TestAcknowledgedFeedbackOutlivesAKill(t *testing.T) {
	dir := t.TempDir()
	in := start(t, dir, learning(dir)).ready()
	var sent, acknowledged atomic.Int64
	var clients sync.WaitGroup
	for client := range 8 {
		clients.Go(func() {
			for i := 0; ; i++ {
				sent.Add(1)
				status, text, err := in.post("/sum/update", fmt.Sprintf(`{"input": [%d, %d], "label": %d}`, client, i, client+i))
				if err != nil {
					return // it is killed
				}
				if status != http.StatusOK {
					t.Errorf("status %d: %s", status, text)
					return
				}
				acknowledged.Add(1)
			}
		})
	}
	in.until("some feedback", func() bool { return acknowledged.Load() > 200 })
	in.stop(syscall.SIGKILL)
	clients.Wait()
	again := start(t, dir, learning(dir)).ready()
	if l := again.learned("sum"); l.Steps < float64(acknowledged.Load()) || l.Steps > float64(sent.Load()) {
		t.Errorf("%v pieces were learned of, %d were acknowledged and %d sent", l.Steps, acknowledged.Load(), sent.Load())
	}
}

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/serving"
)

// learning is a configuration with an app whose policy learns.
func learning(dir string) string {
	config := sumConfig(dir, quoted(programs.gosum))
	return strings.Replace(config, `models = ["sum"]`, `models = ["sum", "other"]
policy = { kind = "exp3" }`, 1) + fmt.Sprintf(`
[[model]]
name = "other"
version = "1"
input_type = "doubles"
command = %s
env = { TOPSAIL_TEST = %q }
`, quoted(programs.gosum), dir)
}

// post sends a body and returns the answer's status and text.
func (in *instance) post(path, body string) (int, string, error) {
	request, err := http.NewRequest(http.MethodPost, "http://"+in.gateway+path, strings.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	request.Header.Set("Accept", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, "", err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	return response.StatusCode, string(text), err
}

// learned asks the admin port what an app's policy has learned.
func (in *instance) learned(app string) (l serving.Learning) {
	in.t.Helper()
	response, err := http.Get(in.web() + "/api/v1/apps/" + app + "/learned")
	if err != nil {
		in.t.Fatal(err)
	}
	defer response.Body.Close()
	if err := json.NewDecoder(response.Body).Decode(&l); err != nil || response.StatusCode != http.StatusOK {
		in.t.Fatalf("status %d: %v", response.StatusCode, err)
	}
	return l
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

// TestABrokenCanaryIsTakenBack gives half of the queries to a version that fails on
// every input.
func TestABrokenCanaryIsTakenBack(t *testing.T) {
	dir := t.TempDir()
	config := strings.Replace(sumConfig(dir, quoted(programs.gosum)), `models = ["sum"]`, `models = ["sum"]
cache = { off = true }
policy = { kind = "versions", canary = "2", share = 0.5 }`, 1)
	config = strings.Replace(config, `version = "1"`, "version = \"1\"\ncurrent = true", 1) + fmt.Sprintf(`
[[model]]
name = "sum"
version = "2"
input_type = "doubles"
command = %s
env = { TOPSAIL_TEST = %q, GOSUM_FAILS = "1" }
`, quoted(programs.gosum), dir)
	in := start(t, dir, config).ready()
	in.until("version 2", func() bool {
		_, text, err := in.post("/sum/predict", `{"input": [1, 2], "explain": true}`)
		return err == nil && strings.Contains(text, `"model":"sum:2","asked":true`)
	})
	begun, asked := time.Now(), 0
	in.until("the word that the canary is taken back", func() bool { // it is on disk first, so clients take their time
		status, text, err := in.post("/sum/predict", `{"input": [1, 2], "explain": true}`)
		if err != nil || status != http.StatusOK || !strings.Contains(text, `"output":3.0`) {
			t.Fatalf("a client notices: %d %s %v", status, text, err)
		}
		if strings.Contains(text, `"model":"sum:2","asked":true`) {
			asked++
		}
		return in.learned("sum").Note != ""
	})
	took := time.Since(begun)
	asks := func() bool {
		_, text, _ := in.post("/sum/predict", `{"input": [1, 2], "explain": true}`)
		return strings.Contains(text, `"model":"sum:2","asked":true`)
	}
	in.until("the gateway's own word of it", func() bool { return !asks() }) // it writes to the store first
	for range 100 {
		if asks() {
			t.Fatal("it was taken back and is asked")
		}
	}
	if asked > 50 && took < 10*time.Second {
		t.Errorf("it got %d queries in %v before it was taken back, want at most 50", asked, took)
	}
	l := in.learned("sum")
	if !strings.Contains(l.Note, "2") || l.Models[1].Share != 0 {
		t.Errorf("learned: %+v", l)
	}
	t.Logf("taken back after %v and %d failures: %s", time.Since(begun), asked, l.Note)
	if err := in.stop(os.Interrupt); err != nil {
		t.Error(err)
	}
}

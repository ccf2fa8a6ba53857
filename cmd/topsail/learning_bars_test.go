//go:build bars

package main

import (
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"
)

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

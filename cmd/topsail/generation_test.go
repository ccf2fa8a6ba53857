//go:build system

package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestAVersionThatBecomesAnotherOne deletes and registers a version again, and replaces it:
// nothing that it said before comes out of the cache.
func TestAVersionThatBecomesAnotherOne(t *testing.T) {
	dir := t.TempDir()
	sdk, err := filepath.Abs("../../containers/python/src")
	if err != nil {
		t.Fatal(err)
	}
	source := "import os\n\ndef predict(xs):\n    return [sum(x) * float(os.environ['FACTOR']) for x in xs]\n"
	if err := os.WriteFile(filepath.Join(dir, "factor.py"), []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	app := "[[app]]\nname = \"sum\"\ninput_type = \"doubles\"\ndefault_output = \"-1\"\nlatency_slo_micros = 5000000\n"
	in := start(t, dir, app)
	in.until("the greeting", func() bool { return strings.Contains(in.output(), "Stop with Ctrl-C") })
	in.gateway = regexp.MustCompile(`Gateway +http://([0-9.:]+)`).FindStringSubmatch(in.output())[1]
	api := uiLine.FindStringSubmatch(in.output())[1] + "/api/v1"
	send := func(method, path, body string, want int) string {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, api+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		text, err := io.ReadAll(response.Body)
		if err != nil || response.StatusCode != want {
			t.Fatalf("%s %s: %d %s, error %v", method, path, response.StatusCode, text, err)
		}
		return string(text)
	}
	version := func(factor int) string {
		return fmt.Sprintf(`{"version": "1", "input_type": "doubles", "command": ["python3", "-m", "topsail", "factor.py:predict"], "dir": %q, "env": {"FACTOR": "%d", "PYTHONPATH": %q}}`, dir, factor, sdk)
	}
	answers := func(want float64) {
		t.Helper()
		var got answer
		in.until("an answer", func() bool { got = in.ask(`{"input": [1, 2]}`); return !got.Default })
		if got.Output != want {
			t.Errorf("it answers %v, want %v", got.Output, want)
		}
	}

	send("POST", "/models/factor/versions", version(2), 201)
	send("PUT", "/apps/sum/links/factor", "", 200)
	answers(6)

	if text := send("POST", "/models/factor/versions", version(20), 409); !strings.Contains(text, "env.FACTOR has another secret") || !strings.Contains(text, "replace=true") {
		t.Errorf("it is refused with %s", text)
	}
	answers(6)
	send("POST", "/models/factor/versions?replace=true", version(20), 200)
	answers(60)

	send("DELETE", "/apps/sum/links/factor", "", 200)
	send("DELETE", "/models/factor/versions/1", "", 204)
	send("POST", "/models/factor/versions", version(14), 201)
	send("PUT", "/apps/sum/links/factor", "", 200)
	answers(42)
}

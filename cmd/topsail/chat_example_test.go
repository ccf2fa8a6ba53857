//go:build system

package main

import (
	"bufio"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/test/require"
)

// TestTheExampleOfAChat runs examples/chat as its README says, on other ports: it trains, keeps what it learned, and writes a
// character at a time.
func TestTheExampleOfAChat(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{"topsail.toml", "chat.py", "transformer.py"} {
		text, err := os.ReadFile(filepath.Join("../../examples/chat", name))
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), text, 0o600)
		}
		require.NoError(t, err)
	}
	in := start(t, dir, "", "--config", filepath.Join(dir, "topsail.toml"))
	for began := time.Now(); !strings.Contains(in.output(), "Stop with Ctrl-C"); time.Sleep(100 * time.Millisecond) {
		if time.Since(began) > 5*time.Minute {
			t.Fatalf("it is not trained within 5 minutes:\n%s", in.output())
		}
	}
	in.ready()
	if _, err := os.Stat(filepath.Join(dir, "chat.npz")); err != nil {
		t.Error(err)
	}
	const most = 60
	response, err := http.Post("http://"+in.gateway+"/openai/v1/chat/completions", "application/json",
		strings.NewReader(`{"model": "chat", "messages": [{"role": "user", "content": "The list type"}], "stream": true, "max_tokens": 60, "seed": 1}`))
	require.NoError(t, err)
	defer response.Body.Close()
	var written strings.Builder
	chunks, done := 0, false
	for lines := bufio.NewScanner(response.Body); lines.Scan(); {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok || data == "[DONE]" {
			done = done || ok
			continue
		}
		var chunk struct {
			Choices []struct{ Delta struct{ Content string } }
		}
		if err := json.Unmarshal([]byte(data), &chunk); err != nil || len(chunk.Choices) != 1 {
			t.Fatalf("%s: %v", data, err)
		}
		text := chunk.Choices[0].Delta.Content
		if written.WriteString(text); text != "" {
			chunks++
		}
		if len(text) > 1 {
			t.Errorf("a chunk has %q", text)
		}
	}
	// It has learned that text is mostly lower-case letters and spaces.
	letters := strings.Count(written.String(), " ")
	for _, r := range written.String() {
		if r >= 'a' && r <= 'z' {
			letters++
		}
	}
	if !done || chunks != written.Len() || chunks < most/2 || letters < chunks/2 {
		t.Errorf("status %d, ended %v, %d chunks: %q", response.StatusCode, done, chunks, written.String())
	}
	t.Logf("it wrote %q", written.String())
}

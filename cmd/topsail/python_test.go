//go:build system

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const moodyModel = `
import topsail

SEEN = topsail.counter("moody_inputs", "inputs that the model has seen")

def predict(texts):
    SEEN.inc(len(texts))
    if any(t == "explode" for t in texts):
        raise ValueError("I was told to")
    return [answer(t) for t in texts]

def answer(text):
    if text == "refuse":
        return topsail.Error("not this one")
    if text == "object":
        return {"label": "cat", "scores": [0.25, 0.75]}
    if text == "nan":
        return float("nan")
    if text == "sure":
        return topsail.Output("yes", confidence=0.9)
    return text.upper()
`

// pythonConfig is an app of a model in Python, and the version of it.
func pythonConfig(t *testing.T, dir string) string {
	return appConfig("sum", "strings", "none", 2*time.Second, "moody") + pythonModel(t, "moody", "strings", "moody.py:predict", dir)
}

// pythonModel is the first version of a model, which is a function in a file in Python.
func pythonModel(t *testing.T, name, takes, entry, dir string) string {
	t.Helper()
	config := modelConfig(name, takes, quoted("python3", "-m", "topsail", entry), dir)
	return strings.Replace(config, "env = {", fmt.Sprintf("env = { PYTHONPATH = %q,", sdk(t)), 1)
}

func writeModel(t *testing.T, dir, source string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, "moody.py"), []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestAPythonModelOfEveryMood(t *testing.T) {
	dir := t.TempDir()
	writeModel(t, dir, moodyModel)
	in := start(t, dir, pythonConfig(t, dir)).ready()
	for input, want := range map[string]answer{
		"hello":   {Output: "HELLO"},
		"object":  {Output: map[string]any{"label": "cat", "scores": []any{0.25, 0.75}}},
		"sure":    {Output: "yes"},
		"refuse":  {Output: "none", Default: true, Explanation: "Model error: Error: not this one"},
		"explode": {Output: "none", Default: true, Explanation: "Model error: ValueError: I was told to"},
		"nan":     {Output: "none", Default: true, Explanation: "Model error: output is NaN or infinite, which JSON cannot carry"},
		"":        {Output: ""},
		"ünï©ode": {Output: "ÜNÏ©ODE"},
	} {
		got := in.ask(fmt.Sprintf(`{"input": %q}`, input))
		got.ID = 0
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%q: got %+v, want %+v", input, got, want)
		}
	}
	in.until("the model's own metric", func() bool {
		return strings.Contains(fetched(t, in.ops("/metrics")), `moody_inputs{model="moody",replica="moody:1/0",version="1"}`)
	})
	log, err := os.ReadFile(filepath.Join(dir, "data", "logs", "moody:1~0.log"))
	if err != nil || !strings.Contains(string(log), "ValueError: I was told to") {
		t.Errorf("the replica's log has no traceback: %v\n%s", err, log)
	}
}

func TestAnEditedPythonModelIsRestarted(t *testing.T) {
	dir := t.TempDir()
	writeModel(t, dir, moodyModel)
	in := start(t, dir, pythonConfig(t, dir), "--watch").ready()
	if got := in.ask(`{"input": "hello"}`).Output; got != "HELLO" { // which is in the cache now
		t.Fatalf("before the edit it is %v", got)
	}
	writeModel(t, dir, strings.ReplaceAll(moodyModel, "text.upper()", `text + "!"`))
	in.until("that the edit is noticed", func() bool { return strings.Contains(in.output(), "source changed") })
	// The gateway follows the catalog a moment later. From then on the new source answers.
	in.until("an answer of the new source", func() bool { return in.ask(`{"input": "hello"}`).Output == "hello!" })
	for range 20 {
		if after := in.ask(`{"input": "hello"}`); after.Output != "hello!" {
			t.Fatalf("after the edit it is %v", after.Output)
		}
	}
}

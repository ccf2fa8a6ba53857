package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestNothingToServe is said, and how to mend it.
func TestNothingToServe(t *testing.T) {
	file := filepath.Join(t.TempDir(), "topsail.toml")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(programs.topsail, "stream", "--config", file).CombinedOutput()
	if err == nil || !strings.Contains(string(out), "add a [[stream]] or a [[model_stream]] to the configuration") {
		t.Errorf("%v: %s", err, out)
	}
}

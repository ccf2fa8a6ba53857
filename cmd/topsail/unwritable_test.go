//go:build system

package main

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/topsail-serving/topsail/test/require"
)

// TestADataDirectoryThatTakesNoWrites forbids the state's file to be written while it serves:
// queries go on, what is refused says why, and so do health, metrics and, once, the log.
func TestADataDirectoryThatTakesNoWrites(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	// A file in memory can be forbidden, to root too, by a seal.
	file, err := unix.MemfdCreate("topsail.db", unix.MFD_ALLOW_SEALING|unix.MFD_CLOEXEC)
	require.NoError(t, err)
	defer unix.Close(file)
	require.NoError(t, os.Mkdir(filepath.Join(dir, "data"), 0o700))
	require.NoError(t, os.Symlink(fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), file), filepath.Join(dir, "data", "topsail.db")))
	in := start(t, dir, learning(dir)).ready()
	o := operate(t, in)
	feedback := func() (int, string) {
		status, text, err := in.post("/sum/update", `{"input": [1, 2], "label": 3}`)
		require.NoError(t, err)
		return status, text
	}
	if status, text := feedback(); status != http.StatusOK || in.condition("cannot be written") != "" {
		t.Fatalf("at first: %d %s", status, text)
	}

	if _, err := unix.FcntlInt(uintptr(file), unix.F_ADD_SEALS, unix.F_SEAL_FUTURE_WRITE); err != nil {
		t.Fatal(err)
	}
	const reason, remedy = "operation not permitted", "let topsail's user write the data directory"
	for range 3 {
		status, text := feedback()
		if status != http.StatusServiceUnavailable || !strings.Contains(text, "accepts no writes: "+reason+": "+remedy) || strings.Contains(text, dir) {
			t.Errorf("feedback gets %d %s", status, text)
		}
		status, body := o.send(http.MethodPost, "/apps", `{"name":"late","input_type":"doubles","latency_slo_micros":1000000}`)
		if status != http.StatusServiceUnavailable || !strings.Contains(string(body), reason+": "+remedy) {
			t.Errorf("a change gets %d %s", status, body)
		}
	}
	if status, text, err := in.post("/sum/predict", `{"input": [1, 2]}`); err != nil || status != http.StatusOK {
		t.Errorf("a query gets %d %s, %v", status, text, err)
	}
	if c := in.condition("cannot be written"); !strings.Contains(c, reason) || !strings.Contains(c, "changes and feedback are refused until it can") {
		t.Errorf("condition %q", c)
	}
	if _, text := in.operations("/metrics"); !strings.Contains(text, "topsail_store_unwritable 1") || !strings.Contains(text, "topsail_store_damaged 0") {
		t.Errorf("metrics:\n%s", text)
	}
	if n := strings.Count(in.output(), "the data directory cannot be written"); n != 1 {
		t.Errorf("%d lines in the log:\n%s", n, in.output())
	}
}

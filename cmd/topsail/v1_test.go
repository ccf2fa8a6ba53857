//go:build system

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/topsail-serving/topsail/test/require"
)

// clipperConfig is an app of a container from Clipper's time, which Topsail starts.
func clipperConfig(t *testing.T, dir string, replicas, connections int) string {
	t.Helper()
	program, err := filepath.Abs("testdata/clipper_container.py")
	require.NoError(t, err)
	// The container takes inputs one after another: to hold more than one back helps none.
	return sumConfig(dir, quoted("python3", program, "${PORT}")) +
		fmt.Sprintf("protocol = \"v1\"\nreplicas = %d\nconnections = %d\nbatch = { max_size = 4 }\n", replicas, connections)
}

var listensOn = regexp.MustCompile(`pid (\d+) listens on port (\d+)`)

// ports are those that containers said they listen on, by their process.
func (in *instance) ports() map[string]string {
	ports := map[string]string{}
	for _, m := range listensOn.FindAllStringSubmatch(in.output(), -1) {
		ports[m[1]] = m[2]
	}
	return ports
}

// TestVersion1ContainersAreStarted: each has a port of its own, one that dies is started anew
// on it, and all are told to end.
func TestVersion1ContainersAreStarted(t *testing.T) {
	dir := t.TempDir()
	in := start(t, dir, clipperConfig(t, dir, 3, 2))
	in.until("three containers listen", func() bool { return len(in.ports()) == 3 })
	distinct := map[string]bool{}
	for _, port := range in.ports() {
		distinct[port] = true
	}
	if len(distinct) != 3 {
		t.Errorf("ports %v", in.ports())
	}
	in.ready()
	if a := in.ask(`{"input": [1, 2.5]}`); a.Default || a.Output != 3.5 {
		t.Errorf("got %+v", a)
	}
	for pid := range in.ports() {
		n, _ := strconv.Atoi(pid)
		require.NoError(t, syscall.Kill(n, syscall.SIGKILL))
		break
	}
	in.until("another one in its place", func() bool { return len(in.ports()) > 3 })
	for _, port := range in.ports() {
		if !distinct[port] {
			t.Errorf("a container listens on %s, which none of the replicas has", port)
		}
	}
	operate(t, in).ready("sum:1", 3)
	if err := in.stop(syscall.SIGTERM); err != nil {
		t.Error(err)
	}
	logs, err := filepath.Glob(filepath.Join(dir, "data", "logs", "*.log"))
	if err != nil || len(logs) != 3 {
		t.Fatalf("logs %v, %v", logs, err)
	}
	for _, file := range logs {
		if text, _ := os.ReadFile(file); !strings.Contains(string(text), "told to shut down") {
			t.Errorf("%s was not told to end:\n%s", file, text)
		}
	}
	if left := in.descendants(); len(left) > 0 {
		t.Errorf("processes %v are left", left)
	}
}

//go:build system

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/test/require"
)

// TestSeedReplaces: what has another definition is refused, says what differs and the way out,
// and changes nothing; with --replace it is a new generation. What is the same changes nothing.
func TestSeedReplaces(t *testing.T) {
	broker, dir := startRedis(t), t.TempDir()
	file := filepath.Join(dir, "topsail.toml")
	seed := func(threads int, flags ...string) (string, error) {
		config := strings.Replace(sumConfig(dir, quoted(programs.gosum)), "env = {", fmt.Sprintf("env = { THREADS = %q,", fmt.Sprint(threads)), 1)
		require.NoError(t, os.WriteFile(file, []byte(config), 0o600))
		args := append([]string{"seed", "--config", file, "--redis-addrs", broker.server.Addr, "--data-dir", dir}, flags...)
		out, err := exec.Command(programs.topsail, args...).CombinedOutput()
		return string(out), err
	}
	c := &streamCluster{t: t, redis: broker.server}
	stored := func(threads string) *serving.Version {
		t.Helper()
		v := c.registered("1")
		if v.Container.Env["THREADS"] != threads {
			t.Errorf("the version has the variables %v, want THREADS %s", v.Container.Env, threads)
		}
		return v
	}
	if out, err := seed(1); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	first := stored("1").Generation
	if out, err := seed(2); err == nil || !strings.Contains(out, "env.THREADS") || !strings.Contains(out, "--replace") {
		t.Errorf("another definition is answered by %v\n%s", err, out)
	}
	if now := stored("1").Generation; now != first {
		t.Errorf("what was refused made the generation %s of %s", now, first)
	}
	if out, err := seed(2, "--replace"); err != nil || !strings.Contains(out, "sum") {
		t.Errorf("replacing is answered by %v\n%s", err, out)
	}
	second := stored("2").Generation
	if second == first {
		t.Error("what was replaced is of the same generation")
	}
	if out, err := seed(2, "--replace"); err != nil || !strings.Contains(out, "nothing to change") {
		t.Errorf("the same again is answered by %v\n%s", err, out)
	}
	if now := stored("2").Generation; now != second {
		t.Errorf("the same again made the generation %s of %s", now, second)
	}
}

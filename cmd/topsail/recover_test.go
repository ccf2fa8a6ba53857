package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/topsail-serving/topsail/test/require"
)

// TestRecover goes on from the last good copy, where it is told to.
func TestRecover(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	in := start(t, dir, "")
	o := operate(t, in)
	o.do("app", "create", "a", "--input-type", "doubles")
	require.NoError(t, in.stop(syscall.SIGTERM))
	in = start(t, dir, "") // this start keeps a copy
	o = o.with("TOPSAIL_ADMIN_URL=" + in.web())
	in.until("a copy", func() bool {
		all, _ := filepath.Glob(filepath.Join(dir, "data", "copies", "*.db"))
		return len(all) == 2
	})
	o.do("app", "create", "b", "--input-type", "doubles")
	require.NoError(t, in.stop(syscall.SIGTERM))
	file := filepath.Join(dir, "data", "topsail.db")
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	clear(data[len(data)/4:])
	require.NoError(t, os.WriteFile(file, data, 0o600))
	in = start(t, dir, "")
	in.until("a refusal", func() bool {
		return strings.Contains(in.output(), "is damaged") && strings.Contains(in.output(), "start with --recover")
	})
	in = start(t, dir, "", "--recover")
	o = o.with("TOPSAIL_ADMIN_URL=" + in.web())
	if list := o.do("app", "list"); !strings.Contains(list, "a ") || strings.Contains(list, "b ") {
		t.Errorf("the apps are\n%s", list)
	}
	if !strings.Contains(in.output(), "what was changed since is lost") {
		t.Errorf("it does not say what is lost:\n%s", in.output())
	}
}

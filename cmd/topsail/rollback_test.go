package main

import (
	"strings"
	"syscall"
	"testing"

	"github.com/topsail-serving/topsail/test/require"
	"github.com/topsail-serving/topsail/web/api"
)

// TestARollbackOutlivesARestart: the file, which lists the other version last, has not changed.
func TestARollbackOutlivesARestart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	one := sumConfig(dir, quoted(programs.gosum))
	model := one[strings.Index(one, "[[model]]"):]
	config := one + "\n" + strings.Replace(model, `version = "1"`, `version = "2"`, 1)
	current := func(o *operator) string { return get[api.Model](o, "/models/sum").Current }

	first := start(t, dir, config).ready()
	o := operate(t, first)
	if now := current(o); now != "2" {
		t.Fatalf("version %q is current", now)
	}
	o.do("model", "current", "sum", "1")
	require.NoError(t, first.stop(syscall.SIGTERM))

	second := start(t, dir, config).ready()
	if now := current(operate(t, second)); now != "1" {
		t.Errorf("after a restart version %q is current", now)
	}
	require.NoError(t, second.stop(syscall.SIGTERM))

	changed := config + "\n" + strings.Replace(model, `version = "1"`, `version = "3"`, 1)
	if now := current(operate(t, start(t, dir, changed).ready())); now != "3" {
		t.Errorf("version %q is current, and the file lists 3 last now", now)
	}
}

//go:build servers

package redisstore

import (
	"path/filepath"
	"testing"
)

// TestOldFile is the real thing: a Redis that is started on an old copy of its file.
func TestOldFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	server := ownRedis(t, dir)
	cfg := configOf(server)
	cfg.Snapshot = filepath.Join(t.TempDir(), "snapshot")
	s := open(t, cfg)
	stop := start(t, s)
	apply(t, s, putApp("a"))
	server.Stop()
	files, old, newest := filepath.Join(dir, "appendonlydir"), t.TempDir(), t.TempDir()
	replace(t, old, files)
	restart(t, server)
	want := apply(t, s, putApp("b"))
	server.Stop()
	replace(t, newest, files)

	replace(t, files, old)
	restart(t, server)
	wantLost(t, s, want, "it holds revision 1")
	stop()
	s = follower(t, cfg) // from the file, it knows as much
	wantLost(t, s, s.Catalog(), "it holds revision 1")
	if got := s.State(); got.Source != FromSnapshot || got.Revision != 2 {
		t.Errorf("got %+v", got)
	}

	server.Kill()
	replace(t, files, newest)
	restart(t, server)
	wantWorks(t, s, want)
	if err := client(t, server).FlushAll(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	awaitAlarm(t, s, "it holds no catalog")
	resolve(t, s.Restore, 4, "a", "b", "works")
}

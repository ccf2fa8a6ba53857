//go:build servers

package redisstore

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/topsail-serving/topsail/test/journal"
	"github.com/topsail-serving/topsail/test/require"
	"github.com/topsail-serving/topsail/test/wait"
)

func TestDamagedFileAtStart(t *testing.T) {
	cfg := config(t)
	want := apply(t, open(t, cfg), putApp("a"))
	var log journal.Journal
	cfg.Log = log.Logger()
	cfg.Snapshot = filepath.Join(t.TempDir(), "snapshot")
	require.NoError(t, os.WriteFile(cfg.Snapshot, []byte("damaged"), 0o600))
	s := open(t, cfg)
	folder := cfg
	folder.Snapshot = filepath.Join(t.TempDir(), "snapshot") // which cannot be read
	require.NoError(t, os.Mkdir(folder.Snapshot, 0o700))
	folder.Log = (&journal.Journal{}).Logger()
	open(t, folder)
	if info, err := os.Stat(folder.Snapshot + ".damaged"); err != nil || !info.IsDir() {
		t.Errorf("it was not set aside: %v", err)
	}
	if got, err := os.ReadFile(cfg.Snapshot + ".damaged"); err != nil || string(got) != "damaged" || log.Count("the snapshot is damaged and set aside") != 1 {
		t.Errorf("set aside %q, error %v, log %s", got, err, log.String())
	}
	awaitCatalog(t, s, want)
	start(t, s)()
	if got, err := decodeFile(read(t, cfg.Snapshot)); err != nil || encode(t, got.catalog) != encode(t, want) {
		t.Errorf("saved %+v, error %v", got, err)
	}
}

// TestKeepFileLater has no place for the file at first.
func TestKeepFileLater(t *testing.T) {
	t.Parallel()
	cfg := config(t)
	var log journal.Journal
	cfg.Log = log.Logger()
	dir := filepath.Join(t.TempDir(), "dir")
	cfg.Snapshot = filepath.Join(dir, "snapshot")
	s := open(t, cfg)
	require.NoError(t, os.Remove(dir))
	start(t, s)
	apply(t, s, putApp("a"))
	wait.Until(t, "word of it", func() bool { return log.Count("cannot write the snapshot") == 1 })
	require.NoError(t, os.Mkdir(dir, 0o700))
	wait.Until(t, "the end of it", func() bool { return log.Count("can be written again") == 1 })
	if got, err := decodeFile(read(t, cfg.Snapshot)); err != nil || got.at != s.current.Load().at {
		t.Errorf("saved %+v, error %v", got, err)
	}
}

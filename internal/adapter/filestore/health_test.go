package filestore

import (
	"bytes"
	"log/slog"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/topsail-serving/topsail/serving/catalog"
	"github.com/topsail-serving/topsail/test/require"
)

// TestAFullDiskIsSeen has writes fail as on a full disk: the answers say why, the log once, and
// the next one that succeeds ends it.
func TestAFullDiskIsSeen(t *testing.T) {
	var log bytes.Buffer
	s, err := Open(t.TempDir(), slog.New(slog.NewTextHandler(&log, nil)))
	require.NoError(t, err)
	defer s.Close()
	full := &os.PathError{Op: "write", Path: s.path, Err: syscall.ENOSPC}
	for range 3 {
		if err := s.update(func(*tx) error { return full }); err == nil || !strings.Contains(err.Error(), "no space left on device: make room on the disk") {
			t.Errorf("the answer is %v", err)
		}
	}
	if err := s.Condition(); s.Writable() || err == nil || !strings.Contains(err.Error(), "cannot be written: no space left on device: make room on the disk of the data directory; changes and feedback are refused until it can") {
		t.Errorf("condition %v", err)
	}
	if n := strings.Count(log.String(), "level=ERROR"); n != 1 {
		t.Errorf("%d lines:\n%s", n, log.String())
	}
	apply(t, s, catalog.PutApp{App: app("a")})
	if err := s.Condition(); !s.Writable() || err != nil || !strings.Contains(log.String(), "can be written again") {
		t.Errorf("condition %v, log\n%s", err, log.String())
	}
}

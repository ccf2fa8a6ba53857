package doctor

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/topsail-serving/topsail/internal/check"
	"github.com/topsail-serving/topsail/test/require"
)

func TestJudgeSpace(t *testing.T) {
	const need = 100 << 20
	for name, test := range map[string]struct {
		free room
		want check.State
		says string
	}{
		"room":            {room{need + marginBytes, marginFiles}, check.OK, "needs 100.0 MiB"},
		"no bound":        {room{need + marginBytes, -1}, check.OK, ""},
		"little":          {room{need + marginBytes - 1, marginFiles}, check.Warn, "free for /data"},
		"just enough":     {room{need, marginFiles}, check.Warn, "100.0 MiB free"},
		"too little":      {room{need - 1, marginFiles}, check.Failed, "needs 100.0 MiB"},
		"nothing":         {room{0, marginFiles}, check.Failed, "0.0 MiB free"},
		"few more files":  {room{need + marginBytes, leastFiles}, check.Warn, "100 more files"},
		"hardly any file": {room{need + marginBytes, leastFiles - 1}, check.Failed, "99 more files"},
	} {
		f := judgeSpace("free space", "/data", test.free, need)
		if f.State != test.want || !strings.Contains(f.Detail, test.says) || (f.Next == "") != (f.State == check.OK) {
			t.Errorf("%s: got %+v", name, f)
		}
	}
}

// A full file system fails: /proc has no room at all.
func TestFreeSpace(t *testing.T) {
	if f := freeSpace("free space", "/proc"); f.State != check.Failed {
		t.Errorf("got %+v", f)
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if f := freeSpace("free space", filepath.Join(file, "below")); f.State != check.Failed {
		t.Errorf("below a file: got %+v", f)
	}
	dir := filepath.Join(t.TempDir(), "new", "data")
	if _, err := roomOf(existing(dir)); err != nil {
		t.Error(err)
	}
}

// What is needed follows the largest bundle and the file of the state.
func TestLargest(t *testing.T) {
	dir := t.TempDir()
	for name, size := range map[string]int64{"bundles/a.zip": 1000, "bundles/b.zip": 3000, "bundles/upload-1": 9000, "topsail.db": 500} {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, make([]byte, size), 0o600))
	}
	if n := largest(dir); n != 3500 {
		t.Errorf("in the data directory: %d", n)
	}
	if n := largest(filepath.Join(dir, "bundles")); n != 3000 {
		t.Errorf("in the folder of bundles: %d", n)
	}
}

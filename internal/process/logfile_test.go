//go:build unix

package process

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/test/require"
)

// morning is two hours east of Greenwich, and stands as 07:08 in a log file.
var morning = time.Date(2026, 5, 6, 9, 8, 7, 123_456_789, time.FixedZone("", 2*60*60))

const morningPrefix = "2026-05-06T07:08:07.123Z "

func writeLines(t *testing.T, path string, limit int64, lines ...string) {
	t.Helper()
	l, err := openLog(path, limit)
	require.NoError(t, err)
	for _, line := range lines {
		require.NoError(t, l.writeLine(morning, []byte(line)))
	}
	require.NoError(t, l.close())
}

// wantLines checks a log file's lines, which all have the time of morning.
func wantLines(t *testing.T, path string, lines ...string) {
	t.Helper()
	got, err := os.ReadFile(path)
	require.NoError(t, err)
	if want := morningPrefix + strings.Join(lines, "\n"+morningPrefix) + "\n"; string(got) != want {
		t.Errorf("%s holds %q, want %q", filepath.Base(path), got, want)
	}
}

func TestLogFileAppends(t *testing.T) {
	path := filepath.Join(t.TempDir(), "made", "on", "the", "way", "log")
	writeLines(t, path, 1000, "a", "")
	writeLines(t, path, 1000, "b")
	wantLines(t, path, "a", "", "b")
}

func TestLogFileRotates(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	two := int64(2 * len(morningPrefix+"a\n"))
	writeLines(t, path, two, "a", "b")
	if _, err := os.Stat(path + ".1"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("two lines fit, and yet: %v", err)
	}
	writeLines(t, path, two, "c") // the size of the file counts, not what one run wrote
	wantLines(t, path, "c")
	wantLines(t, path+".1", "a", "b")
	writeLines(t, path, two, "d", "e", "longer than all of the limit, and there is no better place for it", "f")
	wantLines(t, path, "f")
	wantLines(t, path+".1", "longer than all of the limit, and there is no better place for it")
	if files, _ := filepath.Glob(path + "*"); len(files) != 2 {
		t.Errorf("files %q", files)
	}
}

func BenchmarkLogFile(b *testing.B) {
	l, err := openLog(filepath.Join(b.TempDir(), "log"), 1<<20)
	require.NoError(b, err)
	line := []byte(strings.Repeat("x", 100))
	b.ReportAllocs()
	for b.Loop() {
		require.NoError(b, l.writeLine(morning, line))
	}
}

// A log that cannot be opened keeps no process from starting.
func TestALogThatCannotBeOpenedIsSetAside(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	require.NoError(t, os.Mkdir(path, 0o700))
	l, err := openLog(path, 200)
	require.NoError(t, err)
	defer l.close()
	if err := l.writeLine(time.Now(), []byte("it starts")); err != nil {
		t.Error(err)
	}
	if info, err := os.Stat(path + ".damaged"); err != nil || !info.IsDir() {
		t.Errorf("what was there is gone: %v", err)
	}
}

//go:build unix

package process

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/topsail-serving/topsail/test/require"
)

// record is what a test wants to know of a slog record.
type record struct {
	Level   string
	Msg     string
	Replica string
	Lines   int
}

func records(t *testing.T, log *bytes.Buffer) (all []record) {
	t.Helper()
	for line := range strings.Lines(log.String()) {
		var r record
		require.NoError(t, json.Unmarshal([]byte(line), &r))
		all = append(all, r)
	}
	return all
}

func TestOutputOfAChild(t *testing.T) {
	var log bytes.Buffer // slog's handler locks it, and Run is over before it is read
	path := filepath.Join(t.TempDir(), "log")
	s := superviseWith(t, Spec{
		Argv:    sh("echo one; echo two >&2; printf rest >&2; head -c 200000 /dev/zero | tr '\\0' x; echo; sleep 60"),
		LogFile: path,
	}, testGuard(), slog.New(slog.NewJSONHandler(&log, nil)))
	long := strings.Repeat("x", maxLine) + " [183616 bytes cut]"
	s.waitLine(long)
	s.stop()

	want := []string{"one", "rest", "two", long} // sorted: the order of two streams is open
	got := s.Tail(tailLines)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("Tail gives %d lines, %.80q", len(got), got)
	}
	checkLogFile(t, path, want)
	for _, line := range want {
		if !slices.Contains(records(t, &log), record{Level: "INFO", Msg: line, Replica: "r1"}) {
			t.Errorf("slog lacks %.80q", line)
		}
	}
}

func checkLogFile(t *testing.T, path string, want []string) {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	prefix := regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z `)
	var lines []string
	for line := range strings.Lines(string(text)) {
		stamp := prefix.FindString(line)
		at, err := time.Parse("2006-01-02T15:04:05Z ", stamp)
		if err != nil || time.Since(at).Abs() > time.Minute {
			t.Errorf("line %.80q has not the time in UTC: %v", line, err)
		}
		lines = append(lines, strings.TrimSuffix(line[len(stamp):], "\n"))
	}
	slices.Sort(lines)
	if !slices.Equal(lines, want) {
		t.Errorf("the log file has %d lines, %.80q", len(lines), lines)
	}
}

func TestOutputRotates(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	s := supervise(t, Spec{Argv: sh("for n in 1 2 3 4 5 6 7 8 9; do echo line $n; done"), LogFile: path, LogLimit: 150})
	s.until(BackingOff)
	s.stop()
	old, err := os.ReadFile(path + ".1")
	require.NoError(t, err)
	if n := strings.Count(string(old), "\n"); n != 4 { // of 32 bytes
		t.Errorf("%d lines in the old file: %q", n, old)
	}
}

func TestOutputCountsWhatSlogMissed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		o := &output{log: slog.New(slog.NewJSONHandler(&log, nil))}
		path := filepath.Join(t.TempDir(), "log")
		require.NoError(t, o.open(path, 1<<20))
		o.copyFrom(strings.NewReader(strings.Repeat("early\n", maxLinesPerSecond+30)))
		time.Sleep(time.Second)
		o.copyFrom(strings.NewReader(strings.Repeat("late\n", maxLinesPerSecond+7)))
		o.close()

		var missed []int
		passed := make(map[string]int)
		for _, r := range records(t, &log) {
			if r.Lines > 0 {
				missed = append(missed, r.Lines)
			} else {
				passed[r.Msg]++
			}
		}
		if !slices.Equal(missed, []int{30, 7}) || passed["early"] != maxLinesPerSecond || passed["late"] != maxLinesPerSecond {
			t.Errorf("slog has %v and was told of %v missed lines", passed, missed)
		}
		text, err := os.ReadFile(path)
		if n := strings.Count(string(text), "\n"); err != nil || n != 2*maxLinesPerSecond+37 {
			t.Errorf("the log file has %d lines, %v", n, err)
		}
	})
}

func TestOutputSurvivesItsLogFile(t *testing.T) {
	var log bytes.Buffer
	o := &output{log: slog.New(slog.NewJSONHandler(&log, nil))}
	require.NoError(t, o.open(filepath.Join(t.TempDir(), "log"), 1<<20))
	if err := o.file.close(); err != nil { // from here, each write fails
		t.Fatal(err)
	}
	o.copyFrom(strings.NewReader("a\nb\n"))
	o.close()
	var warnings, lines int
	for _, r := range records(t, &log) {
		if r.Level == "WARN" {
			warnings++
		} else {
			lines++
		}
	}
	if warnings != 1 || lines != 2 || len(o.tail.last(9)) != 2 {
		t.Errorf("%d warnings, %d lines in slog, tail %q", warnings, lines, o.tail.last(9))
	}
}

//go:build unix

package process

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/topsail-serving/topsail/test/require"
)

func TestLastLines(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		lines := rapid.SliceOfN(rapid.SampledFrom([]string{"", "a", strings.Repeat("x", 40_000)}), 0, 12).Draw(t, "lines")
		n := rapid.IntRange(1, 14).Draw(t, "n")
		text := ""
		for _, line := range lines {
			text += line + "\n"
		}
		at, err := lastLines(strings.NewReader(text), int64(len(text)), n)
		require.NoError(t, err)
		want := strings.Join(append(lines[max(len(lines)-n, 0):len(lines):len(lines)], ""), "\n")
		if text[at:] != want {
			t.Fatalf("from %d: %.40q, want %.40q", at, text[at:], want)
		}
	})
}

// TestFollow reads on while a log grows and starts anew.
func TestFollow(t *testing.T) {
	path := filepath.Join(t.TempDir(), "model.log")
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	r, err := OpenLog(ctx, path, 10, true) // before it is there
	require.NoError(t, err)
	defer r.Close()
	l, err := openLog(path, 200)
	require.NoError(t, err)
	var got []string
	in := bufio.NewScanner(r)
	for i := range 9 {
		require.NoError(t, l.writeLine(time.Now(), fmt.Appendf(nil, "line %d", i)))
		if !in.Scan() {
			t.Fatal("the log ended")
		}
		_, line, _ := strings.Cut(in.Text(), " ")
		got = append(got, line)
	}
	want := []string{"line 0", "line 1", "line 2", "line 3", "line 4", "line 5", "line 6", "line 7", "line 8"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
	stop()
	if in.Scan() {
		t.Errorf("after the end: %q", in.Text())
	}
	require.NoError(t, l.close())
}

func TestReadToTheEnd(t *testing.T) {
	path := filepath.Join(t.TempDir(), "model.log")
	require.NoError(t, os.WriteFile(path, []byte("one\ntwo\nthree\nfo"), 0o600))
	for n, want := range map[int]string{0: "", 1: "fo", 2: "three\nfo", 9: "one\ntwo\nthree\nfo"} {
		r, err := OpenLog(t.Context(), path, n, false)
		require.NoError(t, err)
		got, err := io.ReadAll(r)
		if err != nil || string(got) != want {
			t.Errorf("%d lines: %q, %v; want %q", n, got, err, want)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
}

//go:build unix

package process

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// split writes the chunks and collects the lines.
func split(chunks ...string) (lines []string) {
	w := &lineWriter{emit: func(line []byte) { lines = append(lines, string(line)) }}
	for _, chunk := range chunks {
		if n, err := w.Write([]byte(chunk)); n != len(chunk) || err != nil {
			panic(fmt.Sprint(n, err))
		}
	}
	w.flushRest()
	return lines
}

func TestLineWriter(t *testing.T) {
	full := strings.Repeat("x", maxLine)
	for name, test := range map[string]struct{ chunks, want []string }{
		"one line":      {[]string{"a\n"}, []string{"a"}},
		"many lines":    {[]string{"a\nb\n\nc\n"}, []string{"a", "b", "", "c"}},
		"in pieces":     {[]string{"a", "b", "\n", "c\nd", "\n"}, []string{"ab", "c", "d"}},
		"no last break": {[]string{"a\nb"}, []string{"a", "b"}},
		"windows":       {[]string{"a\r", "\nb\r\n"}, []string{"a", "b"}},
		"just fits":     {[]string{full, "\n"}, []string{full}},
		"too long":      {[]string{full, "yyy", "yy\nz\n"}, []string{full + " [5 bytes cut]", "z"}},
		"nothing":       {nil, nil},
	} {
		if got := split(test.chunks...); !slices.Equal(got, test.want) {
			t.Errorf("%s: %d lines, %.100q", name, len(got), got)
		}
	}
}

// How the output is cut into writes does not matter.
func TestLineWriterChunks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOf(rapid.StringMatching(`[a\r\n]{0,5}`)).Draw(t, "text"), "")
		want := split(text)
		var chunks []string
		for rest := text; rest != ""; {
			n := rapid.IntRange(1, len(rest)).Draw(t, "n")
			chunks, rest = append(chunks, rest[:n]), rest[n:]
		}
		if got := split(chunks...); !slices.Equal(got, want) {
			t.Fatalf("%q in chunks %q: %q, want %q", text, chunks, got, want)
		}
		if n := strings.Count(text, "\n"); len(want) != n && len(want) != n+1 {
			t.Fatalf("%d lines in %q", len(want), text)
		}
	})
}

func TestLineWriterIsBounded(t *testing.T) {
	w := &lineWriter{emit: func([]byte) {}}
	chunk := bytes.Repeat([]byte("x"), 32<<10)
	for range 1000 {
		if _, err := w.Write(chunk); err != nil {
			t.Fatal(err)
		}
	}
	if cap(w.kept) > 2*maxLine {
		t.Errorf("%d bytes are held", cap(w.kept))
	}
}

func BenchmarkLineWriter(b *testing.B) {
	chunk := bytes.Repeat([]byte("2026-01-02 a line of a usual length, as a model writes it\n"), 500)
	w := &lineWriter{emit: func([]byte) {}}
	b.SetBytes(int64(len(chunk)))
	b.ReportAllocs()
	for b.Loop() {
		_, _ = w.Write(chunk)
	}
}

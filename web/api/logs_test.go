package api

import (
	"bytes"
	"context"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"

	"pgregory.net/rapid"

	"github.com/topsail-serving/topsail/serving"
)

// says has every replica write a text, and notes what was asked for.
func (r *running) says(text string) *LogQuery {
	var asked LogQuery
	r.logs = func(_ context.Context, query LogQuery) io.ReadCloser {
		asked = query
		return io.NopCloser(strings.NewReader(text))
	}
	return &asked
}

const pipeline = `[rank/0] one
[rank-2/0] of another stage
2026-12-01T02:45:36.123Z [rank/12] two
starting [rank/0] not a worker's
[rank] nor this
[rank/x] nor this
2026-12-01T02:45:37.123Z [read/0] [rank/0] said by another
[rank/1] three, which is not ended`

func TestLogsOfAStage(t *testing.T) {
	r := runs(t)
	asked := r.says(pipeline)
	const all = "[rank/0] one\n2026-12-01T02:45:36.123Z [rank/12] two\n[rank/1] three, which is not ended\n"
	for query, want := range map[string]string{
		"stage=rank":                     all,
		"stage=rank&lines=2":             all[strings.Index(all, "2026"):],
		"stage=rank&lines=0":             "",
		"stage=rank-2":                   "[rank-2/0] of another stage\n",
		"stage=none":                     "",
		"stage=rank&follow=true&lines=1": all, // of those that the platform gave
		"stage=rank&stream=stdout":       all,
	} {
		answer := r.ask("GET", "/replicas/m-1/logs?"+query, "")
		if answer.Code != 200 || answer.Body.String() != want {
			t.Errorf("%s: %d %q, want %q", query, answer.Code, answer.Body, want)
		}
	}
	r.ask("GET", "/replicas/m-1/logs?stage=rank&lines=2", "")
	if *asked != (LogQuery{Lines: maxLines, Stream: "all"}) {
		t.Errorf("looks for the last lines of a stage among %+v", asked)
	}
	r.ask("GET", "/replicas/m-1/logs?stage=rank&lines=2&follow=true", "")
	if *asked != (LogQuery{Lines: 2, Follow: true, Stream: "all"}) {
		t.Errorf("follows %+v", asked)
	}
	for query, says := range map[string]string{
		"stage=":                    "stage must be the name of a stage",
		"stage=a/0":                 "stage must be the name of a stage",
		"stage=.*":                  "stage must be the name of a stage",
		"stage=a&stage=b":           "stage is given twice",
		"stage=rank&stream=sidecar": "leave one of them out",
	} {
		expectCode(t, r.ask("GET", "/replicas/m-1/logs?"+query, ""), 400, "invalid", says)
	}
}

// TestLinesOfAStage: what is passed on are the lines of the stage, in order, whole up to their bound, whatever the pieces
// are in which they come.
func TestLinesOfAStage(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		begin := rapid.SampledFrom([]string{"", "[a/0] ", "[a/17] ", "[b/0] ", "[ab/0] ", "[a/] ", "[a/0]", " [a/0] ", "2026-12-01T02:45:36.123Z [a/0] ", "2026-12-01 [a/0] ", "x [a/0] "})
		ours := []string{"[a/0] ", "[a/17] ", "2026-12-01T02:45:36.123Z [a/0] "}
		var all strings.Builder
		var want []string
		for range rapid.IntRange(0, 20).Draw(t, "lines") {
			first := begin.Draw(t, "begin")
			line := first + strings.Repeat("x", rapid.SampledFrom([]int{0, 1, 50, maxLine - 6, maxLine - 5, maxLine, 3 * maxLine}).Draw(t, "length"))
			all.WriteString(line + "\n")
			if slices.Contains(ours, first) {
				want = append(want, line[:min(len(line), maxLine)])
			}
		}
		var from io.Reader = strings.NewReader(all.String())
		if rapid.Bool().Draw(t, "half") {
			from = iotest.HalfReader(from)
		}
		n := rapid.IntRange(0, 20).Draw(t, "last")
		var got []string
		for line := range lastOf(linesOf("a", from), n) {
			got = append(got, strings.TrimSuffix(string(line), "\n"))
		}
		if want = want[max(len(want)-n, 0):]; !slices.Equal(got, want) {
			t.Fatalf("got %.200q, want %.200q", got, want)
		}
	})
}

// TestLastLinesAreBounded: however long the lines of a stage are, no more than so many bytes of them are kept.
func TestLastLinesAreBounded(t *testing.T) {
	long := bytes.Repeat([]byte("x"), maxLine)
	size := 0
	for line := range lastOf(slices.Values(slices.Repeat([][]byte{long}, 1000)), 1000) {
		size += len(line)
	}
	if size > maxKept || size < maxKept-maxLine {
		t.Errorf("%d bytes are kept of at most %d", size, maxKept)
	}
}

func TestFollowLogsOfAStage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := runs(t)
		to := r.lines()
		c := r.reads(t, "viewer", "/replicas/m-1/logs?follow=true&stage=rank")
		for piece, want := range map[string]string{
			"[rank/0] a\n[read/0] b\n": "[rank/0] a\n",
			"[read/0] c\n":             "",
		} {
			if _, err := io.WriteString(to, piece); err != nil || c.take() != want {
				t.Errorf("%q did not come at once as %q: %v", piece, want, err)
			}
		}
		for _, piece := range []string{"[ra", "nk/1] d"} {
			if _, err := io.WriteString(to, piece); err != nil || c.take() != "" {
				t.Errorf("half a line: %v", err)
			}
		}
		if _, err := io.WriteString(to, "\n"); err != nil || c.take() != "[rank/1] d\n" {
			t.Errorf("the end of a line: %v", err)
		}
		c.leave()
	})
}

// TestLogsOfAReplicaThatEnded: they are read by those who see its model, and are not followed.
func TestLogsOfAReplicaThatEnded(t *testing.T) {
	r := runs(t)
	r.ended = map[string]serving.ModelID{"m-0": {Model: "m", Version: "1"}, "n-0": {Model: "n", Version: "1"}, "old-0": {Model: "old", Version: "1"}}
	asked := r.says("[rank/0] its last words\n")
	for _, id := range []string{"m-0", "n-0", "old-0"} {
		expect(t, r.ask("GET", "/replicas/"+id+"/logs?follow=true&lines=5", ""), 200, "its last words")
		if *asked != (LogQuery{Lines: 5, Stream: "all"}) {
			t.Errorf("%s: %+v", id, asked)
		}
	}
	expect(t, r.ask("GET", "/replicas/m-0/logs?stage=rank", ""), 200, "its last words")
	expect(t, r.askBy("alice", "GET", "/replicas/m-0/logs", ""), 200, "its last words")
	r.done = nil
	expectCode(t, r.askBy("alice", "GET", "/replicas/n-0/logs", ""), 404, "not_found")
	expectCode(t, r.askBy("alice", "GET", "/replicas/old-0/logs", ""), 404, "not_found")
	expectCode(t, r.ask("GET", "/replicas/none/logs", ""), 404, "not_found")
	expectCode(t, r.askBy("query", "GET", "/replicas/m-0/logs", ""), 403, "forbidden")
	expectCode(t, r.ask("GET", "/replicas/m-0", ""), 404, "not_found")
	expectCode(t, r.ask("POST", "/replicas/m-0/restart", ""), 404, "not_found")
	if len(r.done) > 0 {
		t.Errorf("what was refused was done: %v", r.done)
	}
}

package admin

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
)

func TestLogs(t *testing.T) {
	f := newFake(t)
	f.here(t)
	f.answer("GET /api/v1/replicas/wine-forest-1-0/logs?lines=100", answer{status: 200, body: "a\x1b[31m\r\n\nlast"})
	f.answer("GET /api/v1/replicas/wine-forest-2-0/logs?lines=100", answer{status: 200, body: "b\n"})
	// A pipe gets what came.
	if r := f.run(t, "logs", "wine-forest-1-0"); r.status != 0 || r.out != "a\x1b[31m\n\nlast\n" {
		t.Errorf("%+v", r)
	}
	if r := f.run(t, "replica", "logs", "wine-forest-1-0"); r.out != "a\x1b[31m\n\nlast\n" {
		t.Errorf("%+v", r)
	}
	if r := f.run(t, "logs", "wine-forest:2"); r.out != "b\n" {
		t.Errorf("%+v", r)
	}
	r := f.run(t, "logs", "wine-forest")
	lines := strings.Split(strings.TrimSuffix(r.out, "\n"), "\n")
	slices.Sort(lines)
	want := []string{"wine-forest-1-0 | ", "wine-forest-1-0 | a\x1b[31m", "wine-forest-1-0 | last", "wine-forest-2-0 | b"}
	if !slices.Equal(lines, want) {
		t.Errorf("%q", lines)
	}
	if r := f.run(t, "logs", "nothing"); r.status != exitUnknown || !strings.Contains(r.err, "see `topsail replica list`") {
		t.Errorf("%+v", r)
	}
	f.answer("GET /api/v1/replicas/wine-forest-1-0/logs?lines=5&stream=stderr", answer{status: 200, body: strings.Repeat("x", maxLine+10) + "\nshort\n"})
	if r := f.run(t, "logs", "wine-forest-1-0", "-n", "5", "--stream", "stderr"); r.out != strings.Repeat("x", maxLine)+"…\nshort\n" {
		t.Errorf("a long line: %d bytes, %s", len(r.out), r.err)
	}
	f.answer("GET /api/v1/replicas/gone/logs?lines=100&stage=rank", answer{status: 200, body: "[rank/0] its end\n"})
	for _, command := range [][]string{{"replica", "logs"}, {"logs"}} {
		if r := f.run(t, append(command, "gone", "--stage", "rank")...); r.status != 0 || r.out != "[rank/0] its end\n" {
			t.Errorf("%v: %+v", command, r)
		}
	}
}

func TestFollowedLogsEndWithTheCommand(t *testing.T) {
	f := newFake(t)
	f.here(t)
	ctx, cancel := context.WithCancel(t.Context())
	f.answer("GET /api/v1/replicas/wine-forest-1-0/logs?follow=true&lines=0", answer{serve: func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "now\n")
		w.(http.Flusher).Flush()
		cancel()
		<-r.Context().Done()
	}})
	if r := f.runWith(ctx, t, "", "logs", "-f", "-n", "0", "wine-forest-1-0"); r.status != 0 || r.err != "" {
		t.Errorf("%+v", r)
	}
}

const stream = `event: hello
data: {"revision": 7, "me": {"name": "local", "role": "admin", "mode": "local"}}

: still here

event: catalog
data: {"revision": 8,
data: "changed": [{"kind": "app", "name": "a"}, {"kind": "model", "name": "m"}]}

event: catalog
data: {"revision": 9}

event: replicas
data: {"changed": [{"kind": "replica", "name": "m-1-0"}]}

event: traffic
data: {}

event: decision
data: {"changed": [{"kind": "version", "name": "m:1"}]}

event: audit
data: {"changed": [{"kind": "app", "name": "a\u001b[31m"}]}

event: cluster
data: {}

event: later
data: {"what": "a newer server says"}

event: audit
data: [1]

data: cut off`

func TestEvents(t *testing.T) {
	f := newFake(t)
	f.here(t)
	f.answer("GET /api/v1/events", answer{status: 200, body: stream})
	f.answers["GET /api/v1/cluster"] = []answer{{status: 200, body: `{"mode": "local", "processes": [{}], "servers": [], "alarms": [{"name": "a", "state": "warn", "detail": "slow"}]}`}}
	r := f.run(t, "events")
	if r.status != exitAway || !strings.Contains(r.err, "the stream of events ended") {
		t.Errorf("%+v", r)
	}
	var lines []string
	for line := range strings.Lines(r.out) {
		lines = append(lines, strings.TrimSpace(line[len("15:04:05  "):]))
	}
	want := []string{
		"hello     local as local (admin), revision 7",
		"catalog   revision 8, app a, model m",
		"catalog   revision 9",
		"replicas  replica m-1-0",
		"decision  version m:1",
		"audit     app a?[31m",
		"cluster   1 processes, 0 servers, 1 alarms; warn: slow",
		`later     {"what": "a newer server says"}`,
		"audit     [1]",
	}
	if !slices.Equal(lines, want) {
		t.Errorf("got\n%s", strings.Join(lines, "\n"))
	}
	r = f.run(t, "events", "--topic", "traffic,audit", "-o", "json")
	var topics []string
	for line := range strings.Lines(r.out) {
		var e struct {
			Topic string
			Data  json.RawMessage
		}
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatal(err)
		}
		topics = append(topics, e.Topic)
	}
	if !slices.Equal(topics, []string{"traffic", "audit", "audit"}) {
		t.Errorf("%v", topics)
	}
	ctx, cancel := context.WithCancel(t.Context())
	f.answers["GET /api/v1/events"] = []answer{{serve: func(w http.ResponseWriter, r *http.Request) {
		w.(http.Flusher).Flush()
		cancel()
		<-r.Context().Done()
	}}}
	if r := f.runWith(ctx, t, "", "events"); r.status != 0 || r.err != "" {
		t.Errorf("ctrl-C: %+v", r)
	}
}

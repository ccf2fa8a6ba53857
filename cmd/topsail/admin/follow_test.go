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
data: {"whole": true, "revision": 7, "apps": [{"name": "a"}], "models": [], "versions": [], "gone": []}

event: catalog
data: {"revision": 8, "apps": [{"name": "a"}], "models": [{"name": "m"}], "versions": [{"model": "m", "version": "1"}],
data: "gone": [{"kind": "app", "name": "b"}]}

event: replicas
data: {"whole": true, "changed": [{"id": "m-1-0", "state": "starting"}, {"id": "m-1-1", "state": "ready"}], "gone": []}

event: replicas
data: {"changed": [{"id": "m-1-0", "model": "m", "version": "1", "state": "failed", "reason": "it died\n"}], "gone": ["m-1-1"]}

event: traffic
data: {"apps": [{"app": "a", "rate": 2.5, "attainment": 0.5}, {"app": "b", "rate": 1}]}

event: decision
data: {"model": "m", "version": "1", "from": 1, "to": 2, "rule": "capacity", "reason": "too little", "outcome": "applied"}

event: audit
data: {"who": "ann", "action": "update", "kind": "app", "name": "a\u001b[31m"}

event: cluster
data: {"mode": "local", "processes": [{}], "servers": [], "alarms": [{"severity": "warn", "text": "slow"}]}

event: later
data: {"what": "a newer server says"}

event: traffic
data: [1]

data: cut off`

func TestEvents(t *testing.T) {
	f := newFake(t)
	f.here(t)
	f.answer("GET /api/v1/events", answer{status: 200, body: stream})
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
		"catalog   revision 7: 1 apps, 0 models, 0 versions",
		"catalog   revision 8; app a; model m; version m:1; app b is deleted",
		"replicas  2 replicas",
		"replicas  m-1-0 of m:1 is failed (it died ); m-1-1 has ended",
		"traffic   queries to 2 apps, 3.5/s; a: 50 % within its SLO",
		"decision  m:1 from 1 to 2, applied by capacity: too little",
		"audit     ann: update app a?[31m",
		"cluster   1 processes, 0 servers, 1 alarms; warn: slow",
		`later     {"what": "a newer server says"}`,
		"traffic   [1]",
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
	if !slices.Equal(topics, []string{"traffic", "audit", "traffic"}) {
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

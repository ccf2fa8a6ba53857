package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/serving/catalog"
	"github.com/topsail-serving/topsail/web/rest"
)

func TestListReplicas(t *testing.T) {
	r := runs(t)
	r.measures = 16
	expect(t, r.ask("GET", "/replicas", ""), 200, `"id":"m-1"`, `"batch_limit":16`, `"id":"n-1"`, "!", `"next"`)
	expect(t, r.ask("GET", "/replicas?model=m&version=2", ""), 200, `"id":"m-2"`, "!", "m-1", "n-1")
	first := read[rest.Page[Replica]](t, r.ask("GET", "/replicas?limit=2", ""))
	if len(first.Items) != 2 || first.Next == "" {
		t.Fatalf("%+v", first)
	}
	expect(t, r.ask("GET", "/replicas?limit=2&cursor="+first.Next, ""), 200, "n-1", "!", "m-1", "next")
	expect(t, r.askBy("alice", "GET", "/replicas", ""), 200, "m-1", "!", "n-1")
	expect(t, r.ask("GET", "/replicas?model=none", ""), 200, `{"items":[]}`)
	expectCode(t, r.ask("GET", "/replicas?limit=0", ""), 400, "invalid")
	expectCode(t, r.askBy("query", "GET", "/replicas", ""), 403, "forbidden")
}

func TestGetReplica(t *testing.T) {
	r := runs(t)
	r.measures = 16
	expect(t, r.ask("GET", "/replicas/m-1", ""), 200, `"batch_limit":16`)
	expectCode(t, r.ask("GET", "/replicas/none", ""), 404, "not_found")
	expectCode(t, r.askBy("alice", "GET", "/replicas/n-1", ""), 404, "not_found")
}

func TestGetVersionStages(t *testing.T) {
	r := runs(t)
	at := "/models/m/versions/1/stages"
	expect(t, r.ask("GET", at, ""), 200, `"bottleneck":"rank","stages":[{"stage":"rank","after":["input"],"workers":2,"ready":1,"waiting":3}]`)
	if r.window != time.Minute {
		t.Errorf("by default a window of %v", r.window)
	}
	expect(t, r.ask("GET", at+"?window=900", ""), 200)
	if r.window != 15*time.Minute {
		t.Errorf("a window of %v", r.window)
	}
	expectCode(t, r.ask("GET", at+"?window=901", ""), 400, "invalid", "between 60 and 900")
	expectCode(t, r.askBy("alice", "GET", "/models/n/versions/1/stages", ""), 404, "not_found")
	expectCode(t, r.askBy("query", "GET", at, ""), 403, "forbidden")
	// What no replica tells of is as the version says, if it does.
	expect(t, r.ask("GET", "/models/m/versions/2/stages", ""), 200, `"window_seconds":0,"stages":[]}`)
	staged := serving.Version{ModelID: serving.ModelID{Model: "m", Version: "3"}, InputType: serving.Doubles, Container: serving.Container{Command: []string{"c"}}}
	staged.Stages = serving.Pipeline{{Name: "a", Workers: 2}, {Name: "b"}}
	r.change(t, catalog.PutVersion{Version: staged, KeepCurrent: true})
	expect(t, r.ask("GET", "/models/m/versions/3/stages", ""), 200,
		`"stages":[{"stage":"a","after":["input"],"workers":0,"ready":0,"waiting":0},{"stage":"b","after":["a"],"workers":0,`)
	// Of replicas only the question for one tells.
	expect(t, r.ask("GET", "/replicas/m-1", ""), 200, `"stages":[{"stage":"rank at first"`)
	expect(t, r.ask("GET", "/replicas", ""), 200, "!", `"stages"`)
}

func TestRestartAndDrain(t *testing.T) {
	for _, action := range []string{"restart", "drain"} {
		r := runs(t)
		path := "/replicas/m-1/" + action
		expectCode(t, r.askBy("viewer", "POST", path, ""), 403, "forbidden")
		expectCode(t, r.askBy("alice", "POST", "/replicas/n-1/"+action, ""), 404, "not_found")
		expect(t, r.askBy("operator", "POST", path, ""), 202)
		if fmt.Sprint(r.done) != "["+action+" m-1]" {
			t.Errorf("%v", r.done)
		}
		if e := r.log[0]; len(r.log) != 1 || e.Who != "operator" || e.Action != action || e.Kind != "replica" || e.Name != "m-1" || e.From == "" {
			t.Errorf("%+v", r.log)
		}
		r.refuses = fmt.Errorf("%w: it is the last one that is ready", ErrRefused)
		expectCode(t, r.ask("POST", path, ""), 409, "refused", "the last one")
		if len(r.log) != 1 {
			t.Error("what was refused is noted as done")
		}
		r.change(t, catalog.Link{App: "b", Model: "m"})
		expectCode(t, r.askBy("alice", "POST", path, ""), 403, "forbidden", "!", "the last one")
	}
}

// lines are logs that a test writes; Close and the end of ctx end them.
func (r *running) lines() *io.PipeWriter {
	from, to := io.Pipe()
	r.logs = func(ctx context.Context, query LogQuery) io.ReadCloser {
		context.AfterFunc(ctx, func() { from.CloseWithError(ctx.Err()) })
		return from
	}
	return to
}

func TestLogs(t *testing.T) {
	r := runs(t)
	var asked LogQuery
	r.logs = func(_ context.Context, query LogQuery) io.ReadCloser {
		asked = query
		return io.NopCloser(strings.NewReader("one\ntwo\n"))
	}
	answer := r.ask("GET", "/replicas/m-1/logs?lines=7&stream=stderr", "")
	expect(t, answer, 200, "one\ntwo\n")
	if kind := answer.Header().Get("Content-Type"); kind != "text/plain; charset=utf-8" || asked != (LogQuery{Lines: 7, Stream: "stderr"}) {
		t.Errorf("%s for %+v", kind, asked)
	}
	r.ask("GET", "/replicas/m-1/logs", "")
	if asked != (LogQuery{Lines: 100, Stream: "all"}) {
		t.Errorf("%+v", asked)
	}
	expectCode(t, r.ask("GET", "/replicas/m-1/logs?lines=10001", ""), 400, "invalid")
	expectCode(t, r.ask("GET", "/replicas/m-1/logs?stream=none", ""), 400, "invalid")
	expectCode(t, r.ask("GET", "/replicas/m-1/logs?follow=yes", ""), 400, "invalid")
	expectCode(t, r.askBy("alice", "GET", "/replicas/n-1/logs", ""), 404, "not_found")
	r.refuses = errors.New("the node is away")
	expectCode(t, r.ask("GET", "/replicas/m-1/logs", ""), 503, "unavailable", "the node is away")
}

func TestFollowLogs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := runs(t)
		to := r.lines()
		c := r.reads(t, "viewer", "/replicas/m-1/logs?follow=true")
		if c.status != http.StatusOK {
			t.Fatal("nothing is said until there is a line")
		}
		if _, err := to.Write([]byte("now\n")); err != nil || c.take() != "now\n" {
			t.Errorf("it did not come at once: %v", err)
		}
		time.Sleep(10 * time.Minute)
		if _, err := to.Write(bytes.Repeat([]byte("x"), 100_000)); err != nil || len(c.take()) != 100_000 {
			t.Errorf("after a while: %v", err)
		}
		c.leave()
		if _, err := to.Write([]byte("x")); !errors.Is(err, context.Canceled) {
			t.Errorf("logs are read for nobody: %v", err)
		}

		r.lines()
		c = r.reads(t, "viewer", "/replicas/m-1/logs?follow=true")
		for id, k := range r.Catalog().Keys {
			if k.Name == "viewer" {
				r.change(t, catalog.RevokeKey{ID: id})
			}
		}
		time.Sleep(1100 * time.Millisecond)
		if !c.gone() {
			t.Error("somebody whose key was revoked reads on")
		}
	})
}

func TestTooManyReaders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := runs(t)
		r.lines()
		var all []*reader
		for range maxReaders {
			all = append(all, r.reads(t, "viewer", "/replicas/m-1/logs?follow=true"))
		}
		expectCode(t, r.ask("GET", "/replicas/m-1/logs?follow=true", ""), 503, "too_many", "64")
		for _, c := range all {
			c.leave()
		}
		again := r.reads(t, "viewer", "/replicas/m-1/logs?follow=true")
		if again.status != http.StatusOK {
			t.Error("places are not given back")
		}
		again.leave()
	})
}

func TestDecisionsAndScheduler(t *testing.T) {
	r := runs(t)
	for i := range 3 {
		for _, model := range []string{"m", "n"} {
			r.decided = append(r.decided, serving.Decision{ModelID: serving.ModelID{Model: model, Version: "1"}, At: r.now.Add(-time.Duration(i) * time.Hour), Reason: fmt.Sprint(model, i)})
		}
	}
	expect(t, r.ask("GET", "/decisions?limit=1", ""), 200, `"reason":"m0"`, "!", "n0")
	expect(t, r.ask("GET", "/decisions?model=n&version=1", ""), 200, `"n2"`, "!", `"m0"`)
	expect(t, r.askBy("bob", "GET", "/decisions?limit=2", ""), 200, `"n0"`, `"n1"`, "!", `"n2"`, `"m0"`)
	expect(t, r.ask("GET", "/decisions?model=none", ""), 200, `{"items":[]}`)
	expectCode(t, r.ask("GET", "/decisions?version=1", ""), 400, "invalid", "its model")
	expectCode(t, r.ask("GET", "/decisions?limit=1001", ""), 400, "invalid")

	expect(t, r.ask("GET", "/scheduler", ""), 200, `"pools":[]`)
	r.scheduler = SchedulerStatus{Leader: "s1", Pools: []Pool{{Model: "m", Version: "1", Desired: 2}, {Model: "n", Version: "1"}}}
	expect(t, r.askBy("alice", "GET", "/scheduler", ""), 200, `"leader":"s1"`, `"model":"m"`, "!", `"model":"n"`)
}

func TestTraffic(t *testing.T) {
	r := runs(t)
	r.traffic = []AppTraffic{{App: "a", Rate: 5}, {App: "b"}, {App: "deleted"}}
	expect(t, r.ask("GET", "/traffic", ""), 200, `"app":"a","slo_micros":100000,"rate":5`, `"app":"b"`, "!", "deleted")
	expect(t, r.askBy("bob", "GET", "/traffic", ""), 200, `"app":"b"`, "!", `"app":"a"`)
	expect(t, r.ask("GET", "/apps/a/traffic?window=3600", ""), 200, `"slo_micros":100000`, `"rate":[null]`)
	if r.window != time.Hour {
		t.Errorf("a window of %s", r.window)
	}
	expectCode(t, r.ask("GET", "/apps/a/traffic?window=59", ""), 400, "invalid")
	expectCode(t, r.askBy("bob", "GET", "/apps/a/traffic", ""), 404, "not_found")

	r.decided = []serving.Decision{
		{ModelID: serving.ModelID{Model: "m", Version: "1"}, At: r.now.Add(-time.Minute), Reason: "lately"},
		{ModelID: serving.ModelID{Model: "m", Version: "1"}, At: r.now.Add(-time.Hour), Reason: "before"},
	}
	expect(t, r.ask("GET", "/models/m/versions/1/traffic", ""), 200, "lately", "!", "before")
	expect(t, r.ask("GET", "/models/m/versions/2/traffic", ""), 200, `"decisions":[]`)
	expectCode(t, r.ask("GET", "/models/m/versions/3/traffic", ""), 404, "not_found")
}

func TestCluster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := runs(t)
		expect(t, r.ask("GET", "/cluster", ""), 200, `"servers":[]`, `"name":"n:1"`, `"name":"a"`)
		expect(t, r.askBy("bob", "GET", "/cluster", ""), 200, `"name":"n:1"`, `"name":"g1"`, "!", `"name":"a"`)
		time.Sleep(1900 * time.Millisecond)
		r.ask("GET", "/cluster", "")
		if r.looks != 1 {
			t.Errorf("%d looks in 2 s", r.looks)
		}
		time.Sleep(200 * time.Millisecond)
		r.ask("GET", "/cluster", "")
		if r.looks != 2 {
			t.Errorf("%d looks, another 2 s on", r.looks)
		}
	})
}

// TestSetCount sets how many processes of a role a cluster has, and notes who did.
func TestSetCount(t *testing.T) {
	r := runs(t)
	path := "/cluster/roles/gateway/count"
	expectCode(t, r.ask("PUT", path, `{"count":3}`), 409, "refused", "in local mode one process has every role")
	var did string
	r.api.SetCount = func(_ context.Context, role string, count int, reason string) error {
		did = fmt.Sprint(role, " ", count, " ", reason)
		return r.refuses
	}
	expect(t, r.askBy("operator", "PUT", path, `{"count":3,"reason":"night"}`), 202)
	if did != "gateway 3 by operator: night" {
		t.Errorf("it did %q", did)
	}
	if e := r.log[0]; e.Kind != "role" || e.Action != "scale" || e.Name != "gateway" || e.Who != "operator" || string(e.After) != `{"count":3,"reason":"night"}` {
		t.Errorf("the audit log has %+v", e)
	}
	expect(t, r.ask("GET", "/audit?kind=role", ""), 200, `"name":"gateway"`)
	for body, says := range map[string]string{`{}`: "count", `{"count":0}`: "between 1 and 1000", `{"count":1001}`: "between", `{"count":1,"reason":"` + strings.Repeat("x", 257) + `"}`: "256 bytes"} {
		expectCode(t, r.ask("PUT", path, body), 400, "invalid", says)
	}
	expectCode(t, r.ask("PUT", "/cluster/roles/sidecar/count", `{"count":1}`), 404, "not_found", "use one of gateway")
	expectCode(t, r.askBy("viewer", "PUT", path, `{"count":3}`), 403, "forbidden")
	expectCode(t, r.askBy("alice", "PUT", path, `{"count":3}`), 403, "forbidden")
	r.refuses = fmt.Errorf("%w: Nomad is just changing the job", ErrRefused)
	expectCode(t, r.ask("PUT", path, `{"count":3}`), 409, "refused", "just changing")
}

func TestTry(t *testing.T) {
	r := runs(t)
	expect(t, r.askBy("operator", "POST", "/apps/a/try", `{"input": [1, 2]}`), 200, `"answer":{"output":3}`, `"micros":1500`, `"stages":[]`)
	if r.asked != `a{"input": [1, 2]}` {
		t.Errorf("asked %s", r.asked)
	}
	expectCode(t, r.askBy("viewer", "POST", "/apps/a/try", `{}`), 403, "forbidden")
	expectCode(t, r.askBy("alice", "POST", "/apps/b/try", `{}`), 404, "not_found")
	expectCode(t, r.ask("POST", "/apps/a/try", `[1]`), 400, "invalid", "must be an object")
	expectCode(t, r.ask("POST", "/apps/a/try", `{"input"`), 400, "invalid")
	expectCode(t, r.ask("POST", "/apps/a/try", `{"input": "`+strings.Repeat("x", 1<<20)+`"}`), 413, "too_large")
	r.refuses = errors.New("no gateway answers")
	expectCode(t, r.ask("POST", "/apps/a/try", `{}`), 503, "unavailable", "no gateway answers")
}

func TestTryPassesPartsOnAsTheyCome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := runs(t)
		pipe, gateway := io.Pipe()
		cancelled := false
		r.api.AskParts = func(ctx context.Context, app string, body []byte) (io.ReadCloser, Trial, error) {
			r.set(func() { r.asked = app + string(body) })
			context.AfterFunc(ctx, func() { r.set(func() { cancelled = true }); _ = pipe.CloseWithError(ctx.Err()) })
			return pipe, Trial{}, nil
		}
		c := r.readsAnswer(t, "operator", "POST", "/apps/a/try", `{"input":[1]}`, "text/event-stream")
		for _, part := range []string{"data: {\"output\":\"a\"}\n\n", "data: {\"output\":\"b\"}\n\n"} {
			if _, err := io.WriteString(gateway, part); err != nil {
				t.Fatal(err)
			}
			if got := c.take(); got != part {
				t.Errorf("the client has %q after %q", got, part)
			}
		}
		if r.asked != `a{"input":[1]}` || c.header.Get("Content-Type") != "text/event-stream" {
			t.Errorf("asked %s, answered %v", r.asked, c.header)
		}
		if c.gone() {
			t.Error("the answer ended before its end")
		}
		c.leave()
		synctest.Wait()
		if r.set(func() {}); !cancelled {
			t.Error("the client has left, and the gateway is not told")
		}
	})
}

func TestTryInPartsAnswersErrorsAsAWhole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := runs(t)
		r.api.AskParts = func(context.Context, string, []byte) (io.ReadCloser, Trial, error) {
			return nil, Trial{Status: 400, Answer: json.RawMessage(`{"error":"Json error"}`)}, r.refuses
		}
		c := r.readsAnswer(t, "operator", "POST", "/apps/a/try", `{}`, "text/event-stream")
		if got := c.take(); !c.gone() || !strings.Contains(got, `"status":400`) || !strings.Contains(got, `"stages":[]`) {
			t.Errorf("answered %s", got)
		}
		r.refuses = errors.New("no gateway answers")
		c = r.readsAnswer(t, "operator", "POST", "/apps/a/try", `{}`, "text/event-stream")
		if got := c.take(); !c.gone() || !strings.Contains(got, "no gateway answers") {
			t.Errorf("answered %s", got)
		}
	})
}

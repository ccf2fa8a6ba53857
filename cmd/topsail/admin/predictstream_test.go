package admin

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// parts is a gateway's answer that consists of these events, and then what after does.
func parts(events string, after func(r *http.Request)) answer {
	return answer{serve: func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, events)
		w.(http.Flusher).Flush()
		if after != nil {
			after(r)
		}
	}}
}

const (
	whole   = "event: end\ndata: {\"query_id\": 7, \"output\": \"a b\", \"default\": false, \"missing\": [\"m:1\"]}\n\n"
	instead = "event: end\ndata: {\"query_id\": 7, \"output\": -1, \"default\": true, \"default_explanation\": \"late\"}\n\n"
	cut     = "event: error\ndata: {\"error\": \"Answer cut\", \"cause\": \"Model error: too blue\"}\n\n"
)

func part(output string) string { return fmt.Sprintf("data: {\"output\": %s}\n\n", output) }

func TestPredictInParts(t *testing.T) {
	for name, test := range map[string]struct {
		events, out, err string
		status           int
	}{
		"texts":        {part(`"a"`) + part(`" b\n"`) + part(`"1"`) + whole, "a b\n1\n", "no answer came from m:1\nthe first part after ", 0},
		"a line":       {part(`"a\n"`) + whole, "a\n", "no answer", 0},
		"no text":      {part(`"a"`) + part(`""`) + whole, "a\n", "no answer", 0},
		"JSON":         {part(`[1, 2]`) + part(`"a"`) + part(`{"x": "b"}`) + part("null") + whole, "[1,2]\na\n{\"x\":\"b\"}\nnull\n", "no answer", 0},
		"a default":    {instead, "-1\n", "the default: late\nall after ", 0},
		"a cut":        {part(`"a"`) + cut, "a\n", "topsail: Answer cut: Model error: too blue\n", exitFailed},
		"broken":       {part(`"a"`), "a\n", "the stream of events ended", exitAway},
		"newer events": {": comment\n\nevent: later\ndata: 1\n\n" + part("1") + whole, "1\n", "no answer", 0},
		"no part":      {"data: {}\n\n" + whole, "", "does not understand", exitFailed},
		"no answer":    {"event: end\ndata: [\n\n", "", "does not understand", exitFailed},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t)
			f.here(t)
			f.answer("POST /wine/predict", parts(test.events, nil))
			r := f.run(t, "predict", "wine", "[1, 2]", "--stream", "--uid", "ann")
			if r.status != test.status || r.out != test.out || !strings.Contains(r.err, test.err) {
				t.Errorf("%+v", r)
			}
			sent := f.requests()
			if len(sent) != 1 || sent[0].body != `{"input":[1,2],"uid":"ann"}` || sent[0].header.Get("Accept") != "text/event-stream" {
				t.Errorf("%+v", sent)
			}
		})
	}
}

func TestPredictInPartsAsJSON(t *testing.T) {
	f := newFake(t)
	f.here(t)
	f.answer("POST /wine/predict", parts(part(`"a"`)+part("[1,\ndata: 2]")+whole, nil), parts(part(`"a"`)+cut, nil))
	r := f.run(t, "predict", "wine", "1", "--stream", "-o", "json")
	want := `{"output":"a"}` + "\n" + `{"output":[1,2]}` + "\n" + `{"query_id":7,"output":"a b","default":false,"missing":["m:1"]}` + "\n"
	if r.status != 0 || r.out != want || r.err != "" {
		t.Errorf("%+v", r)
	}
	r = f.run(t, "predict", "wine", "1", "--stream", "-o", "json")
	want = `{"output":"a"}` + "\n" + `{"error":"Answer cut","cause":"Model error: too blue"}` + "\n"
	if r.status != exitFailed || r.out != want || r.err != "topsail: Answer cut: Model error: too blue\n" {
		t.Errorf("%+v", r)
	}
}

func TestPredictInPartsThatDoNotBegin(t *testing.T) {
	f := newFake(t)
	f.here(t)
	f.answer("POST /wine/predict",
		answer{status: 400, body: `{"error": "Bad", "cause": "the input must be a vector"}`},
		answer{status: 503, body: `{"error": "Unavailable", "cause": "it is stopping"}`},
		answer{status: 200, body: `{"query_id": 1, "output": 1, "default": false}`})
	for _, want := range []struct {
		status int
		err    string
	}{
		{exitFailed, "topsail: the input must be a vector\n"},
		{exitAway, "topsail: it is stopping\n"},
		{exitFailed, "topsail: the gateway does not answer in parts: update it, or leave out --stream\n"},
	} {
		if r := f.run(t, "predict", "wine", "1", "--stream"); r.status != want.status || r.err != want.err || r.out != "" {
			t.Errorf("%+v", r)
		}
	}
	if r := f.run(t, "predict", "wine", "[1]", "--stream", "--batch"); r.status != exitUsage || !strings.Contains(r.err, "leave out --batch") {
		t.Errorf("%+v", r)
	}
}

// TestPredictInPartsAsTheyCome has a gateway that waits with a part until the one before is
// printed, and then for the client, which ctrl-C ends.
func TestPredictInPartsAsTheyCome(t *testing.T) {
	f := newFake(t)
	f.here(t)
	out, printed := io.Pipe()
	read := bufio.NewReader(out)
	ctx, cancel := context.WithCancel(t.Context())
	left := make(chan struct{})
	f.answer("POST /wine/predict", answer{serve: func(w http.ResponseWriter, r *http.Request) {
		defer close(left)
		w.Header().Set("Content-Type", "text/event-stream")
		for _, word := range []string{"a", "b", "c"} {
			_, _ = io.WriteString(w, part(`"`+word+`"`))
			w.(http.Flusher).Flush()
			if got, err := read.ReadByte(); err != nil || string(got) != word {
				t.Errorf("printed %q, %v", got, err)
			}
		}
		cancel()
		if end, err := read.ReadString('\n'); err != nil || end != "\n" {
			t.Errorf("at the end %q, %v", end, err)
		}
		<-r.Context().Done()
	}})
	root := newRoot()
	root.SetArgs([]string{"predict", "wine", "1", "--stream", "--timeout", "5s"})
	root.SetOut(printed)
	var said strings.Builder
	root.SetErr(&said)
	if status := Exit(root.ExecuteContext(ctx), &said); status != exitFailed || said.String() != "topsail: interrupted\n" {
		t.Errorf("%d %s", status, &said)
	}
	select {
	case <-left:
	case <-time.After(time.Minute):
		t.Error("the connection is still open")
	}
}

func TestPredictInPartsThatAreLate(t *testing.T) {
	f := newFake(t)
	f.here(t)
	left := make(chan struct{})
	f.answer("POST /wine/predict", parts(part(`"a"`), func(r *http.Request) {
		<-r.Context().Done()
		close(left)
	}))
	root := newRoot()
	var out, said strings.Builder
	root.SetArgs([]string{"predict", "wine", "1", "--stream", "--timeout", "200ms"})
	root.SetOut(&out)
	root.SetErr(&said)
	status := Exit(root.ExecuteContext(t.Context()), &said)
	if status != exitAway || out.String() != "a\n" || !strings.HasSuffix(said.String(), "does not answer: it timed out; --timeout may be longer\n") {
		t.Errorf("%d %q %s", status, &out, &said)
	}
	<-left
}

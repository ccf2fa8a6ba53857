package httpapi

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/valyala/fasthttp/fasthttputil"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/test/require"
)

// Queries that reached the core must keep their values when the buffers they
// were read from carry other requests.
func TestQueriesOwnTheirMemory(t *testing.T) {
	s := start(t, Config{}, newFake())
	const clients, requests = 8, 100
	var all sync.WaitGroup
	for i := range clients {
		c := s.dial(t)
		defer c.Close()
		all.Go(func() {
			for j := range requests {
				// Lengths and apps vary, so that buffers are overwritten in other places.
				tag := fmt.Sprintf("%d-%d-%s", i, j, strings.Repeat(string(rune('a'+(i*7+j)%26)), 1+(j*37)%300))
				path, body := "/strings/predict", `{"input":"`+tag+`","version":"`+tag[:3]+`","uid":"u`+tag[:3]+`","salt":"`+tag[:5]+`"}`
				var header []string
				switch j % 3 {
				case 1:
					path = "/s%74rings/predict"
					body = `{"salt":"` + tag[:5] + `","input_batch":["` + tag + `"],"uid":"u` + tag[:3] + `","version":"` + tag[:3] + `"}`
				case 2:
					body = gzipped(body)
					header = []string{"Content-Encoding: gzip"}
				}
				if _, err := io.WriteString(c, request("POST", path, body, header...)); err != nil {
					t.Error(err)
					return
				}
				response, err := http.ReadResponse(c.r, nil)
				if err != nil {
					t.Error(err)
					return
				}
				io.Copy(io.Discard, response.Body)
				if response.StatusCode != 200 {
					t.Errorf("%s: status %d", body, response.StatusCode)
				}
			}
		})
	}
	all.Wait()
	queries := s.core.queries()
	if len(queries) != clients*requests {
		t.Fatalf("%d queries reached the core, want %d", len(queries), clients*requests)
	}
	met := map[string]bool{}
	for _, q := range queries {
		tag := string(q.Input.Data)
		var i, j int
		var tail string
		if _, err := fmt.Sscanf(strings.ReplaceAll(tag, "-", " "), "%d %d %s", &i, &j, &tail); err != nil {
			t.Fatalf("input %q: %v", tag, err)
		}
		want := fmt.Sprintf("%d-%d-%s", i, j, strings.Repeat(string(rune('a'+(i*7+j)%26)), 1+(j*37)%300))
		if tag != want || q.App != "strings" || q.Version != want[:3] || q.User != "u"+want[:3] || q.Salt != want[:5] {
			t.Errorf("got %+v (input %q), want values of %q", q, tag, want)
		}
		met[tag] = true
	}
	if len(met) != clients*requests {
		t.Errorf("%d different inputs, want %d", len(met), clients*requests)
	}
}

// What an answer was made of may be shared and reused at once.
func TestAnswersAreCopied(t *testing.T) {
	core := newFake()
	shared := []byte(`"aaaaaaaa"`)
	core.answer = func(_ context.Context, q *serving.Query) (serving.Prediction, error) {
		return serving.Prediction{QueryID: int64(q.Input.Len()), Output: shared}, nil
	}
	c := start(t, Config{}, core).dial(t)
	defer c.Close()
	for n := 1; n < 50; n++ {
		got := c.do(t, "POST", "/strings/predict", `{"input":"`+strings.Repeat("x", n)+`"}`)
		if want := fmt.Sprintf(`{"query_id":%d,"output":"aaaaaaaa","default":false}`, n); got.body != want {
			t.Fatalf("got %s, want %s", got.body, want)
		}
	}
	if !bytes.Equal(shared, []byte(`"aaaaaaaa"`)) {
		t.Errorf("the shared output was written to: %s", shared)
	}
}

func TestKeepAliveAcrossRefusals(t *testing.T) {
	c := start(t, Config{MaxBodyBytes: 1000}, newFake()).dial(t)
	defer c.Close()
	for _, test := range []struct {
		path, body, header string
		status             int
	}{
		{"/doubles/predict", `{"input":[1}`, "A: b", 400},
		{"/nobody/predict", `{"input":[1]}`, "A: b", 404},
		{"/doubles", `{"input":[1]}`, "A: b", 404},
		{"/doubles/predict", gzipped(strings.Repeat(" ", 2000)), "Content-Encoding: gzip", 413},
		{"/doubles/predict", "x", "Content-Encoding: zstd", 415},
		{"/doubles/predict", `{"input":[1]}`, "X-Timeout-Ms: soon", 400},
	} {
		if got := c.do(t, "POST", test.path, test.body, test.header); got.status != test.status || got.close {
			t.Errorf("%s %s: %d, close %v", test.path, test.body, got.status, got.close)
		}
		if got := c.do(t, "POST", "/doubles/predict", `{"input":[1,2]}`); got.status != 200 || !strings.Contains(got.body, `"output":2.0`) {
			t.Errorf("after it: %d %s", got.status, got.body)
		}
	}
}

func TestPipelining(t *testing.T) {
	c := start(t, Config{}, newFake()).dial(t)
	defer c.Close()
	var all string
	for n := range 20 {
		body := `{"input":"` + strings.Repeat("x", n) + `"}`
		if n%5 == 4 {
			body = `{"input":1}`
		}
		all += request("POST", "/strings/predict", body)
	}
	c.send(t, all)
	for n := range 20 {
		status, want := 200, fmt.Sprintf(`{"query_id":1,"output":%d.0,"default":false}`, n)
		if n%5 == 4 {
			status, want = 400, `"error":"Json error"`
		}
		if got := c.read(t, "POST"); got.status != status || !strings.Contains(got.body, want) {
			t.Errorf("answer %d: %d %s, want %d %s", n, got.status, got.body, status, want)
		}
	}
}

func TestConnectionClose(t *testing.T) {
	s := start(t, Config{}, newFake())
	for _, raw := range []string{
		"POST /doubles/predict HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 13\r\n\r\n{\"input\":[1]}",
		"POST /doubles/predict HTTP/1.0\r\nContent-Length: 13\r\n\r\n{\"input\":[1]}",
	} {
		c := s.dial(t)
		c.send(t, raw)
		if got := c.read(t, "POST"); got.status != 200 || !got.close {
			t.Errorf("%.40q: %d, close %v", raw, got.status, got.close)
		}
		c.closed(t)
		c.Close()
	}
}

func TestExpectContinue(t *testing.T) {
	c := start(t, Config{}, newFake()).dial(t)
	defer c.Close()
	c.send(t, "POST /doubles/predict HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 13\r\n\r\n")
	if got := c.read(t, "POST"); got.status != 100 {
		t.Fatalf("got %d", got.status)
	}
	c.send(t, `{"input":[1]}`)
	if got := c.read(t, "POST"); got.status != 200 {
		t.Errorf("got %d %s", got.status, got.body)
	}
}

func TestMalformedHTTP(t *testing.T) {
	s := start(t, Config{}, newFake())
	post := "POST /doubles/predict HTTP/1.1\r\nHost: x\r\n"
	for _, raw := range []string{
		"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03 secret\r\n\r\n", // a TLS client
		"secret\r\n\r\n",
		"POST /doubles/predict secret/1.1\r\n\r\n",
		"POST /doubles/predict HTTP/1.1\r\nContent-Length: 13\r\n\r\n{\"input\":[1]}", // no Host
		post + "Content-Length: secret\r\n\r\n",
		post + "Content-Length: -1\r\n\r\n",
		post + "Content-Length: 13\r\nContent-Length: 14\r\n\r\n{\"input\":[1]} ",
		post + "Content-Length : 13\r\n\r\n{\"input\":[1]}",
		post + "Transfer-Encoding: gzip, chunked\r\n\r\nd\r\n{\"input\":[1]}\r\n0\r\n\r\n",
		post + "Transfer-Encoding: chunked\r\n\r\nsecret\r\n",
		post + "No-Colon secret\r\n\r\n",
	} {
		c := s.dial(t)
		c.send(t, raw)
		got := c.read(t, "POST")
		class, cause := got.refusal(t)
		if got.status != 400 || class != "Bad request" || cause != "this is not a valid HTTP request" || !got.close {
			t.Errorf("%q: %d %s, close %v", raw, got.status, got.body, got.close)
		}
		c.closed(t)
		c.Close()
	}
	if n := len(s.core.queries()); n != 0 {
		t.Errorf("%d queries reached the core", n)
	}
	if log := s.log.String(); log != "" {
		t.Errorf("logged: %s", log)
	}
}

// A request with two lengths may have been forwarded by a proxy that trusts the
// other one: what follows on the connection cannot be trusted.
func TestTwoLengths(t *testing.T) {
	s := start(t, Config{}, newFake())
	chunked := "\r\nd\r\n{\"input\":[1]}\r\n0\r\n\r\n"
	for header, wantClose := range map[string]bool{
		"Transfer-Encoding: chunked\r\n":                       false,
		"Transfer-Encoding: chunked\r\nContent-Length: 13\r\n": true,
		"content-length: 4\r\ntransfer-encoding: chunked\r\n":  true,
	} {
		c := s.dial(t)
		c.send(t, "POST /doubles/predict HTTP/1.1\r\nHost: x\r\n"+header+chunked)
		if got := c.read(t, "POST"); got.status != 200 || got.close != wantClose {
			t.Errorf("%q: %d %s, close %v", header, got.status, got.body, got.close)
		}
		c.Close()
	}
}

func TestTooLargeHeader(t *testing.T) {
	got := start(t, Config{}, newFake()).do(t, "POST", "/doubles/predict", `{"input":[1]}`, "Cookie: "+strings.Repeat("x", maxHeaderBytes))
	if _, cause := got.refusal(t); got.status != 431 || !got.close || !strings.Contains(cause, "16384 bytes") {
		t.Errorf("%d %s", got.status, got.body)
	}
}

// Clients that leave in the middle of anything harm nobody else.
func TestClientsThatLeave(t *testing.T) {
	s := start(t, Config{}, newFake())
	whole := request("POST", "/doubles/predict", `{"input":[1,2,3]}`)
	for cut := range len(whole) {
		c := s.dial(t)
		c.send(t, whole[:cut])
		c.Close()
	}
	if got := s.do(t, "POST", "/doubles/predict", `{"input":[1]}`); got.status != 200 {
		t.Errorf("after them: %d %s", got.status, got.body)
	}
}

func TestManyIdleConnections(t *testing.T) {
	const idle = 2000
	ln := fasthttputil.NewInmemoryListener()
	s := startOn(t, Config{MaxConnections: idle + 1}, newFake(), ln)
	dial := func() *client {
		c, err := ln.Dial()
		require.NoError(t, err)
		return newClient(c)
	}
	var clients []*client
	for i := range idle {
		c := dial()
		clients = append(clients, c)
		if i%2 == 0 { // half of them have been of use
			if got := c.do(t, "GET", "/health", ""); got.status != 200 {
				t.Fatalf("connection %d: %d", i, got.status)
			}
		}
	}
	live := dial()
	for range 10 {
		if got := live.do(t, "POST", "/doubles/predict", `{"input":[1]}`); got.status != 200 {
			t.Errorf("live: %d %s", got.status, got.body)
		}
	}
	if got := clients[idle/2].do(t, "POST", "/doubles/predict", `{"input":[1]}`); got.status != 200 {
		t.Errorf("an idle one: %d %s", got.status, got.body)
	}
	if err := s.stop(); err != nil {
		t.Errorf("Run: %v", err)
	}
}

// TestAllConnectionsAreBusy: health is answered all the same, and others hear why they are not.
func TestAllConnectionsAreBusy(t *testing.T) {
	core, release := newFake(), make(chan struct{})
	core.answer = func(context.Context, *serving.Query) (serving.Prediction, error) {
		<-release
		return serving.Prediction{Output: []byte("1")}, nil
	}
	s := start(t, Config{MaxConnections: 2}, core)
	defer close(release)
	for i := range 2 {
		c := s.dial(t)
		defer c.Close()
		c.send(t, request("POST", "/doubles/predict", `{"input":[1]}`))
		for len(core.queries()) <= i {
			runtime.Gosched()
		}
	}
	if got := s.do(t, "GET", "/health", ""); got.status != 200 {
		t.Errorf("health: %d %s", got.status, got.body)
	}
	if got := s.do(t, "POST", "/doubles/predict", `{"input":[1]}`); got.status != 503 || !got.close || got.header.Get("Retry-After") != "1" {
		t.Errorf("a query: %d %s", got.status, got.body)
	}
}

func TestConnectionsOfOneAddress(t *testing.T) {
	s := start(t, Config{MaxPerAddress: 2}, newFake())
	for range 2 {
		c := s.dial(t)
		defer c.Close()
		if got := c.do(t, "GET", "/health", ""); got.status != 200 {
			t.Fatalf("within the limit: %d", got.status)
		}
	}
	c := s.dial(t)
	defer c.Close()
	c.closed(t)
}

func TestListenerThatFails(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ln.Close()
	err = New(Config{}, newFake(), nil, nil).Run(t.Context(), ln)
	if err == nil || !strings.Contains(err.Error(), "httpapi: serve 127.0.0.1:") {
		t.Errorf("got %v", err)
	}
}

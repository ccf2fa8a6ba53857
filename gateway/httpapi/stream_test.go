package httpapi

import (
	"bufio"
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/test/require"
)

// fakeParts is an answer in parts that the test gives.
type fakeParts struct {
	next   chan string // a part; closed at the end
	end    serving.Prediction
	closed chan struct{}
	panics bool // in place of waiting for a part
}

func newFakeParts(parts ...string) *fakeParts {
	f := &fakeParts{next: make(chan string, len(parts)), closed: make(chan struct{}), end: serving.Prediction{QueryID: 7, Output: []byte(`"ab"`)}}
	for _, p := range parts {
		f.next <- p
	}
	return f
}

func (f *fakeParts) Next(ctx context.Context) (*serving.Output, error) {
	if f.panics && len(f.next) == 0 {
		panic("a test")
	}
	select {
	case p, more := <-f.next:
		if !more {
			return nil, io.EOF
		}
		return serving.NewOutput(serving.Text(p))
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (f *fakeParts) Answer() *serving.Prediction { return &f.end }
func (f *fakeParts) Close()                      { close(f.closed) }

// streaming is a core whose answers are the parts.
func streaming(f *fakeParts) *fakeCore {
	core := newFake()
	core.parts = func(*serving.Query) (serving.Parts, error) { return f, nil }
	return core
}

const asksParts = "POST /strings/predict HTTP/1.1\r\nHost: a\r\nAccept: text/event-stream\r\nContent-Length: 13\r\n\r\n{\"input\":\"x\"}"

// within fails the test unless c closes.
func within(t *testing.T, c <-chan struct{}, what string) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(time.Minute):
		t.Fatal(what)
	}
}

func TestEventsOfAnAnswerInParts(t *testing.T) {
	for name, test := range map[string]struct {
		parts []string
		end   serving.Prediction
		want  string
	}{
		"whole": {[]string{"a", "b"}, serving.Prediction{QueryID: 7, Output: []byte(`"ab"`)},
			"data: {\"output\":\"a\"}\n\ndata: {\"output\":\"b\"}\n\nevent: end\ndata: {\"query_id\":7,\"output\":\"ab\",\"default\":false}\n\n"},
		"cut": {[]string{"a"}, serving.Prediction{QueryID: 7, Output: []byte(`"no"`), Default: true, Explanation: "late"},
			"data: {\"output\":\"a\"}\n\nevent: error\ndata: {\"error\":\"Answer cut\",\"cause\":\"late\"}\n\n"},
		"default": {nil, serving.Prediction{QueryID: 7, Output: []byte(`"no"`), Default: true},
			"event: end\ndata: {\"query_id\":7,\"output\":\"no\",\"default\":true}\n\n"},
	} {
		f := newFakeParts(test.parts...)
		f.end = test.end
		close(f.next)
		s := start(t, Config{}, streaming(f))
		r, err := http.NewRequest("POST", "http://"+s.addr+"/strings/predict", strings.NewReader(`{"input":"x"}`))
		require.NoError(t, err)
		r.Header.Set("Accept", "text/event-stream")
		response, err := http.DefaultClient.Do(r)
		require.NoError(t, err)
		got, err := io.ReadAll(response.Body)
		response.Body.Close()
		if err != nil || string(got) != test.want || response.Header.Get("Content-Type") != "text/event-stream" {
			t.Errorf("%s: %v, %s, %q", name, err, response.Header, got)
		}
		within(t, f.closed, "the answer was not closed")
	}
}

// dialFor are a client in the clear and one under TLS.
func dialFor(t *testing.T, core *fakeCore, secure bool) net.Conn {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	if !secure {
		s := startOn(t, Config{}, core, ln)
		nc, err := net.Dial("tcp", s.addr)
		require.NoError(t, err)
		return nc
	}
	certified := httptest.NewTLSServer(nil) // for its certificate
	certified.Close()
	s := startOn(t, Config{}, core, tls.NewListener(ln, &tls.Config{Certificates: certified.TLS.Certificates}))
	nc, err := tls.Dial("tcp", s.addr, &tls.Config{InsecureSkipVerify: true})
	require.NoError(t, err)
	return nc
}

// A client that leaves is noticed at once, before the first part and between two.
func TestAClientThatLeaves(t *testing.T) {
	for _, secure := range []bool{false, true} {
		for _, begun := range []bool{false, true} {
			f := newFakeParts("a")
			if !begun {
				<-f.next
			}
			nc := dialFor(t, streaming(f), secure)
			if _, err := io.WriteString(nc, asksParts); err != nil {
				t.Fatal(err)
			}
			if begun {
				r := bufio.NewReader(nc)
				for line := ""; !strings.HasPrefix(line, "data:"); {
					var err error
					if line, err = r.ReadString('\n'); err != nil {
						t.Fatal(err)
					}
				}
			}
			nc.Close()
			within(t, f.closed, "the client was not missed")
		}
	}
}

// A connection serves on after an answer in parts, with the deadlines that it had.
func TestAConnectionAfterParts(t *testing.T) {
	f := newFakeParts("a", "b")
	close(f.next)
	nc := dialFor(t, streaming(f), false)
	defer nc.Close()
	r := bufio.NewReader(nc)
	for _, request := range []string{asksParts, strings.Replace(asksParts, "Accept: text/event-stream\r\n", "", 1)} {
		if _, err := io.WriteString(nc, request); err != nil {
			t.Fatal(err)
		}
		response, err := http.ReadResponse(r, nil)
		require.NoError(t, err)
		if _, err := io.Copy(io.Discard, response.Body); err != nil || response.StatusCode != 200 {
			t.Errorf("%v, %v", response.Status, err)
		}
	}
}

// Parts go out as they come, and the next request of a pipeline is not taken for a farewell.
func TestPartsArriveWhileTheAnswerGoesOn(t *testing.T) {
	f := newFakeParts()
	f.next = make(chan string)
	nc := dialFor(t, streaming(f), false)
	defer nc.Close()
	if _, err := io.WriteString(nc, asksParts+"GET /health HTTP/1.1\r\nHost: a\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	f.next <- "a"
	response, err := http.ReadResponse(bufio.NewReader(nc), nil)
	require.NoError(t, err)
	lines := bufio.NewScanner(response.Body)
	for _, part := range []string{"b", "c"} {
		if !lines.Scan() || !strings.HasPrefix(lines.Text(), "data: ") || !lines.Scan() {
			t.Fatalf("%q before part %s", lines.Text(), part)
		}
		f.next <- part
	}
	close(f.next)
	within(t, f.closed, "the answer was not closed")
}

// A gateway that stops gives answers their time, and then says that it cut them.
func TestPartsWhenTheGatewayStops(t *testing.T) {
	f := newFakeParts("a")
	s := start(t, Config{DrainTimeout: 50 * time.Millisecond}, streaming(f))
	nc, err := net.Dial("tcp", s.addr)
	require.NoError(t, err)
	defer nc.Close()
	if _, err := io.WriteString(nc, asksParts); err != nil {
		t.Fatal(err)
	}
	response, err := http.ReadResponse(bufio.NewReader(nc), nil)
	require.NoError(t, err)
	stopped := make(chan error, 1)
	go func() { stopped <- s.stop() }()
	events, err := io.ReadAll(response.Body)
	if err != nil || !strings.Contains(string(events), "event: error") || !strings.Contains(string(events), "stopping") {
		t.Errorf("%v: %s", err, events)
	}
	if err := <-stopped; err != nil {
		t.Error(err)
	}
}

// A panic behind the first part ends the connection, and not the process; the answer does not seem whole.
func TestPartsThatPanic(t *testing.T) {
	f := newFakeParts("a")
	f.panics = true
	nc := dialFor(t, streaming(f), false)
	defer nc.Close()
	if _, err := io.WriteString(nc, asksParts); err != nil {
		t.Fatal(err)
	}
	response, err := http.ReadResponse(bufio.NewReader(nc), nil)
	if err != nil {
		return // not even the first part got through
	}
	if events, err := io.ReadAll(response.Body); err == nil {
		t.Errorf("the answer ended in order: %s", events)
	}
}

func TestPartsOfSeveralInputs(t *testing.T) {
	s := start(t, Config{}, newFake())
	r, err := http.NewRequest("POST", "http://"+s.addr+"/strings/predict", strings.NewReader(`{"input_batch":["x","y"]}`))
	require.NoError(t, err)
	r.Header.Set("Accept", "text/event-stream")
	response, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	defer response.Body.Close()
	if body, _ := io.ReadAll(response.Body); response.StatusCode != 400 || !strings.Contains(string(body), "in parts") {
		t.Errorf("%s %s", response.Status, body)
	}
}

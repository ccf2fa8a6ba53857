package httpapi

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/serving"
)

func TestErrorsOfTheCore(t *testing.T) {
	var fail error
	core := newFake()
	core.answer = func(context.Context, *serving.Query) (serving.Prediction, error) { return serving.Prediction{}, fail }
	s := start(t, Config{}, core)
	for _, test := range []struct {
		err    error
		status int
		class  string
		cause  string
	}{
		{&serving.QueryError{Cause: "Requested version: 9 does not exist for model: m"}, 400, "Query processing error", "Requested version: 9 does not exist for model: m"},
		{fmt.Errorf("predict: %w", &serving.QueryError{Cause: "wrong"}), 400, "Query processing error", "wrong"},
		{fmt.Errorf("predict: %w", serving.ErrUnknownApp), 404, "Unknown app", "no app of this name is registered: register it at the admin port, or check its spelling"},
		{fmt.Errorf("predict: %w", serving.ErrNoCatalog), 503, "Unavailable", "this gateway has not loaded the apps yet: send the query again, or to another gateway"},
		{errors.New("dial tcp 10.0.0.7: secret dsn"), 500, "Internal error", "the gateway failed on this query: its log says why, under request id my-id"},
		{context.Canceled, 500, "Internal error", "the gateway failed on this query: its log says why, under request id my-id"},
	} {
		fail = test.err
		for _, body := range []string{`{"input":[1]}`, `{"input_batch":[[1],[2]]}`} {
			got := s.do(t, "POST", "/doubles/predict", body, "X-Request-Id: my-id")
			class, cause := got.refusal(t)
			if got.status != test.status || class != test.class || cause != test.cause || got.header.Get("X-Request-Id") != "my-id" {
				t.Errorf("%v: %d %s, request id %q", test.err, got.status, got.body, got.header.Get("X-Request-Id"))
			}
		}
	}
	log := s.log.String()
	if n := strings.Count(log, "\n"); n != 4 || strings.Count(log, "secret dsn") != 2 || strings.Count(log, "request_id=my-id") != 4 {
		t.Errorf("log of the four failures of ours:\n%s", log)
	}
}

func TestPanic(t *testing.T) {
	core := newFake()
	core.answer = func(_ context.Context, q *serving.Query) (serving.Prediction, error) {
		if q.Version == "panic" {
			panic("secret dsn")
		}
		return serving.Prediction{Output: []byte("1")}, nil
	}
	s := start(t, Config{}, core)
	got := s.do(t, "POST", "/doubles/predict", `{"input":[1],"version":"panic"}`)
	class, cause := got.refusal(t)
	id := got.header.Get("X-Request-Id")
	if got.status != 500 || class != "Internal error" || !strings.HasSuffix(cause, "request id "+id) || !isUUIDv7(id) {
		t.Errorf("%d %s, request id %q", got.status, got.body, id)
	}
	if strings.Contains(got.body, "secret") {
		t.Errorf("the panic was shown: %s", got.body)
	}
	log := s.log.String()
	if !strings.Contains(log, "secret dsn") || !strings.Contains(log, id) || !strings.Contains(log, "errors_test.go") {
		t.Errorf("the log lacks the panic, its id or its stack: %s", log)
	}
	if got := s.do(t, "POST", "/doubles/predict", `{"input":[1]}`); got.status != 200 {
		t.Errorf("after a panic: %d", got.status)
	}
}

func TestRequestID(t *testing.T) {
	s := start(t, Config{}, newFake())
	for id, valid := range map[string]bool{
		"a": true, "A-z_0.9:": true, strings.Repeat("x", 128): true,
		strings.Repeat("x", 129): false, "": false, "a b": false, "<script>evil</script>": false, "a;b": false, "é": false, "a/b": false,
	} {
		want := ""
		if valid {
			want = id
		}
		for _, path := range []string{"/doubles/predict", "/nothing"} {
			got := s.do(t, "POST", path, `{"input":[1]}`, "X-Request-Id: "+id)
			if echo := got.header.Get("X-Request-Id"); echo != want {
				t.Errorf("%s with %q: echoed %q, want %q", path, id, echo, want)
			}
		}
	}
}

func TestNewRequestID(t *testing.T) {
	now := time.UnixMilli(0x0123456789ab)
	a, b := newRequestID(now), newRequestID(now)
	if !isUUIDv7(a) || !isUUIDv7(b) || a == b || !strings.HasPrefix(a, "01234567-89ab-7") {
		t.Errorf("%s, %s", a, b)
	}
}

func isUUIDv7(s string) bool {
	return regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`).MatchString(s)
}

func TestBadBodiesAreNotLogged(t *testing.T) {
	s := start(t, Config{MaxBatch: 2}, newFake())
	for body, want := range map[string]string{
		`{"input":["a"]}`:               "input[0] must be a number, and is a string",
		`{"input_batch":[[1],[2],[3]]}`: "input_batch has more than 2 inputs",
		`{"input":[1}`:                  "at byte 11",
	} {
		got := s.do(t, "POST", "/doubles/predict", body)
		if class, cause := got.refusal(t); got.status != 400 || class != "Json error" || !strings.Contains(cause, want) {
			t.Errorf("%s: %d %s", body, got.status, got.body)
		}
	}
	got := s.do(t, "POST", "/doubles/predict", "")
	if _, cause := got.refusal(t); got.status != 400 || !strings.Contains(cause, "the body is empty") {
		t.Errorf("no body: %d %s", got.status, got.body)
	}
	if log := s.log.String(); log != "" {
		t.Errorf("logged: %s", log)
	}
}

// Of several headers of a name the first counts, however it is spelt, and none is that of an earlier request.
func TestHeadersOfARequest(t *testing.T) {
	core := newFake()
	core.answer = func(context.Context, *serving.Query) (serving.Prediction, error) {
		return serving.Prediction{}, errors.New("a bug")
	}
	c := start(t, Config{}, core).dial(t)
	defer c.Close()
	got := c.do(t, "POST", "/doubles/predict", `{"input":[1]}`, "x-request-id: first", "X-REQUEST-ID: second", "x-timeout-ms: 70", "X-Timeout-Ms: 80")
	if id := got.header.Get("X-Request-Id"); id != "first" {
		t.Errorf("the request is %q", id)
	}
	if q := core.queries()[0]; q.Timeout != 70*time.Millisecond {
		t.Errorf("the timeout is %v", q.Timeout)
	}
	got = c.do(t, "POST", "/doubles/predict", `{"input":[1]}`)
	if id := got.header.Get("X-Request-Id"); id == "" || id == "first" {
		t.Errorf("the next request is %q", id)
	}
	if q := core.queries()[1]; q.Timeout != 0 {
		t.Errorf("the timeout is %v", q.Timeout)
	}
}

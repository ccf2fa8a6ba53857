package httpapi

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/test/require"
)

const (
	wantJSON = "Accept: application/json"
)

func TestUpdate(t *testing.T) {
	core := newFake()
	core.learn = func(_ context.Context, f *serving.Feedback) (serving.Learned, error) {
		return serving.Learned{QueryID: f.QueryID, Joined: serving.FromRecord, Trained: []serving.StateScope{{User: f.User}, {}}}, nil
	}
	s := start(t, Config{}, core)
	const one = `{"received":true,"query_id":7,"joined":"record","duplicate":false,"loss":0,"trained":[{"user":"3"},{}],"models":[],"forwarded":0}`
	const id = `{"uid":3,"query_id":7,"label":1}`
	for _, test := range []struct{ path, body, header, want string }{
		{"/doubles/update", `{"uid":0,"input":[1.0],"label":1.0}`, "Accept: */*", "Feedback received? 1"},
		{"/doubles/update/", `{"uid":"x","input":[1],"reward":0}`, "X-Other: 1", "Feedback received? 1"},
		{"/%64oubles/update?x=1", `{"query_id":1,"label":[1,2]}`, "Accept: text/html,application/xhtml+xml,application/jsonp", "Feedback received? 1"},
		{"/strings/update", `{"feedback_batch":[{"input":"a","label":"b"},{"query_id":2,"reward":1}]}`, "Accept: text/plain", "Feedback received? 1"},
		{"/doubles/update", `{"feedback_batch":[]}`, "Accept:", "Feedback received? 1"},
		{"/doubles/update", id, wantJSON, one},
		{"/doubles/update/", id, "accept: text/html;q=0.5 , Application/JSON ; q=0.9, */*", one},
		{"/doubles/update", `{"feedback_batch":[` + id + `]}`, wantJSON, `{"feedback":[` + one + `]}`},
		{"/doubles/update", `{"feedback_batch":[` + id + `,` + id + `]}`, wantJSON, `{"feedback":[` + one + `,` + one + `]}`},
		{"/doubles/update", `{"feedback_batch":[]}`, wantJSON, `{"feedback":[]}`},
	} {
		got := s.do(t, "POST", test.path, test.body, test.header, "Content-Type: text/weird")
		if got.status != 200 || got.body != test.want || got.header.Get("Content-Type") != "application/json" {
			t.Errorf("%s %s %s: %d %s, want %s", test.path, test.body, test.header, got.status, got.body, test.want)
		}
	}
}

func TestUpdatePassesTheWholeFeedback(t *testing.T) {
	s := start(t, Config{}, newFake())
	before := time.Now()
	const body = `{"uid":12,"context":"shoes","query_id":9,"input":[0.5],"label":"cat"}`
	for _, body := range []string{body, `{"feedback_batch":[` + body + `,` + body + `]}`} {
		if got := s.do(t, "POST", "/doubles/update", body, "X-Timeout-Ms: 30"); got.status != 200 {
			t.Fatalf("%d %s", got.status, got.body)
		}
	}
	if got := s.do(t, "POST", "/doubles/update", gzipped(body), "Content-Encoding: gzip", "X-Timeout-Ms: 30"); got.status != 200 {
		t.Fatalf("%d %s", got.status, got.body)
	}
	after := time.Now()
	label, err := serving.NewOutput(serving.Value{DType: serving.JSON, Data: []byte(`"cat"`)})
	require.NoError(t, err)
	want := serving.Feedback{
		App: "doubles", QueryID: 9, User: "12", Context: "shoes", Label: label, Timeout: 30 * time.Millisecond,
		Input: serving.Input{Type: serving.Doubles, Data: binary.LittleEndian.AppendUint64(nil, math.Float64bits(0.5))},
	}
	heard := s.core.feedback()
	if len(heard) != 4 {
		t.Fatalf("%d pieces of feedback reached the core, want 4", len(heard))
	}
	for _, got := range heard {
		if got.Received.Before(before) || got.Received.After(after) {
			t.Errorf("received %v, want between %v and %v", got.Received, before, after)
		}
		got.Received = time.Time{}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("got %+v, want %+v", got, want)
		}
	}
}

// What the client did wrong is a sentence, as with Clipper, or on request an object.
func TestBadUpdates(t *testing.T) {
	s := start(t, Config{MaxBatch: 2, MaxBodyBytes: 1 << 20}, newFake())
	const name = " must be a string or a whole number, of at most 256 bytes"
	for _, test := range []struct{ class, body, header, cause string }{
		{"Json error", ``, "X-Other: 1", `the body is empty: send JSON, such as {"input": [1.5, 2]}`},
		{"Json error", `[]`, "X-Other: 1", "the body must be an object, and is an array"},
		{"Json error", `{"input":[1.0],"label":NaN}`, "X-Other: 1", "the body is not JSON: invalid value, at byte 23, as JSON has neither NaN nor Infinity"},
		{"Json error", `{"input":[1.0],"reward":NaN}`, "X-Other: 1", "the body is not JSON: invalid value, at byte 24, as JSON has neither NaN nor Infinity"},
		{"Json error", `{"input":["a"],"label":1}`, "X-Other: 1", "input[0] must be a number, and is a string"},
		{"Json error", `{"uid":"` + strings.Repeat("u", 10_000) + `","input":[1],"label":1}`, "X-Other: 1", "uid" + name},
		{"Json error", `{"context":"` + strings.Repeat("u", 10_000) + `","input":[1],"label":1}`, "X-Other: 1", "context" + name},
		{"Json error", `{"feedback_batch":[{"query_id":1,"label":1},{"query_id":1,"label":1},{"query_id":1,"label":1}]}`, "X-Other: 1",
			"feedback_batch has more than 2 elements: send them in several requests"},
		{"Json error", `{"query_id":1,"label":` + strings.Repeat("[", 500_000), "X-Other: 1",
			"the body is not JSON: it is nested deeper than 128 levels, at byte 149"},
		{"Bad request", `{"query_id":1,"label":1}`, "X-Timeout-Ms: x", "X-Timeout-Ms must be a whole number of milliseconds above 0"},
		{"Bad request", `{"query_id":1,"label":1}`, "Content-Encoding: gzip", "the body does not match its Content-Encoding: it is truncated, damaged or followed by other bytes"},
	} {
		plain := s.do(t, "POST", "/doubles/update", test.body, test.header)
		if plain.status != 400 || plain.body != test.cause || plain.header.Get("Content-Type") != "application/json" {
			t.Errorf("%.60s: %d %s, want %s", test.body, plain.status, plain.body, test.cause)
		}
		object := s.do(t, "POST", "/doubles/update", test.body, test.header, wantJSON)
		if class, cause := object.refusal(t); object.status != 400 || class != test.class || cause != test.cause {
			t.Errorf("%.60s: %d %s, want %s: %s", test.body, object.status, object.body, test.class, test.cause)
		}
	}
	if n := len(s.core.feedback()); n != 0 {
		t.Errorf("%d pieces of feedback reached the core", n)
	}
	if log := s.log.String(); log != "" {
		t.Errorf("refusals were logged: %s", log)
	}
}

// One bad piece of feedback makes the whole batch bad, so that the good ones need not
// be told from it.
func TestBatchesAreWholeOrNothing(t *testing.T) {
	s := start(t, Config{}, newFake())
	got := s.do(t, "POST", "/doubles/update", `{"feedback_batch":[{"query_id":1,"reward":1},{"query_id":2,"reward":2}]}`)
	if got.status != 400 || !strings.Contains(got.body, "feedback_batch[1].reward must be between 0 and 1") {
		t.Errorf("%d %s", got.status, got.body)
	}
	if n := len(s.core.feedback()); n != 0 {
		t.Errorf("%d pieces of feedback reached the core", n)
	}
}

func TestErrorsOfTheUpdater(t *testing.T) {
	var fail error
	core := newFake()
	core.learn = func(context.Context, *serving.Feedback) (serving.Learned, error) { return serving.Learned{}, fail }
	s := start(t, Config{}, core)
	for _, test := range []struct {
		err    error
		status int
		class  string
		cause  string
	}{
		{fmt.Errorf("learn: %w", &serving.QueryError{Cause: "no record of query 7"}), 400, "Query processing error", "no record of query 7"},
		{fmt.Errorf("learn: %w", serving.ErrUnknownApp), 404, "Unknown app", "no app of this name is registered: register it at the admin port, or check its spelling"},
		{fmt.Errorf("learn: %w: dial tcp: secret dsn", serving.ErrUnavailable), 503, "Unavailable", "the state store cannot be reached; send it again, which is safe"},
		{fmt.Errorf("learn: %w: %w", serving.ErrUnavailable, context.DeadlineExceeded), 503, "Unavailable", "the time ran out: the state store, or models that had to be called again, did not answer; send it again, which is safe"},
		{fmt.Errorf("learn: %w: store /secret/path: %w", serving.ErrUnavailable, &serving.Unwritable{Reason: syscall.ENOSPC, Remedy: "make room"}), 503, "Unavailable", "the state store accepts no writes: no space left on device: make room; send it again, which is safe"},
		{fmt.Errorf("learn: %w", serving.ErrUnjudged), 503, "Unavailable", "no model of this app answers now, so the feedback cannot be evaluated: send it again when one does"},
		{errors.New("secret dsn"), 500, "Internal error", "the gateway failed on this query: its log says why, under request id my-id"},
	} {
		fail = test.err
		for _, header := range []string{"Accept: */*", wantJSON} {
			got := s.do(t, "POST", "/doubles/update", `{"query_id":7,"label":1}`, "X-Request-Id: my-id", header)
			if test.status == 400 && header != wantJSON {
				if got.status != 400 || got.body != test.cause {
					t.Errorf("%v: %d %s", test.err, got.status, got.body)
				}
				continue
			}
			if class, cause := got.refusal(t); got.status != test.status || class != test.class || cause != test.cause {
				t.Errorf("%v, %s: %d %s", test.err, header, got.status, got.body)
			}
		}
	}
	if log := s.log.String(); strings.Count(log, "\n") != 2 || strings.Count(log, "secret dsn") != 2 {
		t.Errorf("log of the two failures of ours:\n%s", log)
	}
}

// An updater that answers too little must not make us say what is not so.
func TestUpdaterThatForgets(t *testing.T) {
	core := newFake()
	core.updater = forgetful{}
	s := start(t, Config{}, core)
	for _, header := range []string{"Accept: */*", wantJSON} {
		if got := s.do(t, "POST", "/doubles/update", `{"query_id":7,"label":1}`, header); got.status != 500 {
			t.Errorf("%s: %d %s", header, got.status, got.body)
		}
	}
}

type forgetful struct{}

func (forgetful) Feedback(context.Context, []serving.Feedback) ([]serving.Learned, error) {
	return nil, nil
}

func TestNoUpdater(t *testing.T) {
	core := newFake()
	core.updater = nil
	s := start(t, Config{}, core)
	for _, path := range []string{"/doubles/update", "/nobody/update/"} {
		got := s.do(t, "POST", path, `{"query_id":7,"label":1}`)
		if class, cause := got.refusal(t); got.status != 404 || class != "Not found" || cause != "feedback is not served here" {
			t.Errorf("%s: %d %s", path, got.status, got.body)
		}
	}
}

func TestUpdateAsksForAKey(t *testing.T) {
	r := start(t, Config{Keys: newKeys(t)}, newFake())
	for _, path := range []string{"/doubles/update", "/doubles/update/", "/nobody/update"} {
		for _, body := range []string{`{"query_id":7,"label":1}`, `{`} {
			if got := r.do(t, "POST", path, body); got.status != 401 || got.header.Get("WWW-Authenticate") == "" {
				t.Errorf("%s %s: %d %s", path, body, got.status, got.body)
			}
		}
	}
	if got := r.do(t, "POST", "/doubles/update", `{"query_id":7,"label":1}`, "X-Api-Key: "+goodKey); got.status != 200 {
		t.Errorf("with the key: %d %s", got.status, got.body)
	}
	if n := len(r.core.feedback()); n != 1 {
		t.Errorf("%d pieces of feedback came through, want 1", n)
	}
}

func TestDrainCancelsFeedback(t *testing.T) {
	core := newFake()
	core.learn = func(ctx context.Context, _ *serving.Feedback) (serving.Learned, error) {
		<-ctx.Done()
		return serving.Learned{}, fmt.Errorf("learn: %w", ctx.Err())
	}
	bubble(t, Config{DrainTimeout: 2 * time.Second}, core, func(t *testing.T, s *piped) {
		c := s.dial()
		c.send(t, request("POST", "/doubles/update", `{"query_id":7,"label":1}`))
		synctest.Wait()
		start := time.Now()
		s.stop()
		got := c.read(t, "POST")
		if _, cause := got.refusal(t); got.status != 503 || cause != "this gateway is stopping: send it again" || time.Since(start) != 2*time.Second {
			t.Errorf("%d %s after %v", got.status, got.body, time.Since(start))
		}
	})
}

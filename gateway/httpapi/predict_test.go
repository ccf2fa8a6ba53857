package httpapi

import (
	"context"
	"encoding/binary"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/serving"
)

func TestPredict(t *testing.T) {
	s := start(t, Config{}, newFake())
	for _, test := range []struct{ path, body, want string }{
		{"/doubles/predict", `{"input":[1,2,3]}`, `{"query_id":1,"output":3.0,"default":false}`},
		{"/doubles/predict/", `{"input":[1,2,3]}`, `{"query_id":1,"output":3.0,"default":false}`},
		{"/%64oubles/predict?x=1", `{"input":[1]}`, `{"query_id":1,"output":1.0,"default":false}`},
		{"/integers/predict", `{"input":[1,2]}`, `{"query_id":1,"output":2.0,"default":false}`},
		{"/strings/predict", `{"input":"four"}`, `{"query_id":1,"output":4.0,"default":false}`},
		{"/bytes/predict", `{"input_batch":["QUJD"]}`, `{"query_id":1,"output":3.0,"default":false}`},
		{"/floats/predict", `{"input_batch":[]}`, `{"batch_predictions":[]}`},
		{"/floats/predict", `{"input_batch":[[1],[1,2]]}`,
			`{"batch_predictions":[{"query_id":1,"output":1.0,"default":false},{"query_id":1,"output":2.0,"default":false}]}`},
	} {
		got := s.do(t, "POST", test.path, test.body, "Content-Type: text/weird")
		if got.status != 200 || got.body != test.want {
			t.Errorf("%s %s: %d %s, want %s", test.path, test.body, got.status, got.body, test.want)
		}
		if ct := got.header.Get("Content-Type"); ct != "application/json" {
			t.Errorf("%s: Content-Type %q", test.path, ct)
		}
	}
}

func TestPredictDefault(t *testing.T) {
	core := newFake()
	core.answer = func(context.Context, *serving.Query) (serving.Prediction, error) {
		late := &serving.Failure{Cause: serving.MissedSLO}
		return serving.Prediction{QueryID: 9, Output: []byte(`"none"`), Default: true, Cause: late.Cause, Explanation: late.Explain()}, nil
	}
	got := start(t, Config{}, core).do(t, "POST", "/doubles/predict", `{"input":[1]}`)
	want := `{"query_id":9,"output":"none","default":true,"default_explanation":"Failed to retrieve a prediction response within the specified latency SLO"}`
	if got.status != 200 || got.body != want {
		t.Errorf("got %d %s, want %s", got.status, got.body, want)
	}
}

func TestPredictExplains(t *testing.T) {
	core := newFake()
	core.answer = func(_ context.Context, q *serving.Query) (serving.Prediction, error) {
		slow := serving.ModelID{Model: "slow", Version: "1"}
		p := serving.Prediction{QueryID: 9, Output: []byte("1"), Missing: []serving.ModelID{slow}}
		if q.Explain {
			p.Explained = &serving.Explanation{Policy: "vote", Ended: "deadline", Budget: time.Millisecond}
		}
		return p, nil
	}
	s := start(t, Config{}, core)
	const plain = `{"query_id":9,"output":1,"default":false,"missing":["slow:1"]`
	const explained = plain + `,"explanation":{"policy":"vote","ended":"deadline","elapsed_micros":0,"budget_micros":1000,"models":[]}}`
	for body, want := range map[string]string{
		`{"input":[1]}`:                            plain + `}`,
		`{"input":[1],"explain":false}`:            plain + `}`,
		`{"input":[1],"explain":true}`:             explained,
		`{"input_batch":[[1],[2]],"explain":true}`: `{"batch_predictions":[` + explained + `,` + explained + `]}`,
	} {
		if got := s.do(t, "POST", "/doubles/predict", body); got.status != 200 || got.body != want {
			t.Errorf("%s: %d %s, want %s", body, got.status, got.body, want)
		}
	}
}

func TestPredictPassesTheWholeQuery(t *testing.T) {
	s := start(t, Config{}, newFake())
	before := time.Now()
	body := `"version":"7","uid":12,"salt":"s","slo_micros":2500,"no_cache":true,"context":"shoes","explain":true,"priority":2}`
	s.do(t, "POST", "/doubles/predict", `{"input":[0.5],`+body)
	s.do(t, "POST", "/doubles/predict", `{"input_batch":[[0.5],[0.5]],`+body)
	after := time.Now()
	want := serving.Query{
		App:     "doubles",
		Input:   serving.Input{Type: serving.Doubles, Data: binary.LittleEndian.AppendUint64(nil, math.Float64bits(0.5))},
		Timeout: 2500 * time.Microsecond, User: "12", Version: "7", Salt: "s", NoCache: true,
		Context: "shoes", Explain: true, Priority: 2,
	}
	queries := s.core.queries()
	if len(queries) != 3 {
		t.Fatalf("%d queries reached the core, want 3", len(queries))
	}
	for _, got := range queries {
		if got.Received.Before(before) || got.Received.After(after) {
			t.Errorf("received %v, want between %v and %v", got.Received, before, after)
		}
		got.Received = time.Time{}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("got %+v, want %+v", got, want)
		}
	}
}

func TestClientTimeout(t *testing.T) {
	s := start(t, Config{}, newFake())
	for _, test := range []struct {
		body, header string
		want         time.Duration
	}{
		{`{"input":[1]}`, "X-Other: 1", 0},
		{`{"input":[1]}`, "X-Timeout-Ms: 3", 3 * time.Millisecond},
		{`{"input":[1],"slo_micros":5000}`, "x-timeout-ms: 3", 3 * time.Millisecond},
		{`{"input":[1],"slo_micros":2000}`, "X-Timeout-Ms: 3", 2 * time.Millisecond},
		{`{"input":[1]}`, "X-Timeout-Ms: 9999999999999999999", serving.MaxSLO},
	} {
		got := s.do(t, "POST", "/doubles/predict", test.body, test.header)
		queries := s.core.queries()
		if last := queries[len(queries)-1]; got.status != 200 || last.Timeout != test.want {
			t.Errorf("%s with %s: %d, timeout %v, want %v", test.body, test.header, got.status, last.Timeout, test.want)
		}
	}
	for _, value := range []string{"0", "-1", "1.5", "1s", "99999999999999999999"} {
		got := s.do(t, "POST", "/doubles/predict", `{"input":[1]}`, "X-Timeout-Ms: "+value)
		if class, cause := got.refusal(t); got.status != 400 || class != "Bad request" || !strings.Contains(cause, "X-Timeout-Ms") {
			t.Errorf("%s: %d %s", value, got.status, got.body)
		}
	}
}

// A query has the lowest of the priorities that its body, its header and its key say.
func TestPriority(t *testing.T) {
	core, secrets := keyed(nil, &serving.Key{Name: "batch", Role: serving.RoleQuery, Priority: 2})
	s := start(t, Config{}, core)
	for _, c := range []struct {
		body, header, key string
		want              int
	}{
		{``, "", "", 0},
		{`,"priority":1`, "", "", 1},
		{`,"priority":0`, "3", "", 3},
		{`,"priority":3`, "1", "", 3},
		{`,"priority":1`, "0", "batch", 2},
		{`,"priority":3`, "", "batch", 3},
	} {
		var headers []string
		if c.header != "" {
			headers = append(headers, "X-Priority: "+c.header)
		}
		if c.key != "" {
			headers = append(headers, "X-Api-Key: "+secrets[c.key])
		}
		if got := s.do(t, "POST", "/doubles/predict", `{"input":[1]`+c.body+`}`, headers...); got.status != 200 {
			t.Fatalf("%+v: %d %s", c, got.status, got.body)
		}
		all := s.core.queries()
		if got := all[len(all)-1].Priority; got != c.want {
			t.Errorf("%+v: asked with priority %d", c, got)
		}
	}
	for _, wrong := range []string{"-1", "4", "10", "high", "1.0"} {
		if got := s.do(t, "POST", "/doubles/predict", `{"input":[1]}`, "X-Priority: "+wrong); got.status != 400 || !strings.Contains(got.body, "between 0, the highest, and 3") {
			t.Errorf("X-Priority: %s: %d %s", wrong, got.status, got.body)
		}
	}
}

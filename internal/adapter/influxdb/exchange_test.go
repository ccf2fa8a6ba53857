package influxdb

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/internal/activity"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/test/require"
	"github.com/topsail-serving/topsail/test/wait"
)

// exchange is an InfluxDB that keeps what it is asked, and answers as it is told.
type exchange struct {
	*httptest.Server
	mu     sync.Mutex // guards the following
	asked  []string   // method, address and body
	tokens []string
	answer func(path, token string) (status int, contentType, body string)
}

func newExchange(t *testing.T) *exchange {
	x := &exchange{answer: func(string, string) (int, string, string) { return http.StatusNoContent, "", "" }}
	x.Server = httptest.NewServer(x)
	t.Cleanup(x.Close)
	return x
}

func (x *exchange) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	x.mu.Lock()
	defer x.mu.Unlock()
	body := io.Reader(req.Body)
	if req.Header.Get("Content-Encoding") == "gzip" {
		var err error
		if body, err = gzip.NewReader(body); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
	}
	text, err := io.ReadAll(body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	x.asked = append(x.asked, fmt.Sprintf("%s %s\n%s", req.Method, req.URL, text))
	token := req.Header.Get("Authorization")
	x.tokens = append(x.tokens, token)
	status, contentType, answer := x.answer(req.URL.Path, token)
	if contentType != "" {
		w.Header().Set("Content-Type", contentType)
	}
	w.WriteHeader(status)
	_, _ = io.WriteString(w, answer)
}

func (x *exchange) requests() []string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return append([]string(nil), x.asked...)
}

func (x *exchange) answers(status int, contentType, body string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.answer = func(string, string) (int, string, string) { return status, contentType, body }
}

// store is one for a bucket of version 2.
func (x *exchange) store(t *testing.T) *Store {
	return open(t, Config{URL: x.URL, Org: "our org", Bucket: "topsail", Token: func(bool) []byte { return []byte("secret") }, Log: testLog(t)})
}

func golden(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile("testdata/" + name)
	require.NoError(t, err)
	return string(text)
}

var second = time.Unix(1767225600, 0).UTC() // 2026-01-01T00:00:00Z

// TestWriteRequest is the bytes that an InfluxDB gets.
func TestWriteRequest(t *testing.T) {
	x := newExchange(t)
	s := x.store(t)
	s.WriteDemand(serving.DemandReport{Source: serving.DemandSource{Role: "gateway", Name: `g "1"`}, Second: second, Demands: []serving.Demand{
		{ModelID: serving.ModelID{Model: "digits", Version: "3"}, Arrivals: 12, Defaults: 1, Concurrency: 123456789},
		{ModelID: serving.ModelID{Model: "wine", Version: "1 b,c=d"}, Unserved: 4},
	}})
	wait.Until(t, "a report is written", func() bool { return len(x.requests()) == 1 })
	s.WriteDemand(serving.DemandReport{Source: serving.DemandSource{Role: "sidecar", Name: "r"}, Second: second, Last: true, Demands: []serving.Demand{
		{ModelID: serving.ModelID{Model: "digits", Version: "3"}, Admitted: 5, Refused: 6, Batches: 7, Inputs: 8, Waited: 9, Service: 10, Profile: serving.LatencyLine{Base: 11, PerInput: 12}},
	}})
	wait.Until(t, "another is written", func() bool { return len(x.requests()) == 2 })
	s.WriteDecision(serving.Decision{
		ModelID: serving.ModelID{Model: "digits", Version: "3"}, At: second.Add(200 * time.Millisecond), From: 1, To: 3,
		Rule: "capacity", Reason: `412 "queries"/s`, Outcome: "failed", Error: strings.Repeat("é", 3000), Leader: "s-1", Fence: 7,
	})
	wait.Until(t, "a decision is written", func() bool { return len(x.requests()) == 3 })
	s.start = "" // which is drawn
	s.WriteMetrics(serving.DemandSource{Role: "gateway", Name: `g "1"`}, second, []activity.Point{
		{Measurement: "topsail_apps", Tags: map[string]string{"app": "wine"}, Fields: map[string]float64{"query_seconds_bucket_+Inf": 1, "answers_ok": 2, "query_seconds_sum": 0.5}},
		{Measurement: "topsail_apps", Tags: map[string]string{"app": ""}, Fields: map[string]float64{"refused_busy": 3}},
	}, 0)
	wait.Until(t, "metrics are written", func() bool { return len(x.requests()) == 4 })
	got := strings.ReplaceAll(strings.Join(x.requests(), "\n"), strings.Repeat("é", maxText/2), "é…")
	if want := golden(t, "writes.txt"); got != want {
		t.Errorf("asked:\n%s\nwant:\n%s", got, want)
	}
	for _, token := range x.tokens {
		if token != "Token secret" {
			t.Errorf("showed %q", token)
		}
	}
}

// TestMetricsAreApart: metrics that wait push out older metrics, and no demand. Those of a process and of an earlier one of
// its name in the same second are two points.
func TestMetricsAreApart(t *testing.T) {
	s, err := New(Config{URL: "http://127.0.0.1:1", Bucket: "b"})
	require.NoError(t, err)
	s.WriteDemand(report("g", second, 1))
	points := make([]activity.Point, activity.MaxPoints)
	for i := range points {
		points[i] = activity.Point{Measurement: "topsail_apps", Fields: map[string]float64{}}
		for field := range demandFields - 1 {
			points[i].Fields[fmt.Sprint("answers_", field)] = 1
		}
	}
	source := serving.DemandSource{Role: "gateway", Name: "g"}
	for range 5 {
		s.WriteMetrics(source, second, points, 0)
	}
	if most := maxMetrics / (1 + activity.MaxPoints*(demandFields-1)/demandFields); s.metrics.waiting() != most || s.DroppedMetrics() != uint64(5-most) {
		t.Errorf("%d intervals wait, %d are dropped", s.metrics.waiting(), s.DroppedMetrics())
	}
	if s.Waiting() != 1 || s.Dropped() != 0 {
		t.Errorf("%d reports wait, %d are dropped", s.Waiting(), s.Dropped())
	}
	before := s.DroppedMetrics()
	s.WriteMetrics(source, second, points[:1], 3)
	if n := s.DroppedMetrics() - before; n != 1 {
		t.Errorf("%d intervals more were dropped or cut, want this one", n)
	}
	again, err := New(s.cfg)
	require.NoError(t, err)
	again.WriteMetrics(source, second, points[:1], 0)
	if a, b := s.metrics.ring.entries[0].metrics[0].Time(), again.metrics.ring.entries[0].metrics[0].Time(); a.Equal(b) || !a.Truncate(time.Second).Equal(second) {
		t.Errorf("points at %v and %v", a, b)
	}
}

// TestReadAnswers reads what InfluxDB 1.8 answered when this was recorded, and what
// 2.x documents: another order of annotations and columns, CRLF, a table for each
// series, annotations once more before another kind of table.
func TestReadAnswers(t *testing.T) {
	want := []serving.DemandReport{
		{Source: serving.DemandSource{Role: "gateway", Name: `g "1"`}, Second: second, Demands: []serving.Demand{
			{ModelID: serving.ModelID{Model: "digits", Version: "3"}, Arrivals: 12, Defaults: 1, Concurrency: 123456789},
			{ModelID: serving.ModelID{Model: "wine", Version: "1 b,c=d"}, Unserved: 4},
		}},
		{Source: serving.DemandSource{Role: "sidecar", Name: "r"}, Second: second, Last: true, Demands: []serving.Demand{
			{ModelID: serving.ModelID{Model: "digits", Version: "3"}, Admitted: 5, Refused: 6, Batches: 7, Inputs: 8, Waited: 9, Service: 10, Profile: serving.LatencyLine{Base: 11, PerInput: 12}},
		}},
	}
	for _, version := range []string{"1.8", "2.x"} {
		t.Run(version, func(t *testing.T) {
			x := newExchange(t)
			x.answers(http.StatusOK, "text/csv; charset=utf-8", strings.ReplaceAll(golden(t, "answer-"+version+".csv"), "\n", "\r\n"))
			got, err := x.store(t).ReadDemand(t.Context(), second.Add(-500*time.Millisecond), second.Add(2*time.Second))
			if err != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("read %+v, %v; want %+v", got, err, want)
			}
			address, body, _ := strings.Cut(x.requests()[0], "\n")
			var asked struct{ Query, Type string }
			require.NoError(t, json.Unmarshal([]byte(body), &asked))
			if address != "POST /api/v2/query?org=our+org" || asked.Type != "flux" || asked.Query+"\n" != golden(t, "query.flux") {
				t.Errorf("asked %s of %s:\n%s", asked.Type, address, asked.Query)
			}
		})
	}
}

// TestReadLeavesOutWhatItCannotRead and is not held up by it.
func TestReadLeavesOutWhatItCannotRead(t *testing.T) {
	x := newExchange(t)
	x.answers(http.StatusOK, "text/csv", strings.Replace(golden(t, "answer-2.x.csv"), "1 gateway", "9 gateway", 1))
	got, err := x.store(t).ReadDemand(t.Context(), second, second.Add(time.Second))
	if err != nil || len(got) != 1 || got[0].Source.Name != "r" {
		t.Errorf("read %+v, %v; want the one that is fine", got, err)
	}
}

// TestReadFails where a part of the answer could be taken for all of it.
func TestReadFails(t *testing.T) {
	whole := golden(t, "answer-2.x.csv")
	for name, test := range map[string]struct {
		status            int
		contentType, body string
		want              string
	}{
		"refused by 1.8":  {http.StatusForbidden, "text/plain", "Flux query service disabled.\n", "Flux query service disabled"},
		"refused by 2.x":  {http.StatusUnauthorized, "application/json", `{"code":"unauthorized","message":"unauthorized access"}`, "unauthorized access"},
		"no such bucket":  {http.StatusNotFound, "application/json", `{"code":"not found","message":"failed to initialize execute state: could not find bucket \"topsail\""}`, "could not find bucket"},
		"fails midway":    {http.StatusOK, "text/csv", whole + "\n#datatype,string,string\n#group,true,true\n#default,,\n,error,reference\n,engine: unknown field type,897\n", "unknown field type"},
		"is no CSV":       {http.StatusOK, "text/html", "<html>\n<body a=\"b\">\n", "parse"},
		"ends in a value": {http.StatusOK, "text/csv", whole[:strings.Index(whole, "wine")], "\""},
	} {
		t.Run(name, func(t *testing.T) {
			x := newExchange(t)
			x.answers(test.status, test.contentType, test.body)
			got, err := x.store(t).ReadDemand(t.Context(), second, second.Add(time.Second))
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("read %+v, %v; want an error with %q", got, err, test.want)
			}
		})
	}
}

// TestTokenIsReplaced while we run: a query is retried at once, a write soon.
func TestTokenIsReplaced(t *testing.T) {
	x := newExchange(t)
	x.answer = func(path, token string) (int, string, string) {
		switch {
		case token != "Token new":
			return http.StatusUnauthorized, "application/json", `{"code":"unauthorized","message":"unauthorized access"}`
		case path == "/api/v2/query":
			return http.StatusOK, "text/csv", "\r\n"
		}
		return http.StatusNoContent, "", ""
	}
	var mu sync.Mutex
	held, file := "old", "new"
	s := open(t, Config{URL: x.URL, Bucket: "topsail", Log: testLog(t), Token: func(refused bool) []byte {
		mu.Lock()
		defer mu.Unlock()
		if refused {
			held = file
		}
		return []byte(held)
	}})
	if got, err := s.ReadDemand(t.Context(), second, second.Add(time.Second)); err != nil || len(got) != 0 {
		t.Errorf("read %v, %v", got, err)
	}
	mu.Lock()
	held = "old"
	mu.Unlock()
	s.WriteDemand(report("g", second, 1))
	wait.Until(t, "it is written", func() bool { return len(x.requests()) >= 4 && s.Waiting() == 0 })
	x.mu.Lock()
	defer x.mu.Unlock()
	if want := []string{"Token old", "Token new", "Token old", "Token new"}; !slices.Equal(x.tokens, want) {
		t.Errorf("showed %q, want %q", x.tokens, want)
	}
	if s.Dropped() != 0 {
		t.Error("a report was dropped")
	}
}

func TestConfig(t *testing.T) {
	for _, cfg := range []Config{
		{URL: "localhost:8086", Bucket: "b"}, {URL: "", Bucket: "b"}, {URL: "http://", Bucket: "b"}, {URL: "http://%zz", Bucket: "b"}, {URL: "http://localhost:8086"},
	} {
		if s, err := New(cfg); err == nil {
			t.Errorf("%+v makes %v", cfg, s)
		}
	}
	s, err := New(Config{URL: "http://localhost:1/", Bucket: `a"b\`})
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if _, err := s.ReadDemand(ctx, second, second.Add(time.Second)); err == nil {
		t.Error("nobody answers")
	}
}

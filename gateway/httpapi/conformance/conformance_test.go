package conformance

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/topsail-serving/topsail/test/openapi"
	"github.com/topsail-serving/topsail/test/require"
)

// request is one of the contract's, with the status that it is to have.
type request struct {
	operation, path, body string
	status                int
	misfit                bool     // the body is not what the contract asks for
	headers               []string // names and values; KEY:NAME stands for a secret
}

// slow and large stand for bodies that do not come, or are too large.
const slow, large = "SLOW", "LARGE"

// queries are requests to /APP/predict.
func queries() []request {
	const post, one = "predict_doubles", `{"input":[1]}`
	key := func(name string) []string { return []string{"X-Api-Key", name} }
	return []request{
		{post, "/doubles/predict", one, 200, false, nil},
		{post, "/doubles/predict", `{"input":[1.5,-2e3],"uid":"u","context":7,"version":"v","slo_micros":5000,"salt":"s","explain":true}`, 200, false, []string{"X-Timeout-Ms", "5", "X-Request-Id", "mine"}},
		{post, "/doubles/predict", `{"input":[1],"no_cache":true,"explain":true,"strict":false,"other":{"a":[]}}`, 200, false, []string{"X-Topsail-Timing", "1"}},
		{post, "/doubles/predict", `{"input_batch":[[1],[2,3]],"explain":true}`, 200, false, nil},
		{post, "/doubles/predict", `{"input_batch":[[1]]}`, 200, false, nil},
		{post, "/doubles/predict", `{"input_batch":[]}`, 200, false, nil},
		{post, "/doubles/predict", `{"input_batch":[[1],[2],[3],[4]]}`, 400, true, nil},
		{post, "/doubles/predict", `{"input_batch":[1]}`, 400, true, nil},
		{post, "/doubles/predict", `{"input":[]}`, 400, true, nil},
		{post, "/doubles/predict", `{"input":["1"]}`, 400, true, nil},
		{post, "/doubles/predict", `{"inputs":[1]}`, 400, true, nil},
		{post, "/doubles/predict", `{"input":[1],"uid":null}`, 400, true, nil},
		{post, "/doubles/predict", `{"input":[1],"slo_micros":0}`, 400, true, nil},
		{post, "/doubles/predict", `{"input":[1],"explain":"yes"}`, 400, true, nil},
		{post, "/doubles/predict", `[1]`, 400, true, nil},
		{post, "/doubles/predict", ``, 400, true, nil},
		{post, "/doubles/predict", one, 400, false, []string{"X-Timeout-Ms", "soon"}},
		{post, "/doubles/predict", `{"input":[1],"version":"unknown"}`, 400, false, nil},
		{post, "/doubles/predict", one, 401, false, key("wrong")},
		{"predict_locked", "/locked/predict", one, 401, false, nil},
		{"predict_locked", "/locked/predict", one, 200, false, key("KEY:all")},
		{"predict_locked", "/locked/predict", one, 200, false, []string{"Authorization", "Bearer KEY:all"}},
		{post, "/doubles/predict", one, 403, false, key("KEY:wine")},
		{post, "/doubles/predict", one, 403, false, key("KEY:viewer")},
		{post, "/doubles/predict", one, 403, false, []string{"Sec-Fetch-Site", "cross-site"}},
		{post, "/nobody/predict", one, 404, false, nil},
		{post, "/doubles/predict", slow, 408, false, nil},
		{post, "/doubles/predict", large, 413, false, nil},
		{post, "/doubles/predict", one, 415, false, []string{"Content-Encoding", "br"}},
		{post, "/doubles/predict", one, 200, false, []string{"Content-Encoding", "gzip"}},
		{"predict_limited", "/limited/predict", `{"input_batch":[[1],[2]]}`, 200, false, nil},
		{"predict_limited", "/limited/predict", `{"input_batch":[[1],[2]]}`, 429, false, nil},
		{post, "/doubles/predict", one, 431, false, []string{"X-Large", strings.Repeat("x", 20<<10)}},
		{post, "/doubles/predict", `{"input":[1],"version":"fail"}`, 500, false, nil},
		{post, "/doubles/predict", `{"input":[1],"version":"unavailable"}`, 503, false, nil},
		{"predict_floats", "/floats/predict", `{"input":[3.4028235e38]}`, 200, false, nil},
		{"predict_floats", "/floats/predict", `{"input":[1e39]}`, 400, true, nil},
		{"predict_integers", "/integers/predict", `{"input":[-2147483648]}`, 200, false, nil},
		{"predict_integers", "/integers/predict", `{"input":[2147483648]}`, 400, true, nil},
		{"predict_integers", "/integers/predict", `{"input":[0.5]}`, 400, true, nil},
		{"predict_strings", "/strings/predict", `{"input":""}`, 200, false, nil},
		{"predict_strings", "/strings/predict", `{"input":[1]}`, 400, true, nil},
		{"predict_bytes", "/bytes/predict", `{"input":"QQ=="}`, 200, false, nil},
		{"predict_bytes", "/bytes/predict", `{"input":"QQ"}`, 200, false, nil},
		{"predict_bytes", "/bytes/predict", `{"input":"Q"}`, 400, true, nil},
		{"predict_bytes", "/bytes/predict", `{"input":""}`, 400, true, nil},
		{"predict_wine", "/wine/predict", `{"input":[1,2]}`, 200, false, key("KEY:wine")},
		{"predict_image", "/image/predict", `{"input":"QUI"}`, 200, false, nil},
	}
}

// feedback are requests to /APP/update.
func feedback() []request {
	const post, one = "update_doubles", `{"query_id":7,"label":1}`
	return []request{
		{post, "/doubles/update", one, 200, false, nil},
		{post, "/doubles/update", `{"input":[1],"reward":0.5,"uid":"u","context":1,"feedback_id":"f","strict":false,"other":1}`, 200, false, []string{"X-Timeout-Ms", "5"}},
		{post, "/doubles/update", `{"feedback_batch":[{"query_id":7,"label":{"a":1}},{"input":[1],"label":"x"}]}`, 200, false, nil},
		{post, "/doubles/update", `{"feedback_batch":[]}`, 200, false, nil},
		{post, "/doubles/update", `{"label":1}`, 400, true, nil},
		{post, "/doubles/update", `{"query_id":7}`, 400, true, nil},
		{post, "/doubles/update", `{"query_id":0,"label":1}`, 400, true, nil},
		{post, "/doubles/update", `{"query_id":7,"label":null}`, 400, true, nil},
		{post, "/doubles/update", `{"query_id":7,"label":1,"reward":1}`, 400, true, nil},
		{post, "/doubles/update", `{"query_id":7,"reward":2}`, 400, true, nil},
		{post, "/doubles/update", `{"feedback_batch":[{"label":1}]}`, 400, true, nil},
		{post, "/doubles/update", `{"feedback_batch":[` + one + `],"uid":"u"}`, 400, true, nil},
		{post, "/doubles/update", `{"feedback_batch":[` + one + `,` + one + `,` + one + `,` + one + `]}`, 400, true, nil},
		{post, "/doubles/update", ``, 400, true, nil},
		{post, "/doubles/update", `{"query_id":7,"label":1,"feedback_id":"unknown"}`, 400, false, nil},
		{"update_locked", "/locked/update", one, 401, false, nil},
		{"update_locked", "/locked/update", one, 200, false, []string{"X-Api-Key", "KEY:all"}},
		{post, "/doubles/update", one, 403, false, []string{"X-Api-Key", "KEY:wine"}},
		{post, "/nobody/update", one, 404, false, nil},
		{post, "/doubles/update", slow, 408, false, nil},
		{post, "/doubles/update", large, 413, false, nil},
		{post, "/doubles/update", one, 415, false, []string{"Content-Encoding", "br"}},
		{"update_limited", "/limited/update", one, 200, false, nil}, // what queries have left
		{"update_limited", "/limited/update", one, 429, false, nil},
		{post, "/doubles/update", one, 431, false, []string{"X-Large", strings.Repeat("x", 20<<10)}},
		{post, "/doubles/update", `{"query_id":7,"label":1,"feedback_id":"fail"}`, 500, false, nil},
		{post, "/doubles/update", `{"query_id":7,"label":1,"feedback_id":"unavailable"}`, 503, false, nil},
		{post, "/doubles/update", `{"query_id":7,"label":1,"feedback_id":"unjudged"}`, 503, false, nil},
		{"update_floats", "/floats/update", `{"input":[1],"label":[1]}`, 200, false, nil},
		{"update_integers", "/integers/update", `{"input":[1],"label":true}`, 200, false, nil},
		{"update_strings", "/strings/update", `{"input":"a","label":"b"}`, 200, false, nil},
		{"update_bytes", "/bytes/update", `{"input":"QQ==","label":"b"}`, 200, false, nil},
		{"update_bytes", "/bytes/update", `{"input":[1],"label":"b"}`, 400, true, nil},
		{"update_wine", "/wine/update", `{"input":[1,2],"label":"b"}`, 200, false, nil},
		{"update_image", "/image/update", `{"input":"QUI=","label":"b"}`, 200, false, nil},
	}
}

// others are requests to the port itself.
func others() []request {
	key := func(name string) []string { return []string{"X-Api-Key", name} }
	return []request{
		{"getHealth", "/health", "", 200, false, nil},
		{"getHealth", "/health", "", 200, false, key("wrong")},
		{"getMetrics", "/metrics", "", 200, false, nil},
		{"getMetrics", "/metrics", "", 200, false, []string{"Accept", "text/plain"}},
		{"getMetrics", "/metrics", "", 200, false, []string{"Accept", "application/openmetrics-text"}},
		{"getMetrics", "/metrics", "", 401, false, key("wrong")},
		{"getMetrics", "/metrics", "", 403, false, key("KEY:wine")},
		{"getOpenAPI", "/openapi.json", "", 200, false, nil},
		{"getOpenAPI", "/openapi.json", "", 200, false, key("KEY:wine")},
		{"getOpenAPI", "/openapi.json", "", 401, false, key("wrong")},
		{"getOpenAPI", "/openapi.json", "", 403, false, key("KEY:viewer")},
	}
}

// TestAnswersAreThoseOfTheContract goes through a whole session: every operation of the
// document at least once with success, and all that an app may answer.
func TestAnswersAreThoseOfTheContract(t *testing.T) {
	p := start(t)
	contract := p.contract(t)
	seen := map[string]map[string]bool{"predict": {}, "update": {}}
	for _, r := range slices.Concat(queries(), feedback(), others()) {
		op := contract[r.operation]
		if op == nil {
			t.Fatalf("the document has no %s", r.operation)
		}
		status := p.try(t, op, r)
		if what, _, _ := strings.Cut(r.operation, "_"); seen[what] != nil {
			seen[what][fmt.Sprint(status)] = true
		}
	}
	p.core.unknown.Store(true)
	for _, r := range []request{
		{"getOpenAPI", "/openapi.json", "", 503, false, nil}, {"predict_doubles", "/doubles/predict", `{"input":[1]}`, 503, false, nil}, {"getMetrics", "/metrics", "", 503, false, []string{"X-Api-Key", "wrong"}},
	} {
		p.try(t, contract[r.operation], r)
	}
	contract.AllSucceeded(t)
	for what, statuses := range seen {
		for status := range contract[what+"_doubles"].Responses.Map() {
			if !statuses[status] {
				t.Errorf("no %s is answered with %s", what, status)
			}
		}
	}
}

// contract is the document as somebody with a key for everything sees it.
func (p *port) contract(t *testing.T) openapi.Contract {
	t.Helper()
	status, _, body := p.ask(t, "GET", request{path: "/openapi.json", headers: []string{"X-Api-Key", "KEY:all"}})
	if status != 200 {
		t.Fatalf("%d %s", status, body)
	}
	return openapi.Load(t, body)
}

// try sends a request, and holds it and its answer to the contract.
func (p *port) try(t *testing.T, op *openapi.Operation, r request) int {
	t.Helper()
	status, header, body := p.ask(t, op.Method, r)
	if status != r.status {
		t.Errorf("%s %s %.100s: got %d %s, want %d", op.Method, r.path, r.body, status, body, r.status)
		return status
	}
	op.CheckAnswer(t, status, header, body)
	if r.body != slow && r.body != large {
		op.CheckRequest(t, r.body, !r.misfit)
	}
	if id := slices.Index(r.headers, "X-Request-Id"); id >= 0 && header.Get("X-Request-Id") != r.headers[id+1] {
		t.Errorf("%s: the request's id is %q", r.path, header.Get("X-Request-Id"))
	}
	if known := op.Responses.Status(status); known != nil {
		said := []string{"Content-Type", "Content-Length", "Date", "Connection", "Cache-Control", "Vary"} // of every answer
		for name := range known.Value.Headers {
			said = append(said, http.CanonicalHeaderKey(name))
		}
		for name := range header {
			if !slices.Contains(said, name) {
				t.Errorf("%s: %d has the header %s, which the document does not say", r.path, status, name)
			}
		}
	}
	return status
}

// ask sends a request on a connection of its own.
func (p *port) ask(t *testing.T, method string, r request) (int, http.Header, []byte) {
	t.Helper()
	text := r.body
	if slices.Contains(r.headers, "gzip") {
		var b bytes.Buffer
		w := gzip.NewWriter(&b)
		io.WriteString(w, text)
		w.Close()
		text = b.String()
	}
	var body io.Reader = strings.NewReader(text)
	length := int64(len(text))
	switch text {
	case slow:
		rest, end := io.Pipe()
		defer end.Close()
		body, length = io.MultiReader(strings.NewReader("{"), rest), 12<<10
	case large:
		body, length = strings.NewReader(strings.Repeat(" ", 17<<10)), 17<<10
	}
	ask, err := http.NewRequestWithContext(t.Context(), method, "http://"+p.addr+r.path, body)
	require.NoError(t, err)
	ask.ContentLength = length
	ask.Header.Set("Accept", "application/json")
	for i := 0; i < len(r.headers); i += 2 {
		value := r.headers[i+1]
		for name, secret := range p.keys {
			value = strings.ReplaceAll(value, "KEY:"+name, secret)
		}
		ask.Header.Set(r.headers[i], value)
	}
	answer, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(ask)
	if err != nil {
		t.Fatalf("%s %s: %v", method, r.path, err)
	}
	defer answer.Body.Close()
	got, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	return answer.StatusCode, answer.Header, got
}

// A validator that takes anything would find nothing.
func TestWrongAnswersAreFound(t *testing.T) {
	for id, op := range start(t).contract(t) {
		for status, response := range op.Responses.Map() {
			media := response.Value.Content["application/json"]
			if media == nil {
				t.Errorf("%s: %s has no JSON", id, status)
				continue
			}
			for _, wrong := range []string{
				`"text"`, `null`, `[]`, `{}`, `{"query_id":"1","output":1,"default":false}`, `{"query_id":1,"output":1}`, `{"batch_predictions":[{}]}`,
				`{"received":true}`, `{"feedback":[{}]}`, `{"error":1,"cause":"c"}`, `{"error":"e"}`, `{"status":"unwell"}`, `not JSON`,
			} {
				if id == "getMetrics" && wrong[0] == '{' {
					continue // no member is required there
				}
				if openapi.Fits(media.Schema.Value, []byte(wrong), openapi3.VisitAsResponse()) == nil {
					t.Errorf("%s: %s: %s passes", id, status, wrong)
				}
			}
		}
	}
}

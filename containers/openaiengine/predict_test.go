package openaiengine

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/topsail-serving/topsail/containers/gocontainer"
	"github.com/topsail-serving/topsail/serving"
)

func TestAnswersWithoutParts(t *testing.T) {
	const said = `{"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 4}}`
	for _, c := range []struct {
		request, path string
		parts         bool
		stream        any
	}{
		{`{"messages": [], "stream": true, "stream_options": {}}`, chatPath, false, false},
		{`{"prompt": "x"}`, textPath, false, false},
		{`{"input": "x"}`, embeddingsPath, true, nil},
	} {
		atEngine(t, testConfig(), func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, said) }, func(r *rig) {
			a := r.ask(r.Context(), c.request, c.parts)
			if r.expect(a, said); len(a.parts) > 0 {
				r.Errorf("there were parts: %q", a.parts)
			}
			if _, options := r.request["stream_options"]; r.path != c.path || r.request["stream"] != c.stream || options {
				r.Errorf("the engine was asked %s %v", r.path, r.request)
			}
			if p, c := r.metric("prompt_tokens_total"), r.metric("completion_tokens_total"); p != 3 || c != 4 {
				r.Errorf("%v and %v tokens are counted", p, c)
			}
		})
	}
}

func TestInputsThatAreNoRequest(t *testing.T) {
	atEngine(t, testConfig(), func(http.ResponseWriter, *http.Request) { t.Error("the engine was asked") }, func(r *rig) {
		for input, want := range map[string]string{
			`{"messages"`: "must be the JSON object",
			`[]`:          "must be the JSON object",
			`null`:        "no messages, prompt or input",
			`{"x": 1}`:    "no messages, prompt or input",
			`{"prompt": "x", "stream_options": "all"}`: "stream_options must be an object",
		} {
			if a := r.ask(r.Context(), input, true); a.Err == nil || !strings.Contains(a.Err.Error(), want) {
				r.Errorf("%s: %v", input, a.Err)
			}
		}
		two := gocontainer.Query{Inputs: []serving.Value{serving.Number(1)}}
		if got := r.predict(r.Context(), &two, nil); got.Err == nil || !strings.Contains(got.Err.Error(), "one text") {
			r.Errorf("a number: %v", got.Err)
		}
	})
}

func TestErrorsOfTheEngine(t *testing.T) {
	for _, c := range []struct {
		status     int
		said, want string
	}{
		{413, "", "EngineError: 413 Request Entity Too Large: "},
		{400, `{"error": {"message": "too long", "type": "BadRequestError", "code": 400}}`, "EngineError: 400 Bad Request: too long"},
		{429, `{"error": "Model is overloaded", "error_type": "overloaded"}`, "EngineError: 429 Too Many Requests: Model is overloaded"},
		{404, `{"object": "error", "message": "no such model"}`, "EngineError: 404 Not Found: no such model"},
		{422, `{"detail": [{"loc": ["body"]}]}`, "EngineError: 422 Unprocessable Entity: [map[loc:[body]]]"},
		{503, "busy\n", "EngineError: 503 Service Unavailable: busy"},
	} {
		atEngine(t, testConfig(), func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(c.status); io.WriteString(w, c.said) }, func(r *rig) {
			for _, parts := range []bool{false, true} {
				if a := r.ask(r.Context(), chat, parts); a.Err == nil || a.Err.Error() != c.want {
					r.Errorf("%v, want %s", a.Err, c.want)
				} else if _, bad := errors.AsType[gocontainer.BadInput](a.Err); bad != (c.status == 400 || c.status == 413 || c.status == 422) {
					r.Errorf("%d: %T", c.status, a.Err)
				}
			}
		})
	}
}

func TestAnswersThatFail(t *testing.T) {
	first := `{"choices":[{"index":0,"delta":{"content":"a"}}]}`
	long := strings.Repeat("x", maxEvent)
	for name, c := range map[string]struct{ said, want string }{
		"cut":             {"data: " + first + "\n\n", "before it was complete"},
		"cut in a chunk":  {"data: " + first + "\n\ndata: " + first[:20], "not a JSON object"},
		"a long line":     {"data: " + first + "\n\ndata: " + long + "\n\ndata: [DONE]\n\n", "above 1 MiB"},
		"a long comment":  {"data: " + first + "\n\n:" + long + "\n\ndata: [DONE]\n\n", "above 1 MiB"},
		"many lines":      {"data: " + first + "\n\n" + strings.Repeat("data: "+long[:1000]+"\n", 1100), "above 1 MiB"},
		"an error inside": {"data: " + first + "\n\nevent: error\ndata: {\"error\": {\"message\": \"out of memory\", \"code\": 500}}\n\n", "EngineError: 500 Internal Server Error: out of memory"},
		"two values":      {"data: " + first + "\n\ndata: {} {}\n\n", "more than a JSON object"},
	} {
		atEngine(t, testConfig(), func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, c.said) }, func(r *rig) {
			if a := r.ask(r.Context(), chat, true); a.Err == nil || !strings.Contains(a.Err.Error(), c.want) || len(a.parts) != 1 {
				r.Errorf("%s: %d parts, %v", name, len(a.parts), a.Err)
			}
		})
	}
	atEngine(t, testConfig(), stream(), func(r *rig) {
		if a := r.ask(r.Context(), chat, true); a.Err == nil || !strings.Contains(a.Err.Error(), "without any chunk") {
			r.Error(a.Err)
		}
	})
	atEngine(t, testConfig(), func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "not JSON") }, func(r *rig) {
		if a := r.ask(r.Context(), chat, false); a.Err == nil || !strings.Contains(a.Err.Error(), "not the JSON of an answer") {
			r.Error(a.Err)
		}
		r.server.Close()
		r.listener.Close()
		if a := r.ask(r.Context(), chat, false); a.Err == nil || !strings.Contains(a.Err.Error(), "cannot be reached") || !strings.Contains(a.Err.Error(), "connection refused") {
			r.Error(a.Err)
		}
	})
}

package httpapi

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/test/require"
)

// openaiCore has an app that chats, whose answers are the parts, and one of texts.
func openaiCore(parts ...string) (*fakeCore, *fakeParts) {
	f := newFakeParts(parts...)
	close(f.next)
	core := streaming(f)
	core.apps["bot"] = &serving.App{Name: "bot", InputType: serving.Chat}
	return core, f
}

// post sends a request of OpenAI's API and returns the status and the body.
func postOpenAI(t *testing.T, s *running, path, body string) (int, string) {
	t.Helper()
	response, err := http.Post("http://"+s.addr+openaiBase+path, "application/json", strings.NewReader(body))
	require.NoError(t, err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return response.StatusCode, string(text)
}

// Every error has OpenAI's form.
func TestErrorsOfOpenAIsAPI(t *testing.T) {
	core, _ := openaiCore()
	s := start(t, Config{MaxBodyBytes: 1 << 10, MaxBatch: 2}, core)
	for body, want := range map[string]int{
		`{`:                                 400,
		`{"model":"bot"}`:                   400,
		`{"model":"gone","messages":[]}`:    404,
		`{"model":"doubles","messages":[]}`: 400,
		`{"model":"bot","messages":[],"x":"` + strings.Repeat("x", 2<<10) + `"}`: 413,
	} {
		status, text := postOpenAI(t, s, "/chat/completions", body)
		var e struct {
			Error struct{ Message, Type string }
		}
		if err := json.Unmarshal([]byte(text), &e); err != nil || status != want || e.Error.Message == "" || e.Error.Type == "" {
			t.Errorf("%.40s: %d %s, %v", body, status, text, err)
		}
		if unknown := strings.Contains(text, `"code":"model_not_found"`); unknown != (want == 404) {
			t.Errorf("%.40s: %s", body, text)
		}
	}
	for path, body := range map[string]string{
		"/embeddings":  `{"model":"strings","input":["a","b","c"]}`, // more than a batch may have
		"/completions": `{"model":"strings","prompt":["a","b"],"stream":true}`,
	} {
		if status, text := postOpenAI(t, s, path, body); status != 400 || !strings.Contains(text, "invalid_request_error") {
			t.Errorf("%s: %d %s", path, status, text)
		}
	}
}

func TestPathsThatOpenAIsAPIDoesNotHaveHere(t *testing.T) {
	core, _ := openaiCore()
	s := start(t, Config{}, core)
	for _, path := range []string{"/responses", "/models/bot/x", "/chat"} {
		if status, text := postOpenAI(t, s, path, `{}`); status != 404 || !strings.HasPrefix(text, `{"error":{"message":"there is nothing at this path`) {
			t.Errorf("%s: %d %s", path, status, text)
		}
	}
}

func TestChatsAsAWholeAndInParts(t *testing.T) {
	core, f := openaiCore("a ", "b")
	s := start(t, Config{}, core)
	status, text := postOpenAI(t, s, "/chat/completions", `{"model":"bot","messages":[],"user":"ann"}`)
	if status != 200 || !strings.Contains(text, `"id":"chatcmpl-7"`) || !strings.Contains(text, `"content":"ab"`) { // its whole
		t.Errorf("%d %s", status, text)
	}
	within(t, f.closed, "the answer was not closed")
	if q := core.queries(); len(q) != 1 || q[0].User != "ann" || string(q[0].Input.Data) != `{"messages":[],"user":"ann"}` {
		t.Errorf("it asked %+v", q)
	}
	core, f = openaiCore("a ", "b")
	s = start(t, Config{}, core)
	status, text = postOpenAI(t, s, "/chat/completions", `{"model":"bot","messages":[],"stream":true}`)
	if status != 200 || strings.Count(text, "data: ") != 4 || !strings.HasSuffix(text, "data: [DONE]\n\n") {
		t.Errorf("%d %s", status, text)
	}
	within(t, f.closed, "the answer was not closed")
}

// Each of several prompts is a query, and has a choice.
func TestSeveralPrompts(t *testing.T) {
	core := newFake()
	core.answer = func(_ context.Context, q *serving.Query) (serving.Prediction, error) {
		if string(q.Input.Data) == "bad" {
			return serving.Prediction{Default: true, Output: []byte("null"), Cause: serving.BadInput, Explanation: "no"}, nil
		}
		out, err := serving.NewOutput(serving.Text("after " + string(q.Input.Data)))
		return serving.Prediction{QueryID: 7, Output: out.JSON, Full: out}, err
	}
	s := start(t, Config{}, core)
	status, text := postOpenAI(t, s, "/completions", `{"model":"strings","prompt":["a","b"]}`)
	if status != 200 || !strings.Contains(text, `"choices":[{"index":0,"text":"after a","finish_reason":"stop","logprobs":null},{"index":1,"text":"after b"`) {
		t.Errorf("%d %s", status, text)
	}
	if status, text = postOpenAI(t, s, "/completions", `{"model":"strings","prompt":["a","bad"]}`); status != 400 || !strings.Contains(text, `"message":"no"`) {
		t.Errorf("%d %s", status, text)
	}
}

// A default that is no text is an error with the status of its cause, also where a stream was asked for.
func TestADefaultOfOpenAIsAPI(t *testing.T) {
	for _, stream := range []string{"true", "false"} {
		core, f := openaiCore()
		f.end = serving.Prediction{Default: true, Output: []byte("null"), Cause: serving.NoReplica, Explanation: "no replica"}
		status, text := postOpenAI(t, start(t, Config{}, core), "/chat/completions", `{"model":"bot","messages":[],"stream":`+stream+`}`)
		if status != 503 || !strings.Contains(text, `"server_error"`) {
			t.Errorf("stream %s: %d %s", stream, status, text)
		}
	}
}

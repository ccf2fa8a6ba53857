package openaiengine

import (
	"fmt"
	"io"
	"net/http"
	"reflect"
	"strings"
	"testing"
)

func TestChatInParts(t *testing.T) {
	chunks := []string{
		`{"id":"c1","object":"chat.completion.chunk","created":1700000001,"model":"qwen","choices":[{"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}],"usage":null}`,
		`{"id":"c1","object":"chat.completion.chunk","created":1700000001,"model":"qwen","choices":[{"index":0,"delta":{"content":"a < "},"finish_reason":null}]}`,
		`{"id":"c1","object":"chat.completion.chunk","created":1700000001,"model":"qwen","choices":[{"index":0,"delta":{"content":"b"},"finish_reason":"stop"}]}`,
		`{"id":"c1","object":"chat.completion.chunk","created":1700000001,"model":"qwen","choices":[],"usage":{"prompt_tokens":9,"completion_tokens":2,"total_tokens":11}}`,
	}
	atEngine(t, testConfig(), stream(chunks...), func(r *rig) {
		a := r.ask(r.Context(), chat, true)
		if !reflect.DeepEqual(a.parts, chunks) {
			r.Errorf("the parts are %q", a.parts)
		}
		r.expect(a, `{"id":"c1","object":"chat.completion","created":1700000001,"model":"qwen",
			"choices":[{"index":0,"message":{"role":"assistant","content":"a < b"},"logprobs":null,"finish_reason":"stop"}],
			"usage":{"prompt_tokens":9,"completion_tokens":2,"total_tokens":11}}`)
		if r.path != chatPath || r.request["model"] != "qwen" || r.request["stream"] != true || fmt.Sprint(r.request["stream_options"]) != "map[include_usage:true]" || r.request["temperature"] != 0.5 {
			r.Errorf("the engine was asked %s %v", r.path, r.request)
		}
		if p, c := r.metric("prompt_tokens_total"), r.metric("completion_tokens_total"); p != 9 || c != 2 {
			r.Errorf("%v and %v tokens are counted", p, c)
		}
	})
}

func TestChoicesAndToolCallsAreMerged(t *testing.T) {
	atEngine(t, testConfig(), stream(
		`{"object":"x","choices":[{"index":1,"delta":{"content":"B","reasoning_content":"t"},"logprobs":{"content":[{"token":"B"}]}}]}`,
		`{"choices":[{"index":0,"delta":{"role":"assistant","tool_calls":[{"index":0,"id":"c","type":"function","function":{"name":"f","arguments":"{\"a\""}}]}}]}`,
		`{"choices":[{"index":1,"delta":{"content":"b","reasoning_content":"u"},"logprobs":{"content":[{"token":"b"}]},"finish_reason":"length"},{"index":0,"delta":{"tool_calls":[{"index":1,"id":"d","function":{"name":"g","arguments":"{}"}}]}}]}`,
		`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"","function":{"name":null,"arguments":":1}"}}]},"finish_reason":"tool_calls"}]}`,
	), func(r *rig) {
		r.expect(r.ask(r.Context(), chat, true), `{"object":"chat.completion","choices":[
			{"index":0,"finish_reason":"tool_calls","message":{"role":"assistant","content":null,"tool_calls":[
				{"id":"c","type":"function","function":{"name":"f","arguments":"{\"a\":1}"}},
				{"id":"d","function":{"name":"g","arguments":"{}"}}]}},
			{"index":1,"finish_reason":"length","message":{"role":"assistant","content":"Bb","reasoning_content":"tu"},"logprobs":{"content":[{"token":"B"},{"token":"b"}]}}]}`)
	})
}

func TestCompletionInParts(t *testing.T) {
	atEngine(t, testConfig(), stream(`{"object":"text_completion","choices":[{"index":0,"text":"a"}]}`, `{"object":"text_completion","choices":[{"index":0,"text":"b","finish_reason":"stop"}]}`), func(r *rig) {
		a := r.ask(r.Context(), `{"prompt": "x", "stream_options": {"continuous_usage_stats": true}}`, true)
		r.expect(a, `{"object":"text_completion","choices":[{"index":0,"text":"ab","finish_reason":"stop"}]}`)
		if r.path != textPath || fmt.Sprint(r.request["stream_options"]) != "map[continuous_usage_stats:true include_usage:true]" {
			r.Errorf("the engine was asked %s %v", r.path, r.request)
		}
	})
}

func TestALargeWholeIsLeftOut(t *testing.T) {
	chunk := fmt.Sprintf(`{"choices":[{"index":0,"delta":{"content":%q}}]}`, strings.Repeat("x", 1000))
	atEngine(t, testConfig(), func(w http.ResponseWriter, _ *http.Request) {
		for range 2000 {
			fmt.Fprintf(w, "data: %s\r\n\r\n", chunk)
		}
		io.WriteString(w, ": bye\n\ndata:{\"usage\":{\"completion_tokens\":2000}}\n\ndata: [DONE]\n\n")
	}, func(r *rig) {
		a := r.ask(r.Context(), chat, true)
		if a.Err != nil || a.Output.DType != 0 || len(a.parts) != 2001 {
			r.Errorf("%d parts, %d bytes, %v", len(a.parts), len(a.Output.Data), a.Err)
		}
		if n := r.metric("completion_tokens_total"); n != 2000 {
			r.Errorf("%v tokens", n)
		}
	})
}

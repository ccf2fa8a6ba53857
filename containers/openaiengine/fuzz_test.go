package openaiengine

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"math"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf8"

	"github.com/topsail-serving/topsail/containers/gocontainer"
	"github.com/topsail-serving/topsail/serving"
)

// FuzzEvents reads what an engine may send: the data do not depend on how the bytes arrive, are within
// bounds, and chunks that are taken make an answer.
func FuzzEvents(f *testing.F) {
	for _, text := range []string{
		"data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"}}]}\n\ndata: [DONE]\n\n",
		"data: {\"choices\":[{\"index\":1,\"delta\":{\"tool_calls\":[{\"index\":0,\"function\":{\"arguments\":\"{\"}}]}}],\"usage\":{\"prompt_tokens\":3}}\r\n\r\n",
		": comment\nevent: error\ndata:{\"error\":{\"message\":\"m\"}}\n\n",
		"data\ndata: a\ndata:b\n\nid: 1\n\nretry: 3",
		"data: " + strings.Repeat("x", 5000) + "\n\n",
		"data: {\"choices\":[null,[],{\"index\":0.5,\"delta\":[1],\"text\":[\"a\"]},{\"index\":\"x\",\"text\":{\"a\":1}}],\"choices\":{\"a\":[1]}}",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		all, err := readEvents(bytes.NewReader(text))
		bit, again := readEvents(iotest.OneByteReader(bytes.NewReader(text)))
		if strings.Join(all, "\x00") != strings.Join(bit, "\x00") || !errors.Is(again, err) {
			t.Fatalf("at once %q (%v), byte by byte %q (%v)", all, err, bit, again)
		}
		var w whole
		for _, data := range all {
			if len(data) > maxEvent {
				t.Fatalf("an event has %d bytes", len(data))
			}
			_ = w.add([]byte(data))
		}
		w.usage()
		for _, path := range []string{chatPath, textPath} {
			if b, err := w.answer(path); err == nil && !json.Valid(b) {
				t.Fatalf("the answer is %q", b)
			}
		}
	})
}

func readEvents(in io.Reader) (all []string, err error) {
	e := newEvents(in, func() {})
	for {
		data, err := e.next()
		if err != nil {
			return all, err
		}
		all = append(all, string(data))
	}
}

func TestEvents(t *testing.T) {
	for text, want := range map[string]string{
		"data: a\n\ndata: b\n\n":             "a|b",
		"data:a\r\ndata: b\r\n\r\n":          "a\nb",
		": c\nevent: x\nid: 1\n\n\ndata: a":  "a",
		"data\ndatax: 1\ndata:  two\n\n":     "\n two",
		"data: " + strings.Repeat("y", 9000): strings.Repeat("y", 9000),
	} {
		if all, err := readEvents(strings.NewReader(text)); strings.Join(all, "|") != want || !errors.Is(err, io.EOF) {
			t.Errorf("%q: %q, %v", text, all, err)
		}
	}
}

// FuzzQuery: what the engine gets of a query is its request, with the model, and streamed as the container wants it.
func FuzzQuery(f *testing.F) {
	for _, text := range []string{
		chat, `{"prompt":["a",1],"stream":true,"stream_options":{"include_usage":false,"x":1}}`, `{"input":"<a>","model":1,"encoding_format":"base64"}`,
		`{"messages":null,"prompt":"x","stream_options":null}`, `{"messages":[],"messages":{},"stream_options":"all"}`, `{"Messages":[]}`, `{"input":[1e400]}`,
	} {
		f.Add(text, "qwen", true)
		f.Add(text, "a\xff\"", false)
	}
	f.Fuzz(func(t *testing.T, text, model string, stream bool) {
		q, err := newQuery(&gocontainer.Query{Inputs: []serving.Value{serving.Text(text)}})
		if err != nil {
			return
		}
		stream = stream && q.path != embeddingsPath
		body, err := q.body(model, stream)
		if err != nil {
			return // of what stream_options are
		}
		var asked, got map[string]any
		if err := errors.Join(json.Unmarshal([]byte(text), &asked), json.Unmarshal(body, &got)); err != nil {
			t.Skip(err) // a number that is none here is passed on
		}
		if asked[map[string]string{chatPath: "messages", textPath: "prompt", embeddingsPath: "input"}[q.path]] == nil && !strings.Contains(text, "null") {
			t.Fatalf("%s goes to %s", text, q.path)
		}
		options, _ := got["stream_options"].(map[string]any)
		if utf8.ValidString(model) && got["model"] != model || stream != (got["stream"] == true) || stream != (options["include_usage"] == true) {
			t.Fatalf("%s became %s", text, body)
		}
		for _, set := range []string{"model", "stream", "stream_options"} {
			delete(asked, set)
			delete(got, set)
		}
		if !reflect.DeepEqual(asked, got) {
			t.Fatalf("%s became %s", text, body)
		}
	})
}

// FuzzGauges: an engine's page has gauges of known names, none of which is no number, whatever else is in it.
func FuzzGauges(f *testing.F) {
	for _, page := range []string{
		"vllm:num_requests_running{engine=\"0\",model_name=\"a}b\"} 3.0\nvllm:num_requests_running{engine=\"1\"} 2.0 1700000000\nvllm:kv_cache_usage_perc 0.5\n",
		"tgi_queue_size 8\r\ntgi_queue_size\t1\ntgi_batch_current_size{}\n{} 1\nsglang:token_usage NaN\nsglang:num_queue_reqs 0x1p3",
		"tgi_queue_size +Inf\ntgi_queue_size -Inf\ntgi_queue_size 1e308\ntgi_queue_size 1e308",
	} {
		f.Add([]byte(page))
	}
	f.Fuzz(func(t *testing.T, page []byte) {
		found := parseGauges(page)
		for name, value := range found {
			if (name != "requests_running" && name != "requests_waiting" && name != "kv_cache_usage") || math.IsNaN(value) {
				t.Fatalf("%s is %v", name, value)
			}
		}
		var more []byte
		for line := range bytes.Lines(page) {
			more = append(append(more, line...), "\n# tgi_queue_size 7\nother 5\n\n"...)
		}
		if again := parseGauges(more); !maps.Equal(found, again) {
			t.Fatalf("beside other lines %v is %v", found, again)
		}
	})
}

package openai

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/gateway/inference"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/test/require"
)

func chatApp() *serving.App { return &serving.App{Name: "bot", InputType: serving.Chat} }

func parse(t *testing.T, kind Kind, body string) *Request {
	t.Helper()
	r, err := Parse(kind, []byte(body))
	require.NoError(t, err)
	return r
}

func output(t *testing.T, v serving.Value) *serving.Output {
	t.Helper()
	out, err := serving.NewOutput(v)
	require.NoError(t, err)
	return out
}

func blob(text string) serving.Value { return serving.Value{DType: serving.JSON, Data: []byte(text)} }

func TestWhatARequestMustHave(t *testing.T) {
	for body, want := range map[string]string{
		``:                              "JSON object",
		`null`:                          "JSON object",
		`[]`:                            "JSON object",
		`{"messages":[]}`:               "model is missing",
		`{"model":1,"messages":[]}`:     "model cannot be read",
		`{"model":"bot"}`:               "messages is missing",
		`{"model":"bot","messages":{}}`: "messages must be an array",
		`{"model":"bot","messages":[],"stream":"yes"}`:                             "stream cannot be read",
		`{"model":"bot","messages":[],"stream_options":[]}`:                        "stream_options cannot be read",
		`{"model":"bot","messages":[],"user":"` + strings.Repeat("x", 1025):        "JSON object",
		`{"model":"bot","messages":[],"user":"` + strings.Repeat("x", 1025) + `"}`: "user has more",
	} {
		var e *Error
		if _, err := Parse(Chat, []byte(body)); !errors.As(err, &e) || !strings.Contains(e.Cause, want) {
			t.Errorf("%.60s: %v", body, err)
		}
	}
}

// What the gateway itself reads does not reach the model, and equal requests have equal inputs.
func TestTheInputOfAChat(t *testing.T) {
	r := parse(t, Chat, `{"stream":true,"model":"bot","user":"ann","messages":[{"role":"user","content":"hi"}],"temperature":0.5,"stream_options":{"include_usage":true}}`)
	same := parse(t, Chat, `{"temperature":0.5,"messages":[{"role":"user","content":"hi"}],"user":"ann","model":"bot"}`)
	a, err := r.Inputs(chatApp(), 1)
	require.NoError(t, err)
	b, _ := same.Inputs(chatApp(), 1)
	const want = `{"messages":[{"role":"user","content":"hi"}],"temperature":0.5,"user":"ann"}`
	if string(a[0].Data) != want || string(b[0].Data) != want || !r.Stream || !r.Usage || r.User != "ann" {
		t.Errorf("%s, %s, %+v", a[0].Data, b[0].Data, r)
	}
	if _, err := r.Inputs(&serving.App{Name: "w", InputType: serving.Doubles}, 1); err == nil {
		t.Error("an app that takes numbers was asked for a chat")
	}
}

func TestInputsOfEmbeddings(t *testing.T) {
	texts, ids := &serving.App{Name: "e", InputType: serving.Strings}, &serving.App{Name: "e", InputType: serving.Ints}
	for body, want := range map[string]struct {
		app *serving.App
		n   int
	}{
		`"one"`: {texts, 1}, `["one","two"]`: {texts, 2}, `[1,2,3]`: {ids, 1}, `[[1],[2,3]]`: {ids, 2},
		`[1]`: {texts, 0}, `[]`: {texts, 0}, `"one"  `: {ids, 0}, `["1","2","3","4"]`: {texts, 0}, `{}`: {texts, 0},
	} {
		in, err := parse(t, Embeddings, `{"model":"e","input":`+body+`}`).Inputs(want.app, 3)
		if len(in) != want.n || (err == nil) != (want.n > 0) {
			t.Errorf("%s: %d inputs, %v", body, len(in), err)
		}
	}
}

// events are the data of the events in a text.
func events(t *testing.T, text []byte) (list []string) {
	t.Helper()
	for event := range strings.SplitSeq(strings.TrimSuffix(string(text), "\n\n"), "\n\n") {
		data, ok := strings.CutPrefix(event, "data: ")
		if !ok {
			t.Errorf("an event %q", event)
		}
		list = append(list, data)
	}
	return list
}

func TestChunksOfAChat(t *testing.T) {
	r := parse(t, Chat, `{"model":"bot","stream":true,"messages":[],"stream_options":{"include_usage":true}}`)
	c := NewChunks(NewAnswer(r, "bot", 7, time.Unix(1, 0)))
	var b []byte
	b = c.Part(b, output(t, serving.Text("42 "))) // which is valid JSON, and a text all the same
	b = c.Part(b, output(t, blob(`{"content":"b","finish_reason":"length"}`)))
	b = c.End(b, &serving.Prediction{Output: []byte(`"42 b"`)}, true)
	got := events(t, b)
	if len(got) != 5 || got[4] != "[DONE]" {
		t.Fatalf("%q", got)
	}
	for i, want := range []string{`"delta":{"content":"42 ","role":"assistant"},"finish_reason":null`, `"delta":{"content":"b"}`, `"delta":{},"finish_reason":"length"`, `"choices":[],"usage":{"prompt_tokens":0,"completion_tokens":2,"total_tokens":2}`} {
		if !strings.Contains(got[i], want) || !strings.Contains(got[i], `"id":"chatcmpl-7","object":"chat.completion.chunk","created":1,"model":"bot"`) {
			t.Errorf("%s without %s", got[i], want)
		}
	}
	if id, ok := QueryID("chatcmpl-7"); !ok || id != 7 {
		t.Errorf("the query of the id is %d", id)
	}
}

// An engine's own chunks are passed on under the app's name, and its usage goes last, if it is wanted.
func TestChunksOfAnEngine(t *testing.T) {
	for _, wanted := range []string{"true", "false"} {
		r := parse(t, Chat, `{"model":"bot","stream":true,"messages":[],"stream_options":{"include_usage":`+wanted+`}}`)
		c := NewChunks(NewAnswer(r, "bot", 7, time.Unix(1, 0)))
		var b []byte
		b = c.Part(b, output(t, blob(`{"id":"x","model":"llama","system_fingerprint":"f","choices":[{"index":0,"delta":{"content":"a"}}]}`)))
		b = c.Part(b, output(t, blob(`{"id":"x","model":"llama","choices":[],"usage":{"prompt_tokens":3,"completion_tokens":1,"total_tokens":4}}`)))
		b = c.End(b, &serving.Prediction{Output: []byte(`{}`)}, true)
		got := events(t, b)
		if !strings.Contains(got[0], `"model":"bot"`) || !strings.Contains(got[0], `"system_fingerprint":"f"`) || strings.Contains(got[0], "llama") {
			t.Errorf("%s", got[0])
		}
		if usage := strings.Contains(string(b), `"usage":{"prompt_tokens":3`); usage != (wanted == "true") || got[len(got)-1] != "[DONE]" {
			t.Errorf("usage wanted: %s; %q", wanted, got)
		}
	}
}

// A whole answer of an engine, as the cache has it, is one chunk.
func TestAWholeAnswerInParts(t *testing.T) {
	r := parse(t, Chat, `{"model":"bot","stream":true,"messages":[]}`)
	c := NewChunks(NewAnswer(r, "bot", 7, time.Unix(1, 0)))
	b := c.Part(nil, output(t, blob(`{"choices":[{"index":0,"message":{"role":"assistant","content":"a"},"finish_reason":"stop"}],"usage":{"total_tokens":4}}`)))
	b = c.End(b, &serving.Prediction{Output: []byte(`{}`)}, true)
	got := events(t, b)
	if len(got) != 2 || !strings.Contains(got[0], `"choices":[{"delta":{"role":"assistant","content":"a"},"finish_reason":"stop","index":0}]`) || strings.Contains(got[0], "usage") {
		t.Errorf("%q", got)
	}
}

func TestAStreamThatIsCut(t *testing.T) {
	r := parse(t, Chat, `{"model":"bot","stream":true,"messages":[]}`)
	c := NewChunks(NewAnswer(r, "bot", 7, time.Unix(1, 0)))
	b := c.Part(nil, output(t, serving.Text("a")))
	b = c.End(b, &serving.Prediction{Default: true, Cause: serving.MissedSLO, Explanation: "late"}, true)
	if got := events(t, b); len(got) != 2 || got[1] != `{"error":{"message":"late","type":"server_error","param":null,"code":"missed_slo"}}` {
		t.Errorf("%q", got)
	}
}

// ranked is an answer of the second model, and second is what is said of it.
func ranked(out *serving.Output) serving.Prediction {
	return serving.Prediction{
		Full: out, Model: serving.ModelID{Model: "small", Version: "1"}, Ranked: true,
		PassedOver: []serving.PassedOver{{ModelID: serving.ModelID{Model: "large", Version: "2"}, Why: serving.NoReplica}},
	}
}

const second = `"topsail":{"default":false,"model":"small:1","passed_over":[{"model":"large:2","why":"no_replica"}]}`

// Chunks say which model of several it was at their end; those that are a model's own, beside the usage.
func TestChunksSayWhichModelItWas(t *testing.T) {
	for whole, text := range map[bool]string{false: `"a"`, true: `{"choices":[{"delta":{"content":"a"}}]}`} {
		r := parse(t, Chat, `{"model":"bot","messages":[],"stream":true,"stream_options":{"include_usage":true}}`)
		c := NewChunks(NewAnswer(r, "bot", 7, time.Unix(1, 0)))
		out := output(t, blob(text))
		p := ranked(out)
		b := c.End(c.Part(nil, out), &p, true)
		if strings.Count(string(b), second) != 1 || !strings.HasSuffix(string(b), "data: [DONE]\n\n") {
			t.Errorf("of the model's own %v: %s", whole, b)
		}
	}
}

func TestWholeAnswers(t *testing.T) {
	r := parse(t, Chat, `{"model":"bot","messages":[]}`)
	a := NewAnswer(r, "bot", 7, time.Unix(1, 0))
	for name, test := range map[string]struct {
		p    serving.Prediction
		want []string
	}{
		"text":          {serving.Prediction{Full: output(t, serving.Text("12"))}, []string{`"message":{"content":"12","role":"assistant"}`, `"finish_reason":"stop"`}},
		"object":        {serving.Prediction{Full: output(t, blob(`{"content":"a","finish_reason":"length","usage":{"total_tokens":9}}`))}, []string{`"content":"a"`, `"finish_reason":"length"`, `"usage":{"total_tokens":9}`}},
		"engine":        {serving.Prediction{Full: output(t, blob(`{"id":"x","model":"llama","choices":[{"message":{"content":"a"}}]}`))}, []string{`"model":"bot"`, `"id":"chatcmpl-7"`, `"message":{"content":"a"}`}},
		"default":       {serving.Prediction{Output: []byte(`"sorry"`), Default: true, Explanation: "late"}, []string{`"content":"sorry"`, `"topsail":{"default":true,"default_explanation":"late"}`}},
		"ranked":        {ranked(output(t, serving.Text("12"))), []string{`"content":"12"`, second}},
		"ranked engine": {ranked(output(t, blob(`{"choices":[{"message":{"content":"a"}}]}`))), []string{`"content":"a"`, second}},
	} {
		b, err := a.Append(nil, &test.p, "", 0)
		if err != nil || !json.Valid(b) {
			t.Errorf("%s: %v, %s", name, err, b)
		}
		for _, want := range test.want {
			if !strings.Contains(string(b), want) {
				t.Errorf("%s: %s without %s", name, b, want)
			}
		}
	}
	var none *inference.NoPrediction
	for _, p := range []serving.Prediction{{Default: true, Output: []byte("null")}, {Default: true, Output: []byte(`""`)}} {
		if err := Fits(chatApp(), &p); !errors.As(err, &none) {
			t.Errorf("the default %s: %v", p.Output, err)
		}
	}
	if err := Fits(&serving.App{DefaultErrors: true}, &serving.Prediction{Default: true, Output: []byte(`"sorry"`)}); err == nil {
		t.Error("an app that wants errors gave its default")
	}
}

func TestTheAnswerToSeveralPrompts(t *testing.T) {
	a := NewAnswer(parse(t, Completion, `{"model":"bot","prompt":["x","y"]}`), "bot", 7, time.Unix(1, 0))
	engine := serving.Prediction{Full: output(t, blob(`{"choices":[{"text":"b"}],"usage":{"prompt_tokens":2,"completion_tokens":1,"total_tokens":3}}`))}
	text := serving.Prediction{Full: output(t, blob(`{"content":"a","finish_reason":"length","usage":{"prompt_tokens":4,"completion_tokens":1,"total_tokens":5}}`))}
	late := serving.Prediction{Output: []byte(`"sorry"`), Default: true, Explanation: "late"}
	for _, test := range []struct {
		ps   []serving.Prediction
		want string
	}{
		{[]serving.Prediction{text, engine}, `"choices":[{"index":0,"text":"a","finish_reason":"length","logprobs":null},{"index":1,"text":"b","finish_reason":"stop","logprobs":null}],` +
			`"usage":{"prompt_tokens":6,"completion_tokens":2,"total_tokens":8}}`},
		{[]serving.Prediction{text, late}, `{"index":1,"text":"sorry","finish_reason":"stop","logprobs":null}],"topsail":{"default":true,"default_explanation":"late"}}`},
	} {
		if b, err := a.AppendAll(nil, test.ps); err != nil || !strings.HasSuffix(string(b), test.want) || !strings.HasPrefix(string(b), `{"id":"cmpl-7","object":"text_completion"`) {
			t.Errorf("%v, %s", err, b)
		}
	}
}

func TestEmbeddings(t *testing.T) {
	vector := serving.Value{DType: serving.Float32, Shape: []int{2}, Data: []byte{0, 0, 128, 63, 0, 0, 0, 192}}
	for format, want := range map[string]string{"float": `[1,-2]`, "base64": `"` + base64.StdEncoding.EncodeToString(vector.Data) + `"`} {
		r := parse(t, Embeddings, `{"model":"e","input":"x","encoding_format":"`+format+`"}`)
		for _, v := range []serving.Value{vector, blob("[1,-2]")} {
			b, err := NewAnswer(r, "e", 7, time.Unix(1, 0)).AppendEmbeddings(nil, []serving.Prediction{{Full: output(t, v)}})
			if err != nil || !strings.Contains(string(b), `"embedding":`+want) {
				t.Errorf("%s: %v, %s", format, err, b)
			}
		}
		for _, engine := range []string{`[1,-2]`, want} {
			b, err := NewAnswer(r, "e", 7, time.Unix(1, 0)).AppendEmbeddings(nil, []serving.Prediction{{Full: output(t, blob(`{"data":[{"index":0,"embedding":`+engine+`}]}`))}})
			if err != nil || !strings.Contains(string(b), `"embedding":`+want) {
				t.Errorf("%s of an engine: %v, %s", format, err, b)
			}
		}
		if _, err := NewAnswer(r, "e", 7, time.Unix(1, 0)).AppendEmbeddings(nil, []serving.Prediction{{Full: output(t, serving.Text("no vector"))}}); err == nil {
			t.Error("a text was taken for a vector")
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(uint8(0), `{"model":"bot","messages":[{"role":"user","content":"hi"}],"stream":true}`)
	f.Add(uint8(1), `{"model":"bot","prompt":["a","b"]}`)
	f.Add(uint8(2), `{"model":"bot","input":[[1,2],[3]],"encoding_format":"base64"}`)
	f.Fuzz(func(t *testing.T, kind uint8, body string) {
		r, err := Parse(Kind(kind%3), []byte(body))
		if err != nil {
			return
		}
		for _, in := range []serving.InputType{serving.Chat, serving.Strings, serving.Ints, serving.Doubles} {
			inputs, err := r.Inputs(&serving.App{Name: "a", InputType: in}, 8)
			if err == nil && (len(inputs) == 0 || len(inputs) > 8) {
				t.Errorf("%d inputs", len(inputs))
			}
		}
	})
}

// FuzzOutputs: whatever a model says, as a whole or in parts, answers and events are JSON with this answer's id and the app as
// the model, and a stream ends in order.
func FuzzOutputs(f *testing.F) {
	f.Add(uint8(0), `{"choices":[{"index":0,"message":{"role":"assistant","content":"a"},"finish_reason":"stop"}],"usage":{"total_tokens":4}}`)
	f.Add(uint8(4), `{"id":"x","model":"llama","choices":[{"index":0,"delta":{"content":"a"}},{"text":"b"}],"object":null}`)
	f.Add(uint8(3), `{"choices":[],"usage":{"prompt_tokens":3}}`)
	f.Add(uint8(1), `{"content":"b","finish_reason":"length","usage":null}`)
	f.Add(uint8(2), `{"data":[{"embedding":[1,-2]},{"embedding":"x"}],"message":"message"}`)
	f.Add(uint8(5), `[1e39,"a"]`)
	f.Add(uint8(0), `{"choices":{"a":1},"message":[],"content":1}`)
	f.Add(uint8(0), `{"choices":[null,{"message":null}],"content":"a"}`)
	f.Fuzz(func(t *testing.T, how uint8, said string) {
		out, err := serving.NewOutput(blob(said))
		if err != nil {
			return
		}
		kind, wanted := Kind(how%3), how%2 == 0
		r := &Request{Kind: kind, Model: "bot", Usage: wanted, Base64: wanted}
		p := serving.Prediction{QueryID: 7, Output: out.JSON, Full: out, Ranked: wanted}
		expect := func(text []byte) {
			var e struct {
				ID, Object, Model string
				Created           int64
			}
			if err := json.Unmarshal(text, &e); err != nil || e.Model != "bot" || e.Created != 1 || e.Object == "" || kind != Embeddings && e.ID != kind.prefix()+"7" {
				t.Fatalf("%s became %s: %v", said, text, err)
			}
		}
		a := NewAnswer(r, "bot", 7, time.Unix(1, 0))
		if kind == Embeddings {
			if b, err := a.AppendEmbeddings(nil, []serving.Prediction{p}); err == nil && !json.Valid(b) {
				t.Fatalf("%s became %s", said, b)
			}
			return
		}
		b, err := a.Append(nil, &p, "", 1)
		if err != nil {
			t.Fatalf("%s is no answer: %v", said, err)
		}
		expect(b)
		if b, err = a.AppendAll(nil, []serving.Prediction{p, p}); err != nil {
			t.Fatalf("%s is no answer: %v", said, err)
		}
		expect(b)
		c := NewChunks(a)
		got := events(t, c.End(c.Part(c.Part(nil, out), out), &p, true))
		for i, event := range got {
			if last := i == len(got)-1; last != (event == "[DONE]") || strings.Contains(event, "\n") {
				t.Fatalf("event %d of %s is %q", i, said, event)
			} else if !last {
				expect([]byte(event))
			}
		}
		_ = Text(out)
	})
}

//go:build system

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/test/require"
)

// TestEngine asks an inference engine through `topsail engine openai`, as docs/engines.md says that it is run.
func TestEngine(t *testing.T) {
	e := newEngine(t)
	in := start(t, t.TempDir(), appConfig("chat", "chat", "null", 5*time.Second, "qwen")+"cache = { off = true }\n"+
		modelConfig("qwen", "chat", quoted(programs.topsail, "engine", "openai", "--url", "http://"+e.addr), "")).ready()
	t.Run("in parts", func(t *testing.T) { in.answersInParts(t, e) })
	t.Run("the engine is down", func(t *testing.T) { in.losesEngine(t, e) })
}

// chat asks for a chat about one, two and 3, with more members.
func (in *instance) chat(ctx context.Context, more string) (*http.Response, error) {
	body := `{"model": "chat", "messages": [{"role": "user", "content": "one two 3"}]` + more + `}`
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+in.gateway+"/openai/v1/chat/completions", strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	return http.DefaultClient.Do(r)
}

// chunk is a chunk of an answer, and the whole.
type chunk struct {
	Model   string
	Choices []struct {
		Delta, Message struct{ Content string }
		FinishReason   string `json:"finish_reason"`
	}
	Usage *struct {
		Completion int `json:"completion_tokens"`
	}
	Error *struct{ Message, Type string }
}

// whole asks for an answer that is not in parts, or for an error.
func (in *instance) whole(t *testing.T, more string) (status int, c chunk) {
	t.Helper()
	response, err := in.chat(t.Context(), more)
	require.NoError(t, err)
	defer response.Body.Close()
	require.NoError(t, json.NewDecoder(response.Body).Decode(&c))
	return response.StatusCode, c
}

// chunks is an answer in parts.
type chunks struct {
	*testing.T
	lines *bufio.Scanner
}

func (in *instance) inParts(t *testing.T) chunks {
	t.Helper()
	response, err := in.chat(t.Context(), `, "stream": true, "stream_options": {"include_usage": true}`)
	require.NoError(t, err)
	t.Cleanup(func() { response.Body.Close() })
	return chunks{t, bufio.NewScanner(response.Body)}
}

// next is the next chunk, until there are no more.
func (all chunks) next() (c chunk, more bool) {
	all.Helper()
	for all.lines.Scan() {
		switch data, ok := strings.CutPrefix(all.lines.Text(), "data: "); {
		case data == "[DONE]":
			return c, false
		case ok:
			if err := json.Unmarshal([]byte(data), &c); err != nil {
				all.Fatalf("%v in %s", err, data)
			}
			return c, true
		}
	}
	all.Fatalf("the stream ended before [DONE]: %v", all.lines.Err())
	return c, false
}

// first reads up to the first text.
func (all chunks) first() string {
	all.Helper()
	for {
		c, more := all.next()
		if !more {
			all.Fatal("the answer ended without a text")
		}
		if len(c.Choices) > 0 && c.Choices[0].Delta.Content != "" {
			return c.Choices[0].Delta.Content
		}
	}
}

func (in *instance) answersInParts(t *testing.T, e *fakeEngine) {
	all := in.inParts(t)
	text, used := all.first(), 0 // before the engine goes on
	in.until("the engine's load", func() bool { return in.total("requests_running{") == 1 })
	e.goOn <- struct{}{}
	for c, more := all.next(); more; c, more = all.next() {
		for _, choice := range c.Choices {
			text += choice.Delta.Content
		}
		if c.Usage != nil {
			used = c.Usage.Completion
		}
	}
	if text != "one two 3 " || used != 3 {
		t.Errorf("%q of %d tokens", text, used)
	}
	in.until("the tokens of the answer, and no load", func() bool {
		return in.total("requests_running{") == 0 && in.total("completion_tokens_total{") == 3 && in.total("prompt_tokens_total{") == 5
	})
}

func (in *instance) losesEngine(t *testing.T, e *fakeEngine) {
	all := in.inParts(t)
	all.first()
	e.stop()
	if c, _ := all.next(); c.Error == nil || !strings.Contains(c.Error.Message, "before it was complete") {
		t.Errorf("an answer that the engine cut goes on with %+v", c)
	}
	status, c := in.whole(t, "")
	if status != http.StatusInternalServerError || c.Error == nil || !strings.Contains(c.Error.Message, "cannot be reached") {
		t.Errorf("an engine that has just gone is %d %+v", status, c.Error)
	}
	in.until("the end of readiness", func() bool {
		status, c = in.whole(t, `, "stream": true`)
		return status == http.StatusServiceUnavailable && c.Error != nil && c.Error.Type == "server_error"
	})
	close(e.goOn) // it does not wait any more
	e.start()
	in.until("an answer", func() bool {
		status, c = in.whole(t, "")
		return status == http.StatusOK && c.Choices[0].Message.Content == "one two 3 "
	})
}

// TestAdapters has an engine load LoRA adapters as the versions of models that it hosts, by the names that clients give.
func TestAdapters(t *testing.T) {
	e := newEngine(t)
	in := start(t, t.TempDir(), fmt.Sprintf(`
[[model]]
name = "engine"
version = "1"
host.memory_mb = 64
command = %s
`, quoted(programs.topsail, "engine", "openai", "--url", "http://"+e.addr)))
	o := operate(t, in)
	in.gateway = strings.TrimPrefix(o.setting("TOPSAIL_URL"), "http://")
	for name, manifest := range map[string]string{
		"base":  `{"runtime": "lora", "input_type": "chat", "options": {"adapter": "qwen"}}`,
		"chat":  `{"runtime": "lora", "input_type": "chat", "entry": "weights"}`,
		"stray": `{"runtime": "lora", "input_type": "chat", "options": {"adapter": "rude"}}`,
	} {
		file := pack(t, manifest, map[string][]byte{"weights/adapter_model.safetensors": []byte("123")})
		o.do("deploy", name, "--bundle", file, "--hosted-by", "engine", "--app", name, "--slo", "5s", "--default", "null", "--wait", "0")
	}
	o.refused(1, "set hosted_by", "deploy", "alone", "--bundle", pack(t, `{"runtime": "lora", "input_type": "chat", "options": {"adapter": "qwen"}}`, nil))
	e.goOn <- struct{}{}
	all := in.inParts(t)
	if got := all.first(); got != "one " {
		t.Errorf("the adapter says %q first", got)
	}
	if asked := *e.asked.Load(); asked["model"] != "chat:1" {
		t.Errorf("the engine was asked for %v", asked["model"])
	}
	if path, loaded := e.adapted.Load("chat:1"); !loaded || !strings.HasSuffix(fmt.Sprint(path), "/weights") {
		t.Errorf("the adapter was loaded from %v", path)
	}
	e.goOn <- struct{}{}
	if got := o.do("predict", "base", "--stream", `{"messages": [{"role": "user", "content": "hi"}]}`); !strings.Contains(got, "hi ") {
		t.Errorf("the base answers %s", got)
	}
	if asked := *e.asked.Load(); asked["model"] != "qwen" {
		t.Errorf("the engine was asked for %v", asked["model"])
	}
	if got := o.do("predict", "stray", `{"messages": [{"role": "user", "content": "hi"}]}`); got != "null\n" {
		t.Errorf("what the engine does not have answers %s", got)
	}
	if err := in.stop(os.Interrupt); err != nil {
		t.Error(err)
	}
	if _, loaded := e.adapted.Load("chat:1"); loaded {
		t.Error("the engine keeps the adapter when its host has ended")
	}
}

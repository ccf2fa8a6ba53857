//go:build edge

package edge

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
)

// refused is a request, and what becomes of it.
type refused struct {
	name, request string
	status        int
	says          string // part of the error
}

// each sends requests one after the other, and holds their answers to the form of a protocol.
func each(name string, list []refused, form func(body string) error) attack {
	return attack{
		name: fmt.Sprintf("%d %s", len(list), name),
		run: func(t *testing.T, s *server) {
			for _, one := range list {
				time.Sleep(20 * time.Millisecond) // so that the steady client sees some of it
				status, _, body, err := s.one(s.gateway, one.request)
				if err == nil && status != 200 {
					err = form(body)
				}
				if status != one.status || err != nil || !strings.Contains(body, one.says) {
					t.Errorf("%s: %d %.300s %v, want %d %q", one.name, status, body, err, one.status, one.says)
				}
			}
			if strings.Contains(s.output(), "panic") {
				t.Error("something panicked")
			}
		},
	}
}

// openAIForm says what an error lacks that OpenAI's clients read.
func openAIForm(body string) error {
	var said struct {
		Error *struct {
			Message, Type string
			Param, Code   *string
		}
	}
	if err := json.Unmarshal([]byte(body), &said); err != nil || said.Error == nil || said.Error.Message == "" || said.Error.Type == "" {
		return fmt.Errorf("it is no error of OpenAI's API: %w", err)
	}
	return nil
}

// malformedOpenAI is requests to OpenAI's API that are wrong, or strange.
func malformedOpenAI() attack {
	const hi = `"messages":[{"role":"user","content":"hi"}]`
	list := []refused{}
	add := func(name, path, body string, status int, says string, header ...string) {
		list = append(list, refused{name, post("/openai/v1"+path, body, header...), status, says})
	}
	for name, body := range map[string]string{
		"nothing": ``, "a word": `x`, "null": `null`, "an array": `[]`, "a text": `"x"`, "two values": `{} {}`, "half a body": `{"model":"chat","messages":[`,
		"half a text": `{"model":"chat","messages":[{"content":"` + "\xff", "deep": `{"model":"chat","x":` + strings.Repeat("[", 1_000_000), "deep and closed": `{"model":"chat",` + hi + `,"x":` + strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000) + `}`,
	} {
		add(name, "/chat/completions", body, 400, "invalid_request_error")
	}
	for body, says := range map[string]string{
		`{` + hi + `}`: `"param":"model"`, `{"model":"",` + hi + `}`: `"param":"model"`, `{"model":7,` + hi + `}`: `"param":"model"`, `{"model":["chat"],` + hi + `}`: `"param":"model"`,
		`{"model":"chat"}`: `"param":"messages"`, `{"model":"chat","messages":null}`: `"param":"messages"`, `{"model":"chat","messages":"hi"}`: `"param":"messages"`, `{"model":"chat","messages":{}}`: `"param":"messages"`,
		`{"model":"chat","stream":"yes",` + hi + `}`: `"param":"stream"`, `{"model":"chat","stream":1,` + hi + `}`: `"param":"stream"`, `{"model":"chat","stream_options":7,` + hi + `}`: `"param":"stream_options"`,
		`{"model":"chat","user":{},` + hi + `}`: `"param":"user"`, `{"model":"chat","user":"` + strings.Repeat("u", 2_000) + `",` + hi + `}`: `"param":"user"`, `{"model":"target",` + hi + `}`: `"param":"model"`,
	} {
		add(says+" of "+body[:min(60, len(body))], "/chat/completions", body, 400, says)
	}
	add("no such model", "/chat/completions", `{"model":"nobody",`+hi+`}`, 404, "model_not_found")
	add("a model with a strange name", "/chat/completions", `{"model":"../../etc/passwd",`+hi+`}`, 404, "model_not_found")
	add("a model with a long name", "/chat/completions", `{"model":"`+strings.Repeat("m", 1_000_000)+`",`+hi+`}`, 404, "model_not_found")
	add("no such version", "/chat/completions", `{"model":"chat:7",`+hi+`}`, 404, "")
	add("no prompt", "/completions", `{"model":"chat"}`, 400, `"param":"prompt"`)
	add("a prompt for a vector", "/completions", `{"model":"target","prompt":"x"}`, 400, `"param":"prompt"`)
	add("no input", "/embeddings", `{"model":"chat","input":null}`, 400, `"param":"input"`)
	add("a format that is a number", "/embeddings", `{"model":"chat","input":"x","encoding_format":7}`, 400, `"param":"encoding_format"`)
	add("a bomb", "/chat/completions", gzipped(`{"model":"chat","messages":[`+strings.Repeat(" ", 17<<20)+`]}`), 413, "invalid_request_error", "Content-Encoding: gzip")
	add("no gzip", "/chat/completions", "x", 400, "Content-Encoding", "Content-Encoding: gzip")
	add("an encoding of its own", "/chat/completions", "x", 415, "Content-Encoding", "Content-Encoding: br")
	add("a timeout that is none", "/chat/completions", `{"model":"chat",`+hi+`}`, 400, "X-Timeout-Ms", "X-Timeout-Ms: -1")
	message := `{"role":"user","content":"hi"}`
	add("10,000 messages", "/chat/completions", `{"model":"chat","messages":[`+strings.Repeat(message+",", 9_999)+message+`]}`, 200, "yes")
	add("10,000 unknown members", "/chat/completions", `{"model":"chat",`+numbered(10_000)+hi+`}`, 200, "yes")
	add("huge numbers", "/chat/completions", `{"model":"chat",`+hi+`,"max_tokens":`+strings.Repeat("9", 10_000)+`,"temperature":1e999,"n":-1}`, 200, "yes")
	add("members twice", "/chat/completions", `{"model":"nobody","model":"chat",`+hi+`,`+hi+`}`, 200, "yes")
	return each("wrong and strange requests to OpenAI's API", list, openAIForm)
}

// numbered is so many members, each with a comma behind it.
func numbered(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `"member-%d":{},`, i)
	}
	return b.String()
}

package openaiengine

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
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

package openaiengine

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/topsail-serving/topsail/containers/upstream"
)

// maxWhole is the size above which an answer in parts is not collected.
const maxWhole = 1 << 20

// whole collects the chunks of an answer into what the engine would have answered without parts.
type whole struct {
	chunk int // the size of the one that is taken in
	size  int // about that of what was joined
	top   any
}

// text is a text that grows.
type text struct{ b []byte }

func (t *text) MarshalJSON() ([]byte, error) { return json.Marshal(string(t.b)) }

// grows says whether the text of a member comes in pieces. Other texts are repeated.
func grows(name string) bool {
	switch name {
	case "content", "text", "reasoning_content", "reasoning", "refusal", "arguments":
		return true
	}
	return false
}

// add takes in a chunk. It returns the error that the engine reports in its place.
func (w *whole) add(data []byte) error {
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	var chunk map[string]any
	if err := decoder.Decode(&chunk); err != nil {
		return fmt.Errorf("the engine sent a chunk that is not a JSON object: %w", err)
	}
	if decoder.More() {
		return errors.New("the engine sent a chunk with more than a JSON object")
	}
	if failure := chunk["error"]; failure != nil {
		status := number(failure, "code")
		return upstream.Refused(status, engineError(data, status))
	}
	w.chunk = len(data)
	if w.size > maxWhole {
		w.top = join(w, "", w.top, map[string]any{"usage": chunk["usage"]}) // for the metrics
		return nil
	}
	w.top = join(w, "", w.top, chunk)
	return nil
}

// join is what the values of a member make together.
func join(w *whole, name string, before, next any) any {
	switch next := next.(type) {
	case nil:
		return before
	case string:
		return w.joinText(name, before, next)
	case []any:
		if before, ok := before.([]any); ok {
			return w.joinList(name, before, next)
		}
		return w.joinList(name, nil, next)
	case map[string]any:
		before, _ := before.(map[string]any)
		if before == nil {
			before = make(map[string]any, len(next))
		}
		for name, value := range next {
			before[name] = join(w, name, before[name], value)
		}
		return before
	}
	return next
}

func (w *whole) joinText(name string, before any, next string) any {
	if !grows(name) {
		if old, ok := before.(string); ok && next == "" {
			return old
		}
		return next
	}
	w.size += len(next)
	t, ok := before.(*text)
	if !ok {
		t = new(text)
	}
	t.b = append(t.b, next...)
	return t
}

// joinList merges choices and calls of tools by their index, and appends what else is in lists.
func (w *whole) joinList(name string, before, next []any) any {
	if name != "choices" && name != "tool_calls" {
		w.size += w.chunk
		return append(before, next...)
	}
	for _, value := range next {
		i := slices.IndexFunc(before, func(old any) bool { return number(old, "index") == number(value, "index") })
		if i < 0 {
			w.size += 100
			before, i = append(before, nil), len(before)
		}
		before[i] = join(w, "", before[i], value)
	}
	return before
}

// number is a member of an object, or 0.
func number(of any, name string) int {
	members, _ := of.(map[string]any)
	n, _ := members[name].(json.Number)
	i, _ := n.Int64() // 0 where there is none
	return int(i)
}

// usage is the numbers of tokens that the engine counted.
func (w *whole) usage() (prompt, completion int) {
	members, _ := w.top.(map[string]any)
	return number(members["usage"], "prompt_tokens"), number(members["usage"], "completion_tokens")
}

// answer is the whole answer of the path, or nothing where it is not worth collecting.
func (w *whole) answer(path string) ([]byte, error) {
	top, _ := w.top.(map[string]any)
	if top == nil {
		return nil, errors.New("the engine answered without any chunk")
	}
	if w.size > maxWhole {
		return nil, nil
	}
	choices, _ := top["choices"].([]any)
	slices.SortStableFunc(choices, func(a, b any) int { return cmp.Compare(number(a, "index"), number(b, "index")) })
	top["object"] = "text_completion"
	if path == chatPath {
		top["object"] = "chat.completion"
		for _, c := range choices {
			if c, ok := c.(map[string]any); ok {
				c["message"] = message(c["delta"])
				delete(c, "delta")
			}
		}
	}
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(top)
	if b.Len() > maxWhole {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

// message is the message that deltas made.
func message(delta any) map[string]any {
	m, _ := delta.(map[string]any)
	if m == nil {
		m = map[string]any{}
	}
	if m["role"] == nil {
		m["role"] = "assistant"
	}
	if m["content"] == nil {
		m["content"] = nil // which is there even so
	}
	calls, _ := m["tool_calls"].([]any)
	for _, c := range calls {
		if c, ok := c.(map[string]any); ok {
			delete(c, "index")
		}
	}
	return m
}

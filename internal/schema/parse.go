package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// maxDepth bounds how deep documents are nested.
const maxDepth = 32

// Problem is what is wrong with one value. Its text continues a sentence that begins with the
// path.
type Problem struct {
	Path string // such as models[2].batch.max_size; empty: the whole document
	Text string
}

func (p Problem) Error() string {
	if p.Path == "" {
		return "the document " + p.Text
	}
	return fmt.Sprintf("%.200q %s", p.Path, p.Text)
}

// ParseJSON reads one JSON value: objects as map[string]any, lists as []any, numbers as
// json.Number. It fails with a Problem, also where an object has a name twice.
func ParseJSON(text []byte) (any, error) {
	text = bytes.TrimPrefix(text, []byte("\ufeff"))
	switch {
	case !utf8.Valid(text):
		return nil, Problem{Text: "must be UTF-8"}
	case len(bytes.TrimSpace(text)) == 0:
		return nil, Problem{Text: "is empty; send a JSON object"}
	}
	var raw json.RawMessage
	if err := json.Unmarshal(text, &raw); err != nil {
		if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
			return nil, Problem{Text: fmt.Sprintf("is not valid JSON: at byte %d: %v", syntax.Offset, err)}
		}
		return nil, Problem{Text: fmt.Sprintf("is not valid JSON: %v", err)}
	}
	p := parser{json.NewDecoder(bytes.NewReader(text))}
	p.UseNumber()
	return p.value("", 0)
}

// parser reads text that is well-formed.
type parser struct{ *json.Decoder }

func (p parser) value(path string, depth int) (any, error) {
	if depth > maxDepth {
		return nil, Problem{path, fmt.Sprintf("is nested too deep: %d levels are allowed", maxDepth)}
	}
	token, err := p.Token()
	if err != nil {
		return nil, Problem{path, fmt.Sprintf("is not valid JSON: %v", err)}
	}
	switch token {
	case json.Delim('{'):
		return p.object(path, depth)
	case json.Delim('['):
		return p.list(path, depth)
	}
	return token, nil
}

func (p parser) object(path string, depth int) (any, error) {
	object := map[string]any{}
	for p.More() {
		token, err := p.Token()
		name, ok := token.(string)
		if err != nil || !ok {
			return nil, Problem{path, "is not valid JSON"}
		}
		at := join(path, name)
		if _, twice := object[name]; twice {
			return nil, Problem{at, "is given twice"}
		}
		if object[name], err = p.value(at, depth+1); err != nil {
			return nil, err
		}
	}
	_, err := p.Token()
	return object, err
}

func (p parser) list(path string, depth int) (any, error) {
	list := []any{}
	for p.More() {
		v, err := p.value(element(path, len(list)), depth+1)
		if err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	_, err := p.Token()
	return list, err
}

func join(path, name string) string { return strings.TrimPrefix(path+"."+name, ".") }

func element(path string, i int) string { return fmt.Sprintf("%s[%d]", path, i) }

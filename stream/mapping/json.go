package mapping

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"
)

// maxDepth bounds how deep values may be nested.
const maxDepth = 64

var (
	errNotUTF8 = errors.New("it is not UTF-8")
	errTooDeep = fmt.Errorf("it is nested deeper than %d levels", maxDepth)
)

// ParseJSON decodes JSON into a tree. Its numbers are as they are written.
func ParseJSON(text []byte) (any, error) {
	switch {
	case !utf8.Valid(text):
		return nil, errNotUTF8
	case depthOf(text) > maxDepth:
		return nil, errTooDeep
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var tree any
	if err := d.Decode(&tree); err != nil {
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("there is something behind the JSON")
	}
	return tree, nil
}

// depthOf is how deep a text of JSON is nested.
func depthOf(text []byte) (deepest int) {
	depth, quoted := 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			depth++
			deepest = max(deepest, depth)
		case c == '}' || c == ']':
			depth--
		}
	}
	return deepest
}

// appendJSON appends a tree as JSON: what JSON has no notation for as text.
func appendJSON(b []byte, tree any) ([]byte, error) {
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	if err := e.Encode(plain(tree)); err != nil {
		return b, err
	}
	return append(b, bytes.TrimSuffix(text.Bytes(), []byte{'\n'})...), nil
}

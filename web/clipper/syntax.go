package clipper

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"unicode/utf8"
)

const space = " \t\r\n" // between the tokens of JSON

// checkSyntax says where body stops being JSON, or nil, as Clipper's parser does.
func checkSyntax(body []byte) error {
	if len(bytes.TrimLeft(body, space)) == 0 {
		return syntaxError("The document is empty.", len(body))
	}
	var whole json.RawMessage
	err := json.Unmarshal(body, &whole)
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		offset := int(syntax.Offset)
		if !strings.HasPrefix(syntax.Error(), "unexpected end") {
			offset-- // it counts what was read, the wrong byte included
		}
		return syntaxError(explain(syntax), offset)
	}
	if err == nil && !utf8.Valid(body) {
		return syntaxError("Invalid encoding in string.", len(body))
	}
	return err
}

func syntaxError(text string, offset int) error {
	return sentence("JSON parse error: %s (offset %d)\n", text, offset)
}

// explain says in Clipper's words what is wrong.
func explain(err *json.SyntaxError) string {
	for _, say := range []struct{ of, text string }{
		{"after top-level value", "The document root must not be followed by other values."},
		{"looking for beginning of object key", "Missing a name for object member."},
		{"after object key:value pair", "Missing a comma or } after an object member."},
		{"after object key", "Missing a colon after a name of object member."},
		{"after array element", "Missing a comma or ] after an array element."},
		{"in string escape code", "Invalid escape character in string."},
		{"in \\u hexadecimal", "Incorrect hex digit after \\u escape in string."},
		{"in string literal", "Invalid encoding in string."},
	} {
		if strings.Contains(err.Error(), say.of) {
			return say.text
		}
	}
	return "Invalid value."
}

package codec

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/topsail-serving/topsail/serving"
)

// ErrorClass is what stands as "error" beside the cause of an Error.
const ErrorClass = "Json error"

// Error says why a body was refused.
type Error struct {
	Cause  string // for the client: where in the body, what was expected, and what came
	at     int    // offset of the value that is wrong, or of where the syntax breaks
	detail string // what is wrong there
	syntax bool   // the body is not JSON; else it is JSON with the wrong content
}

func (e *Error) Error() string { return e.Cause }

// contentError is for a value that is not what its key asks for, at byte offset at.
func contentError(at int, format string, args ...any) error {
	return &Error{at: at, detail: fmt.Sprintf(format, args...)}
}

// syntaxError is for a body that is not JSON, from byte offset on.
func syntaxError(offset int, text string) error {
	return &Error{at: offset, detail: text, syntax: true}
}

// refused finishes the error in which reading the body ended. A body that is not JSON gets this
// error, even if wrong content came before the syntax error. The place is looked for only now, so
// that good bodies pay nothing for it.
func refused(body []byte, err error) error {
	e, _ := errors.AsType[*Error](err) // there is no other
	if !e.syntax {
		if syntax, broken := errors.AsType[*Error](checkSyntax(body)); broken {
			e = syntax
		}
	}
	switch {
	case e.syntax && e.detail == emptyDocument:
		e.Cause = `the body is empty: send JSON, such as {"input": [1.5, 2]}`
	case e.syntax && e.at <= 1 && otherFormat(body) != "":
		e.Cause = "the body is not JSON: it " + otherFormat(body)
	case e.syntax:
		e.Cause = fmt.Sprintf("the body is not JSON: %s%s, at byte %d", strings.ToLower(e.detail[:1]), strings.TrimSuffix(e.detail[1:], "."), e.at)
		if notFinite.Match(body[e.at:]) {
			e.Cause += ", as JSON has neither NaN nor Infinity"
		}
	default:
		e.Cause = placeOf(body, e.at) + " " + e.detail
	}
	return e
}

// notFinite is how programs write NaN and infinity.
var notFinite = regexp.MustCompile(`^[-+]?(?i:nan|inf)`)

// otherFormat says what a body is that cannot even begin as JSON, and what to do; empty if that is not known.
func otherFormat(body []byte) string {
	switch {
	case bytes.HasPrefix(body, []byte{0x1f, 0x8b}):
		return "is compressed by gzip: send the header Content-Encoding: gzip with it"
	case bytes.HasPrefix(body, []byte{0xff, 0xfe}), bytes.HasPrefix(body, []byte{0xfe, 0xff}), bytes.HasPrefix(body, []byte{'{', 0}), bytes.HasPrefix(body, []byte{0, '{'}):
		return "is UTF-16: send UTF-8"
	case body[0] == 0x78 && len(body) > 1 && (body[1] == 0x01 || body[1] == 0x9c || body[1] == 0xda):
		return "is compressed by deflate: send the header Content-Encoding: deflate with it"
	case body[0] < '\t' || body[0] >= 0x80:
		return "is not text: send JSON, and bytes in it as base64"
	case formField.Match(body):
		return `is a form: send JSON, such as {"input": [1.5, 2]}; curl does with -d '{"input": …}'`
	}
	return ""
}

// formField is how a form begins, with its fields in a line or in parts.
var formField = regexp.MustCompile(`^(?:[A-Za-z_][A-Za-z0-9_]*(?:%5B%5D|\[\])?=|--[-A-Za-z0-9]{10,}\r\n)`)

const emptyDocument = "The document is empty."

// mustBe is for a value of the wrong type, which is at i.
func (p *parser) mustBe(what string) error {
	kind := map[string]string{"Object": "an object", "Array": "an array", "String": "a string", "True": "true", "False": "false", "Null": "null"}[p.kind()]
	if kind == "" {
		kind = "a number"
	}
	return contentError(p.i, "must be %s, and is %s", what, kind)
}

// inputName says what an input of type t is.
func inputName(t serving.InputType) string {
	switch t {
	case serving.Ints:
		return "an array of whole numbers, such as [1, 2]"
	case serving.Strings:
		return "a string"
	case serving.Chat:
		return `an object such as {"messages": [{"role": "user", "content": "Hello"}]}`
	case serving.Bytes:
		return "a string of bytes in base64"
	}
	return "an array of numbers, such as [1.5, 2]"
}

package codec

import (
	"fmt"

	"topsail/serving"
)

// ErrorClass is what stands as "error" beside the cause of an Error.
const ErrorClass = "Json error"

// schema is Clipper's, to the letter.
const schema = "\n  {\n   \"input\" := [double] | [int] | [string] | [byte] | [float],\n  }\n"

// Error says why a body was refused, in Clipper's sentences where it has one.
type Error struct {
	Cause  string // for the client
	syntax bool   // the body is not JSON; else it is JSON with the wrong content
}

func (e *Error) Error() string { return e.Cause }

func wrapped(detail string) *Error {
	return &Error{Cause: "Error parsing JSON: " + detail + ". Expected JSON schema: " + schema}
}

// contentError is for a value that is not what its key asks for.
func contentError(format string, args ...any) error {
	return wrapped(fmt.Sprintf(format, args...))
}

// syntaxError is for a body that is not JSON, from byte offset on.
func syntaxError(offset int, text string) error {
	e := wrapped(fmt.Sprintf("JSON parse error: %s (offset %d)\n", text, offset))
	e.syntax = true
	return e
}

func errNotObject() error { return &Error{Cause: "JSON schema invalid"} }

// mismatch is for a key whose whole value has the wrong type.
func mismatch(key, expected, found string) error {
	return contentError("Type mismatch! JSON key %s expected type %sbut found type %s", key, expected, found)
}

// wrongElement is for an element of the wrong type; hint may be empty.
func wrongElement(found, expected, hint string) error {
	return contentError("Array input of type %s is not of type %s%s", found, expected, hint)
}

// elementName is Clipper's word for one element of an input of type t.
func elementName(t serving.InputType) string {
	switch t {
	case serving.Ints:
		return "int"
	case serving.Floats:
		return "float"
	}
	return "double"
}

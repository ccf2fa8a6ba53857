package codec

import (
	"errors"
	"fmt"

	"topsail/serving"
)

// ErrorClass is what stands as "error" beside the cause of an Error.
const ErrorClass = "Json error"

// The schemas are Clipper's, to the letter.
const (
	predictSchema = "\n  {\n   \"input\" := [double] | [int] | [string] | [byte] | [float],\n  }\n"
	updateSchema  = "\n  {\n   \"uid\" := string,\n   \"input\" := [double] | [int] | [string] | [byte] | [float],\n   \"label\" := double\n  }\n"
)

// Error says why a body was refused, in Clipper's sentences where it has one.
type Error struct {
	Cause  string // for the client
	detail string // what Cause is made of when the schema is known; may be empty
	syntax bool   // the body is not JSON; else it is JSON with the wrong content
}

func (e *Error) Error() string { return e.Cause }

// contentError is for a value that is not what its key asks for.
func contentError(format string, args ...any) error {
	return &Error{detail: fmt.Sprintf(format, args...)}
}

// syntaxError is for a body that is not JSON, from byte offset on.
func syntaxError(offset int, text string) error {
	return &Error{detail: fmt.Sprintf("JSON parse error: %s (offset %d)\n", text, offset), syntax: true}
}

func errNotObject() error { return &Error{Cause: "JSON schema invalid"} }

// refused finishes the error in which reading the body ended; schema says how it should
// have been. A body that is not JSON is told so, even if we met wrong content before
// the place where its syntax breaks.
func refused(body []byte, err error, schema string) error {
	e, _ := errors.AsType[*Error](err) // there is no other
	if !e.syntax {
		if syntax, broken := errors.AsType[*Error](checkSyntax(body)); broken {
			e = syntax
		}
	}
	if e.detail != "" {
		e.Cause = "Error parsing JSON: " + e.detail + ". Expected JSON schema: " + schema
	}
	return e
}

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

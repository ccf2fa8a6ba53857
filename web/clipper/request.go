package clipper

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// kind is what the value of a key must be, as schemas say it.
type kind string

const (
	isText      kind = "string"
	isTexts     kind = "[string]"
	isInt       kind = "int"
	isBool      kind = "bool"
	isInputType kind = `"integers" | "bytes" | "floats" | "doubles" | "strings"` // or another name of one: a string here
)

// keys are those that a request must have, in the order in which they are checked.
type keys []struct {
	name string
	kind kind
}

// schema is how errors describe a request.
func (k keys) schema() string {
	lines := make([]string, len(k))
	for i, key := range k {
		lines[i] = fmt.Sprintf("   %q := %s", key.name, key.kind)
	}
	return "\n  {\n" + strings.Join(lines, ",\n") + "\n  }\n"
}

// request is a request's values by key: string, []string, int or bool, as its keys say.
type request map[string]any

func (r request) text(key string) string    { return r[key].(string) }
func (r request) texts(key string) []string { return r[key].([]string) }
func (r request) number(key string) int     { return r[key].(int) }
func (r request) flag(key string) bool      { return r[key].(bool) }

// parse reads the body of a request. Its errors are Clipper's.
func parse(body []byte, want keys) (request, error) {
	members, err := object(body)
	if err != nil {
		return nil, err
	}
	r := request{}
	for _, key := range want {
		value, ok := members[key.name]
		if !ok {
			return nil, sentence("JSON object does not have required key: %s", key.name)
		}
		if r[key.name], err = read(key.name, key.kind, value); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// object reads the members of an object. Of equal keys the first counts.
func object(body []byte) (map[string]json.RawMessage, error) {
	if err := checkSyntax(body); err != nil {
		return nil, err
	}
	if bytes.TrimLeft(body, space)[0] != '{' {
		return nil, sentence("Can only get key-value pair from an object")
	}
	members := map[string]json.RawMessage{}
	d := json.NewDecoder(bytes.NewReader(body))
	_, err := d.Token() // the brace
	for err == nil && d.More() {
		var key json.Token
		var value json.RawMessage
		if key, err = d.Token(); err == nil {
			err = d.Decode(&value)
		}
		if name, ok := key.(string); ok && members[name] == nil {
			members[name] = value
		}
	}
	return members, err
}

// read checks and converts one value.
func read(key string, want kind, value json.RawMessage) (any, error) {
	switch found := typeOf(value); {
	case want == isBool && (found == "True" || found == "False"):
		return found == "True", nil
	case want == isBool:
		return nil, sentence("Type mismatch! JSON key %s expected type bool but found type %s", key, found)
	case found != want.json():
		return nil, sentence("Type mismatch! JSON key %s expected type %sbut found type %s", key, want.json(), found)
	}
	switch want {
	case isInt:
		n, err := strconv.ParseInt(string(value), 10, 32)
		if err != nil {
			return nil, sentence("PredictionData of type Number is not of type int")
		}
		return int(n), nil
	case isTexts:
		return readTexts(value)
	}
	var s string
	err := json.Unmarshal(value, &s)
	return s, err
}

func readTexts(value json.RawMessage) ([]string, error) {
	var elements []json.RawMessage
	if err := json.Unmarshal(value, &elements); err != nil {
		return nil, err
	}
	list := make([]string, len(elements))
	for i, e := range elements {
		if found := typeOf(e); found != "String" {
			return nil, sentence("Array input of type %s is not of type string", found)
		}
		if err := json.Unmarshal(e, &list[i]); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// json is the type that a value of the kind has.
func (k kind) json() string {
	switch k {
	case isInt:
		return "Number"
	case isTexts:
		return "Array"
	}
	return "String"
}

// typeOf names the type of a valid value.
func typeOf(value json.RawMessage) string {
	switch value[0] {
	case 'n':
		return "Null"
	case 'f':
		return "False"
	case 't':
		return "True"
	case '{':
		return "Object"
	case '[':
		return "Array"
	case '"':
		return "String"
	}
	return "Number"
}

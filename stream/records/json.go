package records

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/topsail-serving/topsail/serving"
)

// jsonRequest is a request as JSON, with the members of the predict API.
type jsonRequest struct {
	UUID    jsonName        `json:"uuid"`
	Input   json.RawMessage `json:"input"`
	Inputs  json.RawMessage `json:"inputs"`
	App     jsonNames       `json:"app"`
	UID     jsonName        `json:"uid"`
	Context jsonName        `json:"context"`
	Key     jsonName        `json:"key"`
}

// jsonName is a text, or a whole number that becomes its decimal text.
type jsonName string

// UnmarshalJSON implements json.Unmarshaler.
func (n *jsonName) UnmarshalJSON(text []byte) error {
	switch c := text[0]; {
	case c == '"':
		return json.Unmarshal(text, (*string)(n))
	case (c == '-' || c >= '0' && c <= '9') && !bytes.ContainsAny(text, ".eE"):
		*n = jsonName(text)
		return nil
	case string(text) == "null":
		return nil
	}
	return fmt.Errorf("uuid, app, uid, context and key must be texts or whole numbers, not %s", short(text))
}

// jsonNames are one name or a list of them.
type jsonNames []string

// UnmarshalJSON implements json.Unmarshaler.
func (n *jsonNames) UnmarshalJSON(text []byte) error {
	names := make([]jsonName, 1)
	var err error
	if text[0] == '[' {
		err = json.Unmarshal(text, &names)
	} else {
		err = names[0].UnmarshalJSON(text)
	}
	for _, name := range names {
		if name != "" {
			*n = append(*n, string(name))
		}
	}
	return err
}

// hasHalfPair says whether a text in JSON has an escape that is half of a surrogate pair, which json would replace without a
// word, and the predict API refuses.
func hasHalfPair(message []byte) bool {
	for rest := message; ; {
		at := bytes.IndexByte(rest, '\\')
		if at < 0 || at+2 > len(rest) {
			return false
		}
		rest = rest[at:]
		if rest[1] != 'u' {
			rest = rest[2:]
			continue
		}
		first, second := codeUnit(rest), codeUnit(rest[min(6, len(rest)):])
		switch {
		case !utf16.IsSurrogate(first):
			rest = rest[min(6, len(rest)):]
		case utf16.DecodeRune(first, second) == utf8.RuneError:
			return true
		default:
			rest = rest[12:]
		}
	}
}

// codeUnit is that of the \uXXXX that text begins with, or 0.
func codeUnit(text []byte) rune {
	if len(text) < 6 || text[0] != '\\' || text[1] != 'u' {
		return 0
	}
	unit, err := strconv.ParseUint(string(text[2:6]), 16, 16)
	if err != nil {
		return 0
	}
	return rune(unit)
}

func (r *Request) parseJSON(message []byte) error {
	if !utf8.Valid(message) {
		return errNotUTF8
	}
	if hasHalfPair(message) {
		return errors.New("a text has half of a surrogate pair")
	}
	var in jsonRequest
	if err := json.Unmarshal(message, &in); err != nil {
		return err
	}
	switch {
	case in.Input == nil && in.Inputs == nil:
		return errors.New(`it needs a member "input", or "inputs" for an app with a signature`)
	case in.Input != nil && in.Inputs != nil:
		return errors.New(`it has both "input" and "inputs": give one of them`)
	}
	r.UUID, r.Apps, r.User, r.Context, r.Key = string(in.UUID), in.App, string(in.UID), string(in.Context), string(in.Key)
	r.Data, r.Named = in.Input, in.Inputs != nil
	if r.Named {
		r.Data = in.Inputs
	}
	return nil
}

// AppendJSON appends the request as JSON; Data must be the JSON of an input.
func (r *Request) AppendJSON(b []byte) []byte {
	b = appendText(append(b, `{"uuid":`...), r.UUID)
	name := `,"input":`
	if r.Named {
		name = `,"inputs":`
	}
	b = append(append(b, name...), raw(r.Data)...)
	if len(r.Apps) == 1 {
		b = appendText(append(b, `,"app":`...), r.Apps[0])
	} else {
		for i, app := range r.Apps {
			b = appendText(append(b, opening(i, `,"app":[`)...), app)
		}
		b = append(b, closing(len(r.Apps), ']')...)
	}
	for _, one := range []struct{ name, text string }{
		{`,"uid":`, r.User}, {`,"context":`, r.Context}, {`,"key":`, r.Key},
	} {
		if one.text != "" {
			b = appendText(append(b, one.name...), one.text)
		}
	}
	return append(b, '}')
}

// AppendJSON appends the response as JSON, with the members of the predict API.
func (r *Response) AppendJSON(b []byte) []byte {
	b = appendText(append(b, `{"uuid":`...), r.UUID)
	b = strconv.AppendInt(append(b, `,"query_id":`...), r.QueryID, 10)
	b = append(append(b, `,"output":`...), raw(r.Output)...)
	if len(r.Outputs) > 0 {
		b = append(append(b, `,"outputs":`...), r.Outputs...)
	}
	b = strconv.AppendBool(append(b, `,"default":`...), r.Default)
	for _, one := range []struct{ name, text string }{
		{`,"default_explanation":`, r.Explanation}, {`,"app":`, r.App}, {`,"model":`, r.Model}, {`,"version":`, r.Version},
	} {
		if one.text != "" {
			b = appendText(append(b, one.name...), one.text)
		}
	}
	if r.Confidence != nil {
		b = strconv.AppendFloat(append(b, `,"confidence":`...), *r.Confidence, 'g', -1, 64)
	}
	for i, q := range r.Qualifiers {
		b = append(b, opening(i, `,"qualifiers":{`)...)
		b = append(appendText(b, q.Key), ':')
		b = serving.AppendText(b, []byte(q.Value))
	}
	b = append(b, closing(len(r.Qualifiers), '}')...)
	for i, m := range r.Missing {
		b = appendText(append(b, opening(i, `,"missing":[`)...), m)
	}
	b = append(b, closing(len(r.Missing), ']')...)
	if r.Took > 0 {
		b = strconv.AppendInt(append(b, `,"duration_micros":`...), r.Took.Microseconds(), 10)
	}
	return append(b, '}')
}

// opening and closing are what stands around and between the elements of a list that is
// left out when it is empty.
func opening(i int, first string) string {
	if i > 0 {
		return ","
	}
	return first
}

func closing(n int, end byte) []byte {
	if n == 0 {
		return nil
	}
	return []byte{end}
}

// raw is JSON that stands as it is.
func raw(text []byte) []byte {
	if len(text) == 0 {
		return []byte("null")
	}
	return text
}

// appendText appends a JSON string. What is not UTF-8 becomes U+FFFD.
func appendText(b []byte, text string) []byte {
	quoted, err := json.Marshal(text)
	if err != nil { // of a string it cannot fail
		return append(b, `""`...)
	}
	return append(b, quoted...)
}

func (r *Response) parseJSON(message []byte) error {
	var in struct {
		UUID        string
		QueryID     int64 `json:"query_id"`
		Output      json.RawMessage
		Outputs     json.RawMessage
		Default     bool
		Explanation string `json:"default_explanation"`
		App         string
		Took        int64 `json:"duration_micros"`
		Model       string
		Version     string
		Confidence  *float64
		Qualifiers  qualifiers
		Missing     []string
	}
	if err := json.Unmarshal(message, &in); err != nil {
		return err
	}
	*r = Response{
		in.UUID, in.QueryID, in.Output, in.Outputs, in.Default, in.Explanation, in.App, microseconds(uint64(max(in.Took, 0))), in.Model, in.Version,
		in.Confidence, in.Qualifiers, in.Missing,
	}
	return nil
}

// qualifiers are a JSON object, in the order of its members.
type qualifiers []Qualifier

// UnmarshalJSON implements json.Unmarshaler.
func (q *qualifiers) UnmarshalJSON(text []byte) error {
	in := json.NewDecoder(bytes.NewReader(text))
	if t, err := in.Token(); err != nil || t != json.Delim('{') {
		return fmt.Errorf("qualifiers must be an object, not %s", short(text))
	}
	for in.More() {
		name, err := in.Token()
		if err != nil {
			return err
		}
		var value json.RawMessage
		if err := in.Decode(&value); err != nil {
			return err
		}
		one := Qualifier{Value: string(value)}
		one.Key, _ = name.(string) // it is one: the text is valid
		if value[0] == '"' {
			if err := json.Unmarshal(value, &one.Value); err != nil {
				return err
			}
		}
		*q = append(*q, one)
	}
	return nil
}

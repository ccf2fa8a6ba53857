package api

import (
	"bytes"
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
)

// maxDepth bounds how deep documents are nested.
const maxDepth = 32

// shape holds JSON against the type that it is for. encoding/json would say neither
// where something is wrong nor that a member is given twice, and takes names in any case.
type shape struct {
	text  *json.Decoder
	null  bool // null is allowed, as in a merge patch
	known map[reflect.Type]members
	whole []wholeNumber
}

// members are those of a struct.
type members struct {
	names, required []string // in order
	types           map[string]reflect.Type
}

// checkShape holds well-formed text against the document that into points to. Members
// that the type tags with required must be there, unless null is allowed. It returns the
// text with whole numbers as encoding/json takes them.
func checkShape(text []byte, into any, null bool) ([]byte, error) {
	s := shape{text: json.NewDecoder(bytes.NewReader(text)), null: null, known: map[reflect.Type]members{}}
	s.text.UseNumber()
	if err := s.value(reflect.TypeOf(into).Elem(), "", 0); err != nil {
		return nil, err
	}
	return plain(text, s.whole), nil
}

var (
	rawText  = reflect.TypeFor[json.RawMessage]()
	fromText = reflect.TypeFor[encoding.TextUnmarshaler]()
)

// value checks the next value. A nil type takes any.
func (s *shape) value(t reflect.Type, at string, depth int) error {
	if depth > maxDepth {
		return invalid("%s is nested too deep: %d levels are allowed", named(at), maxDepth)
	}
	if t == rawText || t != nil && t.Kind() == reflect.Interface {
		t = nil
	}
	for t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	token, err := s.text.Token()
	if err != nil {
		return invalid("the body is no JSON: %v", err)
	}
	switch token {
	case json.Delim('{'):
		return s.object(t, at, depth)
	case json.Delim('['):
		return s.list(t, at, depth)
	}
	return s.scalar(t, at, token)
}

func (s *shape) object(t reflect.Type, at string, depth int) error {
	if t != nil && (takesText(t) || t.Kind() != reflect.Struct && t.Kind() != reflect.Map) {
		return invalid("%s must be %s, not an object", named(at), wanted(t))
	}
	seen := map[string]bool{}
	for s.text.More() {
		token, err := s.text.Token()
		name, isName := token.(string)
		if err != nil || !isName {
			return invalid("%s is no JSON", named(at))
		}
		path := strings.TrimPrefix(at+"."+name, ".")
		if seen[name] {
			return invalid("%s is given twice", named(path))
		}
		seen[name] = true
		member, err := s.member(t, name, path)
		if err != nil {
			return err
		}
		if err := s.value(member, path, depth+1); err != nil {
			return err
		}
	}
	_, _ = s.text.Token() // the text is well-formed
	return s.missing(t, at, seen)
}

// member is the type of a member, nil for any.
func (s *shape) member(t reflect.Type, name, path string) (reflect.Type, error) {
	switch {
	case t == nil:
		return nil, nil
	case t.Kind() == reflect.Map:
		return t.Elem(), nil
	}
	known := s.members(t)
	if member, ok := known.types[name]; ok {
		return member, nil
	}
	return nil, invalid("%s is unknown: there are %s", named(path), strings.Join(known.names, ", "))
}

// missing refuses objects without a member that they must have.
func (s *shape) missing(t reflect.Type, at string, seen map[string]bool) error {
	if t == nil || t.Kind() != reflect.Struct || s.null {
		return nil
	}
	for _, name := range s.members(t).required {
		if !seen[name] {
			return invalid("%s is missing", named(strings.TrimPrefix(at+"."+name, ".")))
		}
	}
	return nil
}

func (s *shape) members(t reflect.Type) members {
	known, ok := s.known[t]
	if ok {
		return known
	}
	known.types = map[string]reflect.Type{}
	for _, f := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" || name == "-" {
			continue
		}
		known.names, known.types[name] = append(known.names, name), f.Type
		if f.Tag.Get("required") != "" {
			known.required = append(known.required, name)
		}
	}
	s.known[t] = known
	return known
}

func (s *shape) list(t reflect.Type, at string, depth int) error {
	if t != nil && (takesText(t) || t.Kind() != reflect.Slice) {
		return invalid("%s must be %s, not a list", named(at), wanted(t))
	}
	var element reflect.Type
	if t != nil {
		element = t.Elem()
	}
	for i := 0; s.text.More(); i++ {
		if err := s.value(element, fmt.Sprintf("%s[%d]", at, i), depth+1); err != nil {
			return err
		}
	}
	_, _ = s.text.Token() // the text is well-formed
	return nil
}

func (s *shape) scalar(t reflect.Type, at string, token json.Token) error {
	if token == nil && s.null {
		return nil
	}
	if n, ok := token.(json.Number); ok {
		token = s.number(n)
	}
	if t == nil && token != nil {
		return nil
	}
	if token == nil {
		return invalid("%s must not be null; leave it out", named(at))
	}
	switch v := token.(type) {
	case string:
		if takesText(t) {
			if err := reflect.New(t).Interface().(encoding.TextUnmarshaler).UnmarshalText([]byte(v)); err != nil {
				return invalid("%s: %v", named(at), err)
			}
			return nil
		}
		if t.Kind() == reflect.String {
			return nil
		}
	case bool:
		if t.Kind() == reflect.Bool {
			return nil
		}
	case json.Number:
		if !takesText(t) && json.Unmarshal([]byte(v), reflect.New(t).Interface()) == nil {
			return nil
		}
	}
	return invalid("%s must be %s, not %s", named(at), wanted(t), kindOf(token))
}

// takesText says whether values of the type are written as texts.
func takesText(t reflect.Type) bool { return reflect.PointerTo(t).Implements(fromText) }

// wanted says what JSON a type is read from.
func wanted(t reflect.Type) string {
	switch k := t.Kind(); {
	case takesText(t), k == reflect.String:
		return "a string"
	case k == reflect.Bool:
		return "true or false"
	case k >= reflect.Int && k <= reflect.Uint64:
		return "a whole number that fits"
	case k == reflect.Float64:
		return "a number that fits"
	case k == reflect.Slice:
		return "a list"
	}
	return "an object"
}

func kindOf(token json.Token) string {
	switch v := token.(type) {
	case string:
		return "a string"
	case bool:
		return "true or false"
	case json.Number:
		return fmt.Sprintf("%.40s", v.String())
	}
	return "null"
}

// named is a path in the words of an error.
func named(at string) string {
	if at == "" {
		return "the body"
	}
	return fmt.Sprintf("%.200q", at)
}

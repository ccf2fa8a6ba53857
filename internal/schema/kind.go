package schema

import (
	"bytes"
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"
)

// Micros is a duration that documents have in microseconds.
type Micros interface{ Std() time.Duration }

func isDuration(t reflect.Type) bool {
	return t == reflect.TypeFor[time.Duration]() || t.Implements(reflect.TypeFor[Micros]())
}

// isRaw says whether values of the type are kept as they come.
func isRaw(t reflect.Type) bool {
	return t == reflect.TypeFor[json.RawMessage]() || t.Kind() == reflect.Interface
}

// takesText says whether values of the type are written as texts.
func takesText(t reflect.Type) bool {
	return reflect.PointerTo(t).Implements(reflect.TypeFor[encoding.TextUnmarshaler]())
}

func isScalar(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Struct, reflect.Map, reflect.Slice, reflect.Pointer, reflect.Interface:
		return takesText(t)
	}
	return true
}

// isObject says whether values of the type are structs, and so tables of TOML.
func isObject(t reflect.Type) bool {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t.Kind() == reflect.Struct && !takesText(t)
}

// noun is what a type is read from, with its article.
func (s Syntax) noun(t reflect.Type) string {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	nouns := [...][2]string{
		{"a string", "a string"}, {"true or false", "a boolean"}, {"a whole number that fits", "an integer"},
		{"a number that fits", "a float"}, {"a list", "a list"}, {"an object", "a table"},
	}
	which := 5
	switch k := t.Kind(); {
	case takesText(t), k == reflect.String:
		which = 0
	case k == reflect.Bool:
		which = 1
	case k >= reflect.Int && k <= reflect.Uint64:
		which = 2
	case k == reflect.Float64:
		which = 3
	case k == reflect.Slice:
		which = 4
	}
	if which == 4 && t.Elem().Kind() == reflect.String {
		return "a list of strings"
	}
	return nouns[which][s]
}

// nounOf is what a value is, with its article; a number of JSON as it is written.
func (s Syntax) nounOf(v any) string {
	switch v := v.(type) {
	case json.Number:
		return fmt.Sprintf("%.40s", v.String())
	case nil:
		return "null"
	case string:
		return s.noun(reflect.TypeFor[string]())
	case bool:
		return s.noun(reflect.TypeFor[bool]())
	case int64:
		return s.noun(reflect.TypeFor[int64]())
	case float64:
		return s.noun(reflect.TypeFor[float64]())
	case []any:
		return s.noun(reflect.TypeFor[[]any]())
	case map[string]any:
		return s.noun(reflect.TypeFor[struct{}]())
	}
	return "a date or time"
}

// kind is the TOML type of a value, as the tag accept has it.
func kind(v any) string {
	switch v.(type) {
	case int64:
		return "integer"
	case float64:
		return "float"
	case bool:
		return "boolean"
	}
	return ""
}

// scalarText is the text of a number or boolean, or v itself where it is not one, or a number that
// JSON does not have.
func scalarText(v any) any {
	switch kind(v) {
	case "integer", "boolean":
		return fmt.Sprint(v)
	case "float":
		text, err := json.Marshal(v)
		if err != nil {
			return v
		}
		if !bytes.ContainsAny(text, ".e") {
			text = append(text, ".0"...)
		}
		return string(text)
	}
	return v
}

// Parse reads the text of a default, a flag or a variable for a type. What does not parse stays text,
// which the type then refuses.
func Parse(text string, t reflect.Type) any {
	switch {
	case takesText(t):
	case t.Kind() == reflect.Bool:
		if b, err := strconv.ParseBool(text); err == nil {
			return b
		}
	case t.Kind() == reflect.Float64:
		if x, err := strconv.ParseFloat(text, 64); err == nil {
			return x
		}
	case t.Kind() >= reflect.Int && t.Kind() <= reflect.Uint64:
		if n, err := strconv.ParseInt(text, 10, 64); err == nil {
			return n
		}
	case t.Kind() == reflect.Slice:
		var list []any
		for s := range strings.SplitSeq(text, ",") {
			list = append(list, strings.TrimSpace(s))
		}
		return list
	}
	return text
}

package config

import (
	"encoding"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"

	"topsail/serving"
)

// kind names the TOML type of a decoded value.
func kind(v any) string {
	switch v.(type) {
	case string:
		return "string"
	case int64:
		return "integer"
	case float64:
		return "float"
	case bool:
		return "boolean"
	case []any:
		return "list"
	case map[string]any:
		return "table"
	}
	return "date or time"
}

// typeName names the TOML type that a field takes; it begins with its kind.
func typeName(t reflect.Type) string {
	if reflect.PointerTo(t).Implements(reflect.TypeFor[encoding.TextUnmarshaler]()) {
		return "string"
	}
	switch t.Kind() {
	case reflect.Int, reflect.Int64:
		return "integer"
	case reflect.Float64:
		return "float"
	case reflect.Bool:
		return "boolean"
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Int {
			return "list of integers"
		}
		return "list of strings"
	case reflect.Map:
		if t.Elem().Kind() == reflect.Float64 {
			return "table of numbers"
		}
		return "table of strings"
	case reflect.Pointer:
		return "table"
	}
	return "string"
}

// article puts the article before one of the nouns above.
func article(noun string) string {
	if strings.HasPrefix(noun, "i") {
		return "an " + noun
	}
	return "a " + noun
}

// parse reads the text of a flag, variable or default as the TOML value that
// typ names. What does not parse stays text, which assign then refuses.
func parse(text, typ string) any {
	switch typ {
	case "integer":
		if n, err := strconv.ParseInt(text, 10, 64); err == nil {
			return n
		}
	case "float":
		if x, err := strconv.ParseFloat(text, 64); err == nil {
			return x
		}
	case "boolean":
		if b, err := strconv.ParseBool(text); err == nil {
			return b
		}
	case "list of strings":
		var list []any
		for s := range strings.SplitSeq(text, ",") {
			list = append(list, strings.TrimSpace(s))
		}
		return list
	}
	return text
}

// scalarText is the text of a string, number or boolean, or v itself when it
// is none of these or a number that JSON does not have.
func scalarText(v any) any {
	switch x := v.(type) {
	case int64, bool:
		return fmt.Sprint(x)
	case float64:
		if b, err := serving.AppendJSON(nil, serving.Number(x)); err == nil {
			return string(b)
		}
	}
	return v
}

// display is the text of a field for people, in the units of the file.
func (k leaf) display(v reflect.Value) string {
	if k.Secret && !v.IsZero() {
		return "(set)"
	}
	switch x := v.Interface().(type) {
	case time.Duration:
		return strconv.FormatInt(x.Microseconds(), 10)
	case []string:
		return displayList(x)
	case map[string]string:
		return displayList(keys(x)) // the values may be long
	case map[string]float64:
		return displayNumbers(x)
	case *serving.PolicySpec:
		return x.String()
	default:
		return fmt.Sprint(x)
	}
}

func displayList(list []string) string {
	quoted := make([]string, len(list))
	for i, s := range list {
		quoted[i] = strconv.Quote(s)
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}

func displayNumbers(table map[string]float64) string {
	var parts []string
	for _, name := range keys(table) {
		parts = append(parts, fmt.Sprintf("%q = %v", name, table[name]))
	}
	return "{ " + strings.Join(parts, ", ") + " }"
}

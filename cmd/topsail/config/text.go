package config

import (
	"encoding"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/topsail-serving/topsail/serving"
)

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

// display is the text of a field for people, in the units of the file.
func (k leaf) display(v reflect.Value) string {
	if k.Secret && !v.IsZero() {
		return "(set)"
	}
	switch x := v.Interface().(type) {
	case time.Duration:
		return strconv.FormatInt(x.Microseconds(), 10)
	case serving.Duration:
		return strconv.FormatInt(x.Std().Microseconds(), 10)
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

package serving

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// String is the policy as it stands in a configuration file, on one line.
func (p *PolicySpec) String() string {
	shown := *p
	shown.Kind = p.KindName()
	var parts []string
	for option, v := range shown.options() {
		parts = append(parts, option+" = "+inline(v))
	}
	return "{ " + strings.Join(parts, ", ") + " }"
}

func inline(v reflect.Value) string {
	switch x := v.Interface().(type) {
	case string:
		return quoteTOML(x)
	case []string:
		quoted := make([]string, len(x))
		for i, s := range x {
			quoted[i] = quoteTOML(s)
		}
		return "[" + strings.Join(quoted, ", ") + "]"
	case map[string]float64:
		var parts []string
		for _, name := range slices.Sorted(maps.Keys(x)) {
			parts = append(parts, fmt.Sprintf("%s = %v", quoteTOML(name), x[name]))
		}
		return "{ " + strings.Join(parts, ", ") + " }"
	default:
		return fmt.Sprint(x)
	}
}

// quoteTOML is a basic string of TOML, which has the escapes of JSON.
func quoteTOML(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		return `""` // a string always marshals
	}
	return string(b)
}

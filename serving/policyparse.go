package serving

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// ParsePolicy reads a policy from a JSON object, strictly: names that it does not know
// and values of other types are errors. It does not check what App.Check checks.
func ParsePolicy(text []byte) (PolicySpec, error) {
	var p PolicySpec
	err := json.Unmarshal(text, &p)
	if err == nil {
		err = knownOptions(text, &p)
	}
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		err = fmt.Errorf("%s must be %s, not %s", strings.TrimPrefix(wrong.Field, "."), jsonType(wrong.Type), wrong.Value)
		if wrong.Field == "" {
			err = fmt.Errorf("it must be an object, not %s", wrong.Value)
		}
	}
	if err != nil {
		return PolicySpec{}, fmt.Errorf("policy: %w", err)
	}
	return p, nil
}

// knownOptions refuses names in text, of which p was decoded, that are no options.
// encoding/json could, but would say neither where they are nor what there is, and
// takes names in any case.
func knownOptions(text []byte, p *PolicySpec) error {
	var given map[string]json.RawMessage
	if err := json.Unmarshal(text, &given); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if slices.Contains(optionNames(), name) {
			continue
		}
		if kind, known := policyKinds[p.KindName()]; known {
			return fmt.Errorf("option %q is unknown: %q has %s", name, p.KindName(), strings.Join(slices.Concat(kind.options, everyPolicy), ", "))
		}
		return fmt.Errorf("option %q is unknown: use %s", name, strings.Join(optionNames(), ", "))
	}
	if p.Fallback == nil {
		return nil
	}
	if err := knownOptions(given["fallback"], p.Fallback); err != nil {
		return fmt.Errorf("fallback: %w", err)
	}
	return nil
}

// jsonType says what JSON a Go type is read from.
func jsonType(t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int64:
		return "a whole number"
	case reflect.Float64:
		return "a number"
	case reflect.Slice:
		return "a list"
	}
	return "an object"
}

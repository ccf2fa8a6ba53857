package config

import (
	"encoding"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

// assign checks v, a value as TOML decodes it, and puts it into dst. Its errors
// continue a sentence that begins with the name of the key.
func (k leaf) assign(dst reflect.Value, v any) error {
	v = k.convert(v)
	if !strings.HasPrefix(k.Type, kind(v)) {
		return fmt.Errorf("must be %s, not %s", article(k.Type), article(kind(v)))
	}
	// What fails its check is stored all the same, or else later checks would
	// complain of a missing value.
	if err := store(dst, v); err != nil {
		return err
	}
	return k.check(v)
}

// convert makes v what the field wants, where it may be written in another type.
func (k leaf) convert(v any) any {
	if n, ok := v.(int64); ok && k.Type == "float" {
		return float64(n)
	}
	if slices.Contains(strings.Fields(k.tag.Get("accept")), kind(v)) {
		return scalarText(v)
	}
	return v
}

// check holds v to the tags of the field.
func (k leaf) check(v any) error {
	switch v := v.(type) {
	case int64:
		if lowest, err := strconv.ParseInt(k.tag.Get("min"), 10, 64); err == nil && v < lowest {
			return fmt.Errorf("must be at least %d, not %d", lowest, v)
		}
	case string:
		if enum := strings.Fields(k.tag.Get("enum")); len(enum) > 0 && !slices.Contains(enum, v) {
			return fmt.Errorf("must be one of %s, not %q", strings.Join(enum, ", "), v)
		}
		if which := k.tag.Get("addr"); which != "" {
			return checkAddr(v, which)
		}
	}
	return nil
}

// store puts v into dst, whose type is of the kind of v.
func store(dst reflect.Value, v any) error {
	if u, ok := reflect.TypeAssert[encoding.TextUnmarshaler](dst.Addr()); ok {
		if err := u.UnmarshalText([]byte(v.(string))); err != nil {
			return fmt.Errorf("is wrong: %w", err)
		}
		return nil
	}
	switch v := v.(type) {
	case string:
		dst.SetString(v)
	case bool:
		dst.SetBool(v)
	case float64:
		dst.SetFloat(v)
	case int64:
		return storeInt(dst, v)
	case []any:
		if dst.Type().Elem().Kind() == reflect.Int {
			return storeInts(dst, v)
		}
		return storeList(dst, v)
	case map[string]any:
		if dst.Type().Elem().Kind() == reflect.Float64 {
			return storeNumbers(dst, v)
		}
		return storeTable(dst, v)
	}
	return nil
}

func storeInt(dst reflect.Value, n int64) error {
	unit := int64(1)
	if isDuration(dst.Type()) {
		unit = int64(time.Microsecond)
	}
	if n > math.MaxInt64/unit || n < math.MinInt64/unit || dst.OverflowInt(n*unit) {
		return fmt.Errorf("is out of range: %d", n)
	}
	dst.SetInt(n * unit)
	return nil
}

func storeList(dst reflect.Value, list []any) error {
	var all []string
	for _, v := range list {
		s, ok := v.(string)
		if !ok {
			return fmt.Errorf("must hold strings only, not %s", article(kind(v)))
		}
		all = append(all, s)
	}
	dst.Set(reflect.ValueOf(all))
	return nil
}

func storeInts(dst reflect.Value, list []any) error {
	var all []int
	for _, v := range list {
		n, ok := v.(int64)
		if !ok || int64(int(n)) != n {
			return fmt.Errorf("must hold integers only, not %s", article(kind(v)))
		}
		all = append(all, int(n))
	}
	dst.Set(reflect.ValueOf(all))
	return nil
}

// storeTable takes numbers and booleans by their text: what becomes a variable
// of the environment is text in the end.
func storeTable(dst reflect.Value, table map[string]any) error {
	all := map[string]string{}
	for name, v := range table {
		s, ok := scalarText(v).(string)
		if !ok {
			return fmt.Errorf("must hold strings only: %s is %s", name, article(kind(v)))
		}
		all[name] = s
	}
	dst.Set(reflect.ValueOf(all))
	return nil
}

func storeNumbers(dst reflect.Value, table map[string]any) error {
	all := map[string]float64{}
	for _, name := range keys(table) {
		switch x := table[name].(type) {
		case float64:
			all[name] = x
		case int64:
			all[name] = float64(x)
		default:
			return fmt.Errorf("must hold numbers only: %s is %s", name, article(kind(x)))
		}
	}
	dst.Set(reflect.ValueOf(all))
	return nil
}

func isDuration(t reflect.Type) bool { return t == reflect.TypeFor[time.Duration]() }

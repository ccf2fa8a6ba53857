package schema

import (
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Decoder puts documents into structs.
type Decoder struct {
	Syntax Syntax
	// Partial documents, such as merge patches, may lack fields that are required, have nulls, and
	// leave what they do not give as it is.
	Partial bool
	// Set is called for each value that is in its field: not for tables and lists of them. Nil: it is not.
	Set func(path string, f Field, dst reflect.Value)

	problems []Problem
	fields   map[reflect.Type][]Field
}

// Decode puts a document, as ParseJSON or a TOML library reads it, into the struct that into points
// to, and returns all that is wrong. What is wrong and can be stored is, so that later checks do not
// complain of a missing value. What is not given becomes its default. path is that of the document;
// empty: it is a whole.
func (d *Decoder) Decode(path string, document, into any) []Problem {
	d.problems, d.fields = nil, map[reflect.Type][]Field{}
	dst := reflect.ValueOf(into).Elem()
	if !d.Partial {
		d.Syntax.Defaults(dst)
	}
	d.value(path, document, dst, Field{})
	return d.problems
}

// ReadJSON reads one JSON value into the struct that into points to. It fails with the first Problem.
func ReadJSON(text []byte, into any) error {
	tree, err := ParseJSON(text)
	if err != nil {
		return err
	}
	var d Decoder
	if problems := d.Decode("", tree, into); len(problems) > 0 {
		return problems[0]
	}
	return nil
}

func (d *Decoder) wrong(path, format string, args ...any) {
	d.problems = append(d.problems, Problem{path, fmt.Sprintf(format, args...)})
}

// value puts v into dst, which is a field or an element of one.
func (d *Decoder) value(path string, v any, dst reflect.Value, f Field) {
	switch t := dst.Type(); {
	case v == nil && d.Partial:
	case v == nil:
		d.wrong(path, "must not be null; leave it out")
	case isRaw(t):
		d.raw(path, v, dst)
	case t.Kind() == reflect.Pointer:
		dst.Set(reflect.New(t.Elem()))
		d.Syntax.Defaults(dst.Elem())
		d.value(path, v, dst.Elem(), f)
	case isScalar(t):
		d.scalar(path, v, dst, f)
	case t.Kind() == reflect.Struct:
		d.object(path, v, dst)
	case t.Kind() == reflect.Map:
		d.table(path, v, dst, f)
	case t.Kind() == reflect.Slice:
		d.list(path, v, dst, f)
	default:
		panic(fmt.Sprintf("schema: no document has a %v", t))
	}
}

// raw keeps a value of any type.
func (d *Decoder) raw(path string, v any, dst reflect.Value) {
	if dst.Kind() == reflect.Interface {
		dst.Set(reflect.ValueOf(v))
		return
	}
	text, err := json.Marshal(v)
	if err != nil {
		d.wrong(path, "cannot be JSON: %v", err)
		return
	}
	dst.SetBytes(text)
}

// object puts the members of v into the struct dst.
func (d *Decoder) object(path string, v any, dst reflect.Value) {
	members, ok := v.(map[string]any)
	if !ok {
		d.mismatch(path, v, dst.Type())
		return
	}
	fields := d.of(dst.Type())
	for _, name := range slices.Sorted(maps.Keys(members)) {
		at := join(path, name)
		i := slices.IndexFunc(fields, func(f Field) bool { return f.Key == name })
		if i < 0 {
			d.unknown(at, name, fields)
			continue
		}
		f := fields[i]
		d.value(at, members[name], dst.FieldByIndex(f.Index), f)
	}
	if d.Syntax == JSON && !d.Partial {
		for _, f := range fields {
			if _, given := members[f.Key]; !given && f.Required() {
				d.wrong(join(path, f.Key), "is missing")
			}
		}
	}
}

// unknown says what the name of an unknown member may have meant.
func (d *Decoder) unknown(path, name string, fields []Field) {
	if meant := DidYouMean(name, Keys(fields)); meant != "" {
		d.wrong(path, "is unknown%s", meant)
		return
	}
	d.wrong(path, "is unknown: use one of %s", strings.Join(Keys(fields), ", "))
}

func (d *Decoder) of(t reflect.Type) []Field {
	fields, ok := d.fields[t]
	if !ok {
		fields = d.Syntax.Fields(t)
		d.fields[t] = fields
	}
	return fields
}

// Defaults fills the struct dst, and those in it, with the defaults of their fields.
func (s Syntax) Defaults(dst reflect.Value) {
	if dst.Kind() != reflect.Struct || isScalar(dst.Type()) {
		return
	}
	for _, f := range s.Fields(dst.Type()) {
		field := dst.FieldByIndex(f.Index)
		if text := f.Default(); text == "" {
			s.Defaults(field)
		} else {
			d := Decoder{Syntax: s}
			if d.value(f.Key, Parse(text, field.Type()), field, f); len(d.problems) > 0 {
				panic(fmt.Sprintf("schema: a default of %v: %v", dst.Type(), d.problems[0]))
			}
		}
	}
}

// table puts v into dst, a map with strings as keys.
func (d *Decoder) table(path string, v any, dst reflect.Value, f Field) {
	members, ok := v.(map[string]any)
	if !ok {
		d.mismatch(path, v, dst.Type())
		return
	}
	table := reflect.MakeMap(dst.Type())
	for _, name := range slices.Sorted(maps.Keys(members)) {
		value := reflect.New(dst.Type().Elem()).Elem()
		// Variables of the environment are text in the end, and TOML has them as numbers, too.
		if d.Syntax == TOML && value.Kind() == reflect.String {
			members[name] = scalarText(members[name])
		}
		before := len(d.problems)
		if d.value(join(path, name), members[name], value, Field{}); len(d.problems) == before {
			table.SetMapIndex(reflect.ValueOf(name), value)
		}
	}
	dst.Set(table)
	d.set(path, f, dst)
}

// list puts v into the slice dst.
func (d *Decoder) list(path string, v any, dst reflect.Value, f Field) {
	elements, ok := v.([]any)
	switch of := dst.Type().Elem(); {
	case !ok && d.Syntax == TOML && isObject(of):
		d.wrong(path, "must be a list of tables, not %s: write [[%s]]", d.Syntax.nounOf(v), path)
		return
	case !ok:
		d.mismatch(path, v, dst.Type())
		return
	}
	list := reflect.MakeSlice(dst.Type(), len(elements), len(elements))
	for i, v := range elements {
		d.Syntax.Defaults(list.Index(i))
		d.value(element(path, i), v, list.Index(i), Field{})
	}
	dst.Set(list)
	if !isObject(dst.Type().Elem()) {
		d.set(path, f, dst)
	}
}

// scalar puts v into dst, and holds it to the tags of its field.
func (d *Decoder) scalar(path string, v any, dst reflect.Value, f Field) {
	if d.Syntax == TOML && slices.Contains(strings.Fields(f.Tag.Get("accept")), kind(v)) {
		v = scalarText(v)
	}
	d.assign(path, v, dst, f)
}

func (d *Decoder) assign(path string, v any, dst reflect.Value, f Field) {
	stored, err := store(v, dst, d.Syntax)
	switch {
	case err != nil:
		d.wrong(path, "%v", err)
	case !stored:
		d.mismatch(path, v, dst.Type())
	default:
		if err := f.check(dst); err != nil {
			d.wrong(path, "%v", err)
		}
	}
	d.set(path, f, dst)
}

func (d *Decoder) set(path string, f Field, dst reflect.Value) {
	if d.Set != nil && f.Key != "" {
		d.Set(path, f, dst)
	}
}

func (d *Decoder) mismatch(path string, v any, t reflect.Type) {
	d.wrong(path, "must be %s, not %s", d.Syntax.noun(t), d.Syntax.nounOf(v))
}

// check holds a value to the tags of its field.
func (f Field) check(v reflect.Value) error {
	switch {
	case v.CanInt():
		n := v.Int()
		if isDuration(v.Type()) {
			n /= int64(time.Microsecond)
		}
		if least, err := strconv.ParseInt(f.Tag.Get("min"), 10, 64); err == nil && n < least {
			return fmt.Errorf("must be at least %d, not %d", least, n)
		}
	case v.Kind() == reflect.String:
		if words := strings.Fields(f.Tag.Get("enum")); len(words) > 0 && !slices.Contains(words, v.String()) {
			return fmt.Errorf("must be one of %s, not %q", strings.Join(words, ", "), v.String())
		}
	}
	return nil
}

// store puts v into dst, or says that it is of another type, or what is wrong with it.
func store(v any, dst reflect.Value, s Syntax) (stored bool, err error) {
	text, isText := v.(string)
	if u, ok := reflect.TypeAssert[encoding.TextUnmarshaler](dst.Addr()); ok {
		if !isText {
			return false, nil
		}
		if err := u.UnmarshalText([]byte(text)); err != nil {
			return false, fmt.Errorf("is invalid: %w", err)
		}
		return true, nil
	}
	switch dst.Kind() {
	case reflect.String:
		if isText {
			dst.SetString(text)
		}
		return isText, nil
	case reflect.Bool:
		b, ok := v.(bool)
		dst.SetBool(b)
		return ok, nil
	case reflect.Float64:
		x, ok := float(v)
		if ok && (math.IsNaN(x) || math.IsInf(x, 0)) {
			return true, errors.New("must be a finite number")
		}
		if ok {
			dst.SetFloat(x)
		}
		return ok, nil
	}
	n, ok := integer(v, s)
	if !ok {
		return false, nil
	}
	return true, setInt(dst, n)
}

// setInt puts n into dst, an integer, or a duration in microseconds.
func setInt(dst reflect.Value, n int64) error {
	unit := int64(1)
	if isDuration(dst.Type()) {
		unit = int64(time.Microsecond)
	}
	switch {
	case dst.CanUint() && n >= 0 && !dst.OverflowUint(uint64(n)):
		dst.SetUint(uint64(n))
	case dst.CanInt() && n <= math.MaxInt64/unit && n >= math.MinInt64/unit && !dst.OverflowInt(n*unit):
		dst.SetInt(n * unit)
	default:
		return fmt.Errorf("is out of range: %d", n)
	}
	return nil
}

// float is v as a number, if it is one.
func float(v any) (float64, bool) {
	switch v := v.(type) {
	case float64:
		return v, true
	case int64:
		return float64(v), true
	case json.Number:
		x, err := v.Float64()
		return x, err == nil
	}
	return 0, false
}

// mostExact is what floats can count to, one by one.
const mostExact = 1 << 53

// integer is v as a whole number, if it is one. In JSON it may be written as JavaScript and
// Python write floats, such as 20000.0 or 2e4.
func integer(v any, s Syntax) (int64, bool) {
	switch v := v.(type) {
	case int64:
		return v, true
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return n, true
		}
		x, err := v.Float64()
		exact := err == nil && x == math.Trunc(x) && math.Abs(x) <= mostExact && strings.ContainsAny(v.String(), ".eE")
		return int64(x), exact
	}
	return 0, false
}

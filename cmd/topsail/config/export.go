package config

import (
	"bytes"
	"cmp"
	"encoding"
	"fmt"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/topsail-serving/topsail/internal/schema"
	"github.com/topsail-serving/topsail/serving"
)

// Export writes the apps and versions of a catalog as a configuration file. Loading it
// gives them again, and which version of a model is current. What a file cannot say
// stands there as a comment. Variables of containers are in it, and may be secrets.
func Export(cat *serving.Catalog) ([]byte, error) {
	e := &exporter{}
	e.comment("Apps and models of revision %d. `topsail apply -f` brings them in, and `topsail local` reads them.", cat.Revision)
	e.comment("Values of env may be secrets.")
	for _, name := range keys(cat.Apps) {
		e.app(cat, cat.Apps[name])
	}
	for _, name := range keys(cat.Models) {
		e.model(cat.Models[name])
	}
	return e.text.Bytes(), e.err
}

// exporter writes the text and remembers the first error.
type exporter struct {
	text bytes.Buffer
	err  error
}

func (e *exporter) comment(format string, args ...any) {
	line := strings.Join(strings.Fields(fmt.Sprintf(format, args...)), " ")
	fmt.Fprintf(&e.text, "# %s\n", strings.Map(printable, line))
}

// printable keeps in a comment what may stand there.
func printable(r rune) rune {
	if r < ' ' || r == 0x7f {
		return ' '
	}
	return r
}

func (e *exporter) app(cat *serving.Catalog, a *serving.App) {
	e.text.WriteString("\n")
	exists := func(id serving.ModelID) bool { return cat.Version(id) != nil }
	for _, err := range append(parts(a.CheckLinks()), parts(a.CheckVersions(exists))...) {
		e.comment("This does not load until it is corrected: %v", err)
	}
	e.text.WriteString("[[app]]\n")
	e.table(*a)
	tables(e, "app.stages", a.Stages)
}

func (e *exporter) model(m *serving.Model) {
	for _, name := range keys(m.Versions) {
		v := m.Versions[name]
		e.text.WriteString("\n")
		if v.Prepared {
			e.comment("%v is prepared but not registered yet, so it is left out.", v.ModelID)
			continue
		}
		e.remarks(m, v)
		e.text.WriteString("[[model]]\n")
		e.table(modelTable{*v, m.Current == v.ModelID.Version && len(m.Versions) > 1})
		tables(e, "model.artifact", v.Artifacts)
		tables(e, "model.stages", v.Stages)
	}
}

// tables writes a list of tables.
func tables[T any](e *exporter, name string, list []T) {
	for _, one := range list {
		fmt.Fprintf(&e.text, "\n[[%s]]\n", name)
		e.table(one)
	}
}

// remarks say what the table of a version cannot.
func (e *exporter) remarks(m *serving.Model, v *serving.Version) {
	if m.Current == "" {
		e.comment("No version of %s is current; applying this file makes the last one current.", m.Name)
	}
	if p := v.Pin; p != nil {
		e.comment("An operator has pinned %v (replicas: %d); `topsail version pin` does that.", v.ModelID, p.Count)
	}
	c := v.Container
	if len(c.Command) > 0 && c.Dir == "" {
		e.comment("%v names no folder; from a file it starts in the folder of the file.", v.ModelID)
	}
	for _, path := range append([]string{c.Dir}, c.Watch...) {
		if path != "" && !filepath.IsAbs(path) {
			e.comment("%s is relative to the folder of this file; it was relative to the folder where Topsail was started.", path)
		}
	}
}

// table writes the keys of a struct that differ from their defaults, tables in it with
// dots, and lists of tables not at all.
func (e *exporter) table(table any) {
	given := reflect.ValueOf(table)
	standard := reflect.New(given.Type()).Elem()
	schema.TOML.Defaults(standard)
	for _, k := range leaves("", given.Type()) {
		v, err := given.FieldByIndexErr(k.index)
		if err != nil || isDefault(v, standard, k.index) {
			continue
		}
		text, err := tomlValue(v)
		if err != nil {
			e.err = cmp.Or(e.err, fmt.Errorf("export %s: %w", k.Name, err))
		}
		fmt.Fprintf(&e.text, "%s = %s\n", k.Name, text)
	}
}

// isDefault says whether a field has the value that a file gives it which does not name it.
func isDefault(v, standard reflect.Value, index []int) bool {
	if usual, err := standard.FieldByIndexErr(index); err == nil {
		return same(v, usual)
	}
	return v.IsZero() // of an optional table
}

// same takes a list or map without elements for one that is not there, as JSON does.
func same(a, b reflect.Value) bool {
	switch a.Kind() {
	case reflect.Slice, reflect.Map:
		if a.Len() == 0 && b.Len() == 0 {
			return true
		}
	}
	return reflect.DeepEqual(a.Interface(), b.Interface())
}

// tomlValue is a value of one line, in the units of the file.
func tomlValue(v reflect.Value) (string, error) {
	if t, ok := reflect.TypeAssert[encoding.TextMarshaler](v); ok {
		text, err := t.MarshalText()
		return tomlString(string(text)), err
	}
	if d, ok := reflect.TypeAssert[serving.Duration](v); ok {
		return strconv.FormatInt(d.Std().Microseconds(), 10), nil
	}
	switch v.Kind() {
	case reflect.String:
		return tomlString(v.String()), nil
	case reflect.Float64:
		return tomlFloat(v.Float()), nil
	case reflect.Slice:
		return tomlList(v)
	case reflect.Map:
		return tomlMap(v)
	case reflect.Pointer:
		return tomlPolicy(v.Elem())
	}
	return fmt.Sprint(v.Interface()), nil
}

func tomlList(v reflect.Value) (string, error) {
	var parts []string
	for i := range v.Len() {
		text, err := tomlValue(v.Index(i))
		if err != nil {
			return "", err
		}
		parts = append(parts, text)
	}
	return "[" + strings.Join(parts, ", ") + "]", nil
}

func tomlMap(v reflect.Value) (string, error) {
	members := map[string]string{}
	for key, value := range v.Seq2() {
		text, err := tomlValue(value)
		if err != nil {
			return "", err
		}
		members[tomlString(key.String())] = text
	}
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(members)) {
		parts = append(parts, name+" = "+members[name])
	}
	return "{ " + strings.Join(parts, ", ") + " }", nil
}

// tomlPolicy is a fallback: what it says, and no defaults, since it has none of its own.
func tomlPolicy(v reflect.Value) (string, error) {
	var parts []string
	for f, value := range v.Fields() {
		if same(value, reflect.Zero(f.Type)) {
			continue
		}
		text, err := tomlValue(value)
		if err != nil {
			return "", err
		}
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		parts = append(parts, name+" = "+text)
	}
	return "{ " + strings.Join(parts, ", ") + " }", nil
}

// tomlFloat has a point or an exponent, so that people see that fractions are allowed.
func tomlFloat(x float64) string {
	text := strconv.FormatFloat(x, 'g', -1, 64)
	if strings.ContainsAny(text, ".e") {
		return text
	}
	return text + ".0"
}

// tomlString is a basic string. What is no UTF-8 becomes what JSON makes of it.
func tomlString(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range strings.ToValidUTF8(s, "\ufffd") {
		switch {
		case r == '"' || r == '\\':
			b.WriteRune('\\')
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case r < ' ' || r == 0x7f:
			fmt.Fprintf(&b, `\u%04X`, r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}

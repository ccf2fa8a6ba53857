package config

import (
	"fmt"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
)

// table puts a TOML table into the struct dst. path names the table, and is
// empty for the whole file.
func (l *loader) table(path string, table map[string]any, dst reflect.Value) {
	known := map[string]reflect.StructField{}
	for _, f := range fields(dst.Type()) {
		known[f.Tag.Get("toml")] = f
	}
	for _, name := range keys(table) {
		f, ok := known[name]
		if !ok {
			l.wrong(join(path, name), "unknown key %q%s%s", name, inTable(path), didYouMean(name, keys(known)))
			continue
		}
		l.field(join(path, name), table[name], dst.FieldByIndex(f.Index), f)
	}
}

// field puts one value into its field, which may be a table or a list of them.
func (l *loader) field(path string, v any, dst reflect.Value, f reflect.StructField) {
	switch {
	case isTable(f.Type) || isOptionalTable(f.Type):
		table, ok := v.(map[string]any)
		if !ok {
			l.wrong(path, "%s must be a table, not %s", shortName(path), article(kind(v)))
			return
		}
		if isOptionalTable(f.Type) {
			l.sources[path] = l.file.source(path)
			dst.Set(reflect.New(f.Type.Elem()))
			dst = dst.Elem()
		}
		l.table(path, table, dst)
	case isTableList(f.Type):
		if list, ok := v.([]any); ok {
			l.tables(path, list, dst)
			return
		}
		l.wrong(path, "%s must be a list of tables, not %s: write [[%[1]s]]", path, article(kind(v)))
	default:
		l.leaf(path, v, dst, newLeaf(path, f))
	}
}

// tables puts a list of tables into dst, a slice of structs.
func (l *loader) tables(path string, list []any, dst reflect.Value) {
	all := reflect.MakeSlice(dst.Type(), len(list), len(list))
	for i, v := range list {
		at := element(path, i)
		table, ok := v.(map[string]any)
		if !ok {
			l.wrong(at, "%s must hold tables only, not %s", path, article(kind(v)))
			return
		}
		l.defaults(at+".", all.Index(i))
		l.table(at, table, all.Index(i))
	}
	dst.Set(all)
}

func (l *loader) leaf(path string, v any, dst reflect.Value, k leaf) {
	if err := k.assign(dst, v); err != nil {
		l.wrong(path, "%s %w", shortName(path), err)
	}
	if k.tag.Get("path") != "" {
		l.file.resolve(dst)
	}
	l.sources[path] = l.file.source(path)
}

// resolve makes a relative path in dst, or several, count from the file's folder.
func (f *file) resolve(dst reflect.Value) {
	absolute := func(p string) string {
		if p == "" || filepath.IsAbs(p) {
			return p
		}
		return filepath.Join(f.dir, p)
	}
	switch p := dst.Addr().Interface().(type) {
	case *string:
		*p = absolute(*p)
	case *[]string:
		for i := range *p {
			(*p)[i] = absolute((*p)[i])
		}
	}
}

func keys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

func element(path string, i int) string { return fmt.Sprintf("%s[%d]", path, i) }

// shortName is a path without the number of its app or model, which the
// position in the file tells better.
func shortName(path string) string {
	if _, key, ok := strings.Cut(path, "]."); ok {
		return key
	}
	return path
}

// inTable says which table of the file a path is, the top having no name.
func inTable(path string) string {
	if path == "" {
		return ""
	}
	array, key, ok := strings.Cut(path, "[")
	if !ok {
		return " in [" + path + "]"
	}
	if _, sub, ok := strings.Cut(key, "]."); ok {
		return " in " + sub + " of [[" + array + "]]"
	}
	return " in [[" + array + "]]"
}

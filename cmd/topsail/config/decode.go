package config

import (
	"cmp"
	"fmt"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/topsail-serving/topsail/internal/schema"
)

// tree puts a table of the file, or all of it, into the struct that into points to. Relative paths
// count from the folder of the file.
func (l *loader) tree(document map[string]any, into any) {
	d := schema.Decoder{Syntax: schema.TOML, Set: func(path string, f schema.Field, dst reflect.Value) {
		for at := path; l.sources[at] == ""; at = table(at) {
			l.sources[at] = l.file.source(at)
		}
		if use := f.Tag.Get("addr"); use != "" {
			if err := checkAddr(dst.String(), use); err != nil {
				l.wrong(path, "%s %w", shortName(path), err)
			}
		}
		if f.Tag.Get("path") != "" {
			l.file.resolve(dst)
		}
	}}
	for _, p := range d.Decode("", document, into) {
		l.wrong(p.Path, "%s %s", cmp.Or(shortName(p.Path), "the file"), p.Text)
	}
}

// table is the path of the table that a path is in.
func table(path string) string { return path[:max(0, strings.LastIndexByte(path, '.'))] }

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

func join(path, name string) string { return strings.TrimPrefix(path+"."+name, ".") }

func element(path string, i int) string { return fmt.Sprintf("%s[%d]", path, i) }

// shortName is a path without the number of its app or model, which the position in the file shows
// better.
func shortName(path string) string {
	if _, key, ok := strings.Cut(path, "]."); ok {
		return key
	}
	return path
}

package schema

import (
	"cmp"
	"reflect"
	"slices"
	"strings"
)

// Syntax is how a document is written.
type Syntax uint8

// The syntaxes.
const (
	JSON Syntax = iota
	TOML
)

// Field is a field of a struct as documents have it.
type Field struct {
	reflect.StructField
	Key string // its name in the syntax
}

// Fields are those of struct t that documents have, those of embedded structs among them.
func (s Syntax) Fields(t reflect.Type) []Field {
	var all []Field
	for f := range t.Fields() {
		key := s.key(f)
		if f.Anonymous && key == "" && f.Type.Kind() == reflect.Struct {
			for _, inner := range s.Fields(f.Type) {
				inner.Index = append(slices.Clone(f.Index), inner.Index...)
				all = append(all, inner)
			}
		} else if key != "" && key != "-" {
			all = append(all, Field{f, key})
		}
	}
	return all
}

// key is the name of a field; empty: it has none.
func (s Syntax) key(f reflect.StructField) string {
	key, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	if s == TOML {
		key = cmp.Or(f.Tag.Get("toml"), key)
	}
	return key
}

// Required says that a JSON object must have the field.
func (f Field) Required() bool { return f.Tag.Get("required") != "" }

// Help is one line for people.
func (f Field) Help() string { return f.Tag.Get("help") }

// Default is the value of what is not given, as text; empty: the zero value.
func (f Field) Default() string { return f.Tag.Get("default") }

// Keys are the names of fields.
func Keys(fields []Field) []string {
	names := make([]string, len(fields))
	for i, f := range fields {
		names[i] = f.Key
	}
	return names
}

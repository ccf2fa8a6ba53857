package config

import (
	"reflect"
	"slices"
	"strings"
)

// Key describes one key of the file.
type Key struct {
	Name    string // with its table: "gateway.addr"
	Flag    string // without dashes: "gateway-addr"; empty for the keys of apps, models and streams
	Env     string // "TOPSAIL_GATEWAY_ADDR"; empty for the keys of apps, models and streams
	Type    string // "string", "integer", "float", "boolean", "list of strings" or "of integers", "table of strings", "table of numbers" or "table"
	Default string // as text; empty when there is none
	Help    string // one line
	Secret  bool   // never to be shown
}

// Keys lists every key that there is, for flags and for documentation.
func Keys() []Key {
	var all []Key
	for _, k := range options() {
		all = append(all, k.Key)
	}
	for _, k := range leaves("app.", reflect.TypeFor[appTable]()) {
		all = append(all, k.Key)
	}
	for _, k := range leaves("model.", reflect.TypeFor[modelTable]()) {
		all = append(all, k.Key)
	}
	for _, k := range leaves("stream.", reflect.TypeFor[Stream]()) {
		all = append(all, k.Key)
	}
	for _, k := range leaves("model_stream.", reflect.TypeFor[ModelStream]()) {
		all = append(all, k.Key)
	}
	return all
}

// leaf is a key and the field that takes its value. Beside what stands in Key,
// the tags of the field are
//
//	toml    the name in the file; a field without it is no key
//	min     the least integer
//	enum    the words that are allowed
//	addr    what the address is for: "any", "listen", or "loopback"
//	accept  TOML types that are taken by their text
//	path    a relative path counts from the folder of the file
type leaf struct {
	Key
	index []int // of the field, from the struct that was asked for its leaves
	tag   reflect.StructTag
}

// options are the leaves of Options, which flags and variables can set.
func options() []leaf {
	all := leaves("", reflect.TypeFor[Options]())
	for i := range all {
		words := strings.NewReplacer(".", "_").Replace(all[i].Name)
		all[i].Env = "TOPSAIL_" + strings.ToUpper(words)
		all[i].Flag = strings.ReplaceAll(words, "_", "-")
	}
	return all
}

// leaves lists the keys of struct t and of the structs in it, lists of structs left
// out; prefix comes before their names. A pointer to a struct is one leaf, since what
// it points to may have a pointer of its own type.
func leaves(prefix string, t reflect.Type) []leaf {
	var all []leaf
	for _, f := range fields(t) {
		name := prefix + f.Tag.Get("toml")
		switch {
		case isTable(f.Type):
			for _, k := range leaves(name+".", f.Type) {
				k.index = append(slices.Clip(f.Index), k.index...)
				all = append(all, k)
			}
		case !isTableList(f.Type):
			all = append(all, newLeaf(name, f))
		}
	}
	return all
}

func newLeaf(name string, f reflect.StructField) leaf {
	return leaf{
		Key: Key{
			Name:    name,
			Type:    typeName(f.Type),
			Default: f.Tag.Get("default"),
			Help:    f.Tag.Get("help"),
			Secret:  f.Tag.Get("secret") != "",
		},
		index: f.Index,
		tag:   f.Tag,
	}
}

// fields lists the fields of struct t that are keys of the file.
func fields(t reflect.Type) []reflect.StructField {
	var all []reflect.StructField
	for _, f := range reflect.VisibleFields(t) {
		if f.Tag.Get("toml") != "" {
			all = append(all, f)
		}
	}
	return all
}

func isTable(t reflect.Type) bool         { return t.Kind() == reflect.Struct }
func isOptionalTable(t reflect.Type) bool { return t.Kind() == reflect.Pointer && isTable(t.Elem()) }
func isTableList(t reflect.Type) bool     { return t.Kind() == reflect.Slice && isTable(t.Elem()) }

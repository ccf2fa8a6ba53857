package config

import (
	"reflect"
	"slices"
	"strings"

	"github.com/topsail-serving/topsail/internal/schema"
	"github.com/topsail-serving/topsail/serving"
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
	for _, k := range leaves("app.", reflect.TypeFor[serving.App]()) {
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

// leaf is a key and the field that takes its value. Beside the tags of package schema fields have
//
//	addr    what the address is for: "any", "listen", or "loopback"
//	path    a relative path counts from the folder of the file
//	secret  the value is not to be shown
type leaf struct {
	Key
	field schema.Field
	index []int // of the field, from the struct that was asked for its leaves
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

// leaves lists the keys of struct t and of the structs in it, lists of structs and what
// has one of its own type left out; prefix comes before their names.
func leaves(prefix string, t reflect.Type, within ...reflect.Type) []leaf {
	var all []leaf
	for _, f := range schema.TOML.Fields(t) {
		name, table := prefix+f.Key, f.Type
		if table.Kind() == reflect.Pointer {
			table = table.Elem()
		}
		switch {
		case isTable(table) && !slices.Contains(within, table) && table != t:
			for _, k := range leaves(name+".", table, append(within, t)...) {
				k.index = append(slices.Clip(f.Index), k.index...)
				all = append(all, k)
			}
		case !isTableList(f.Type):
			all = append(all, leaf{field: f, index: f.Index, Key: Key{
				Name: name, Type: typeName(f.Type), Default: f.Default(), Help: f.Help(), Secret: f.Tag.Get("secret") != "",
			}})
		}
	}
	return all
}

func isTable(t reflect.Type) bool     { return t.Kind() == reflect.Struct }
func isTableList(t reflect.Type) bool { return t.Kind() == reflect.Slice && isTable(t.Elem()) }

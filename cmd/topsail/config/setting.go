package config

import (
	"reflect"
	"slices"
)

// Setting is a key with the value that it has and where that came from.
type Setting struct {
	Key           // the name numbers apps, models and streams: "app[0].name"
	Value  string // as text, in the units of the file; "(set)" for a secret
	Source string // "default", "topsail.toml:3", "environment TOPSAIL_X" or "flag --x"
}

// Settings lists what is in force: every option, and of the apps, models and streams
// what the file says or a default gives.
func (c *Config) Settings() []Setting { return slices.Clone(c.settings) }

// ByDefault says whether a key has its default.
func (c *Config) ByDefault(name string) bool {
	i := slices.IndexFunc(c.settings, func(s Setting) bool { return s.Name == name })
	return i < 0 || c.settings[i].Source == sourceDefault
}

func (l *loader) settings() []Setting {
	all := l.inForce(options(), reflect.ValueOf(l.doc.Options))
	for i, t := range l.doc.App {
		all = append(all, l.inForce(leaves(element("app", i)+".", reflect.TypeOf(t)), reflect.ValueOf(t))...)
	}
	for i, t := range l.doc.Model {
		all = append(all, l.inForce(leaves(element("model", i)+".", reflect.TypeOf(t)), reflect.ValueOf(t))...)
	}
	for i, t := range l.doc.Stream {
		all = append(all, l.inForce(leaves(element("stream", i)+".", reflect.TypeOf(t)), reflect.ValueOf(t))...)
	}
	for i, t := range l.doc.ModelStream {
		all = append(all, l.inForce(leaves(element("model_stream", i)+".", reflect.TypeOf(t)), reflect.ValueOf(t))...)
	}
	return all
}

// inForce reads the keys that have a value out of the struct root.
func (l *loader) inForce(ks []leaf, root reflect.Value) []Setting {
	var all []Setting
	for _, k := range ks {
		source := l.sources[k.Name]
		if source == "" && k.Default != "" {
			source = sourceDefault
		}
		// What is in an optional table that is not there has no value.
		if value, err := root.FieldByIndexErr(k.index); source != "" && err == nil {
			all = append(all, Setting{k.Key, k.display(value), source})
		}
	}
	return all
}

package admin

import (
	"io/fs"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/topsail-serving/topsail/internal/schema"
	"github.com/topsail-serving/topsail/serving"
)

// field is a member of a definition, such as serving.App, that a flag sets. The flag is called as
// the member is, or as its tag flag says; "-" has none.
type field struct {
	schema.Field
	path []string // of the member in the document
}

// fieldsOf are the fields of a definition, those of structs in it among them.
func fieldsOf(t reflect.Type, path ...string) []field {
	var all []field
	for _, f := range schema.JSON.Fields(t) {
		at, inner := append(slices.Clone(path), f.Key), f.Type
		if inner.Kind() == reflect.Pointer {
			inner = inner.Elem()
		}
		switch {
		case f.Tag.Get("flag") == "-" || f.Tag.Get("toml") == "-": // the catalog gives the latter
		case inner.Kind() == reflect.Struct:
			all = append(all, fieldsOf(inner, at...)...)
		default:
			all = append(all, field{f, at})
		}
	}
	return all
}

// flag is its name.
func (f field) flag() string {
	if name := f.Tag.Get("flag"); name != "" {
		return name
	}
	return strings.TrimSuffix(strings.ReplaceAll(strings.Join(f.path, "-"), "_", "-"), "-micros")
}

// fieldFlags gives a command the flags of a definition, but for those that it has already.
func fieldFlags(c *cobra.Command, t reflect.Type, defaults bool) {
	for _, f := range fieldsOf(t) {
		if c.Flags().Lookup(f.flag()) != nil {
			continue
		}
		v := &fieldValue{field: f}
		if defaults {
			v.standard = f.standard()
		}
		help := strings.ReplaceAll(f.Help(), ", in microseconds", "")
		if f.repeated() {
			help += "; may be repeated"
		}
		c.Flags().Var(v, f.flag(), help)
		if f.Type.Kind() == reflect.Bool {
			c.Flags().Lookup(f.flag()).NoOptDefVal = "true"
		}
	}
}

func (f field) repeated() bool { return f.Type.Kind() == reflect.Slice || f.Type.Kind() == reflect.Map }

// standard is the default as it is given to the flag.
func (f field) standard() string {
	if f.Type == reflect.TypeFor[serving.Duration]() && f.Default() != "" {
		micros, _ := schema.Parse(f.Default(), f.Type).(int64)
		return (time.Duration(micros) * time.Microsecond).String()
	}
	return f.Default()
}

// fieldValue is what a flag was given. It is judged when all are, as pflag would show a secret that
// is no NAME=VALUE.
type fieldValue struct {
	field
	standard string
	given    []string
}

func (v *fieldValue) String() string { return v.standard }

func (v *fieldValue) Set(text string) error {
	v.given = append(v.given, text)
	return nil
}

// Type is what help shows for the value.
func (v *fieldValue) Type() string {
	switch {
	case v.field.Type == reflect.TypeFor[serving.Duration]():
		return "duration"
	case v.field.Type == reflect.TypeFor[[]serving.Artifact]():
		return "[FOLDER=]CHECKSUM@URL"
	}
	switch v.field.Type.Kind() {
	case reflect.Map:
		return "NAME=VALUE"
	case reflect.Slice:
		return "strings"
	case reflect.Bool:
		return "bool"
	case reflect.Float64:
		return "float"
	case reflect.Int:
		return "int"
	}
	return "string"
}

// members are the members of a definition that flags give, and no others; null takes one away.
func (k *call) members(t reflect.Type) (map[string]any, error) {
	body := map[string]any{}
	for _, f := range fieldsOf(t) {
		given, _ := k.cmd.Flags().Lookup(f.flag()).Value.(*fieldValue)
		if given == nil || len(given.given) == 0 {
			continue
		}
		value, err := given.value()
		if err != nil {
			return nil, err
		}
		object := body
		for _, name := range f.path[:len(f.path)-1] {
			if object[name] == nil {
				object[name] = map[string]any{}
			}
			object = object[name].(map[string]any)
		}
		object[f.path[len(f.path)-1]] = value
	}
	return body, nil
}

// value is what the flag was given, as JSON has it.
func (v *fieldValue) value() (any, error) {
	last := v.given[len(v.given)-1]
	switch {
	case v.field.Type == reflect.TypeFor[serving.Duration]():
		d, err := time.ParseDuration(last)
		if err != nil {
			return nil, misused("--%s must be a time such as 50ms, not %q", v.flag(), last)
		}
		return d.Microseconds(), nil
	case v.field.Type == reflect.TypeFor[[]serving.Artifact]():
		return artifacts(v.given)
	case v.field.Type.Kind() == reflect.Map:
		return variables(v.flag(), v.given)
	case v.field.Type.Kind() == reflect.Slice:
		last = strings.Join(v.given, ",")
	}
	value, err := optionValue(v.field.Type, last)
	if err != nil {
		return nil, misused("--%s %w", v.flag(), err)
	}
	return value, nil
}

// variables are what a flag gives as NAME=VALUE.
func variables(flag string, given []string) (map[string]string, error) {
	all := map[string]string{}
	for _, v := range given {
		name, value, ok := strings.Cut(v, "=")
		if !ok || name == "" {
			return nil, misused("--%s takes NAME=VALUE", flag) // what was given may be a secret
		}
		all[name] = value
	}
	return all, nil
}

// artifacts are the files that nodes are to fetch, as [FOLDER=]CHECKSUM@URL.
func artifacts(given []string) ([]serving.Artifact, error) {
	var list []serving.Artifact
	for _, one := range given {
		checksum, source, ok := strings.Cut(one, "@")
		if !ok || source == "" {
			return nil, misused("--artifact takes CHECKSUM@URL, such as sha256:…@https://models.example/weights.tar.gz, or FOLDER=CHECKSUM@URL")
		}
		folder, sum, named := strings.Cut(checksum, "=")
		if !named {
			folder, sum = "", checksum
		}
		list = append(list, serving.Artifact{Source: source, Checksum: sum, Destination: folder})
	}
	return list, nil
}

// without is a folder that lacks one file at its top.
type without struct {
	fs.FS
	name string
}

func (w without) Open(name string) (fs.File, error) {
	if name == w.name {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return w.FS.Open(name)
}

func (w without) ReadDir(name string) ([]fs.DirEntry, error) {
	entries, err := fs.ReadDir(w.FS, name)
	if name != "." {
		return entries, err
	}
	return slices.DeleteFunc(entries, func(e fs.DirEntry) bool { return e.Name() == w.name }), err
}

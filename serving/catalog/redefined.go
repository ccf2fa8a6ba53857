package catalog

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/topsail-serving/topsail/serving"
)

// Field is a field in which two versions differ, by its name in JSON, with both values; an
// empty one is not there. Secrets are hidden, as Redact does.
type Field struct{ Name, Was, Is string }

func (f Field) String() string {
	switch {
	case f.Was == f.Is:
		return f.Name + " has another secret"
	case f.Was == "":
		return f.Name + " is " + f.Is + ", and was not there"
	case f.Is == "":
		return f.Name + " was " + f.Was + ", and is not there"
	}
	return f.Name + " was " + f.Was + " and is " + f.Is
}

// Redefined are the fields in which v differs from what the version is, of those that its
// answers may depend on.
func Redefined(old, v *serving.Version) []Field {
	return slices.DeleteFunc(differing(old, v), func(f Field) bool { return aside[withoutPlaces(f.Name)] })
}

// aside are the fields that no answer depends on, and those that hold them. Everything else
// counts, so that a field that is new is not forgotten.
var aside = map[string]bool{
	"prepared": true, "description": true, "labels": true,
	"replicas": true, "scale": true, "pin": true, "batch": true, "resources": true,
	"bundle_url": true, "connections": true, "watch": true, "host.memory_mb": true,
	"service.addrs": true, "service.api_key_file": true, "service.ready_path": true, "service.concurrency": true,
	"stages.workers": true, "stages.cpus": true, "stages.max_queue": true, "stages.batch": true, "stages.idempotent": true,
}

// withoutPlaces is the name of a field down to one of aside, without places in lists.
func withoutPlaces(name string) string {
	parts := strings.Split(name, ".")
	for i, part := range parts {
		parts[i], _, _ = strings.Cut(part, "[")
		if above := strings.Join(parts[:i+1], "."); aside[above] {
			return above
		}
	}
	return strings.Join(parts, ".")
}

// differing are the fields in which two versions differ of what was asked for, by name.
func differing(old, v *serving.Version) []Field {
	own, c := *v, comparison{}
	own.Origin, own.Generation, own.Deployed = old.Origin, old.Generation, old.Deployed
	v = &own
	c.compare("", tree(old), tree(v), tree(Redact(old)), tree(Redact(v)))
	slices.SortFunc(c.fields, func(a, b Field) int { return strings.Compare(a.Name, b.Name) })
	return c.fields
}

// tree is a version as JSON has it.
func tree(v *serving.Version) any {
	text, _ := json.Marshal(v) // a version in a catalog came out of JSON: this cannot fail
	var all any
	_ = json.Unmarshal(text, &all)
	return all
}

type comparison struct{ fields []Field }

// compare compares two values of a field, and describes them as they are shown.
func (c *comparison) compare(name string, was, is, wasShown, isShown any) {
	if reflect.DeepEqual(was, is) {
		return
	}
	x, ok := was.(map[string]any)
	y, both := is.(map[string]any)
	if ok && both || name == "" {
		xShown, _ := wasShown.(map[string]any)
		yShown, _ := isShown.(map[string]any)
		names := maps.Clone(x)
		maps.Copy(names, y)
		for part := range names {
			c.compare(strings.TrimPrefix(name+"."+part, "."), x[part], y[part], xShown[part], yShown[part])
		}
		return
	}
	if x, y, ok := lists(was, is); ok {
		xShown, yShown, _ := lists(wasShown, isShown)
		for i := range x {
			c.compare(fmt.Sprintf("%s[%d]", name, i), x[i], y[i], xShown[i], yShown[i])
		}
		return
	}
	c.fields = append(c.fields, Field{name, shown(wasShown), shown(isShown)})
}

// lists are two values that are lists of objects of one length.
func lists(was, is any) (x, y []any, ok bool) {
	x, _ = was.([]any)
	y, _ = is.([]any)
	object := func(one any) bool { _, is := one.(map[string]any); return !is }
	return x, y, len(x) == len(y) && len(x) > 0 && !slices.ContainsFunc(slices.Concat(x, y), object)
}

// maxShown bounds how much of a value is shown, in bytes.
const maxShown = 200

func shown(value any) string {
	if value == nil {
		return ""
	}
	text, _ := json.Marshal(value) // it came out of JSON
	if len(text) > maxShown {
		return strings.ToValidUTF8(string(text[:maxShown]), "") + "…"
	}
	return string(text)
}

// redefined is why a version is not put in place of the one of its name.
func redefined(id serving.ModelID, fields []Field) error {
	return fmt.Errorf("%s %w with another definition, and versions are immutable: %s; use a new version name, or replace it (--replace, in the API replace=true), which creates a new generation",
		describe(id), ErrExists, sentence(fields))
}

// sentence lists fields one after another.
func sentence(fields []Field) string {
	texts := make([]string, len(fields))
	for i, f := range fields {
		texts[i] = f.String()
	}
	return strings.Join(texts, ", ")
}

package conformance

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/topsail-serving/topsail/internal/schema"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/serving/bundle"
	"github.com/topsail-serving/topsail/test/require"
	"github.com/topsail-serving/topsail/web/api"
)

// definitions are the types of what the document describes by its own schemas.
var definitions = map[string]reflect.Type{
	"App":          reflect.TypeFor[serving.App](),
	"Policy":       reflect.TypeFor[serving.PolicySpec](),
	"Limit":        reflect.TypeFor[serving.Limit](),
	"Version":      reflect.TypeFor[api.Version](),
	"VersionStage": reflect.TypeFor[serving.Stage](),
	"Scale":        reflect.TypeFor[serving.ScaleSpec](),
	"Pin":          reflect.TypeFor[serving.Pin](),
	"Deployed":     reflect.TypeFor[serving.Deployed](),
	"Performance":  reflect.TypeFor[api.Performance](),
	"Manifest":     reflect.TypeFor[bundle.Manifest](),
	"Replica":      reflect.TypeFor[api.Replica](),
	"NewKey":       reflect.TypeFor[api.NewKey](),
	"Key":          reflect.TypeFor[api.KeyWithSecret](),
	"Model":        reflect.TypeFor[api.Model](),
	"Job":          reflect.TypeFor[api.Job](),
	"Artifact":     reflect.TypeFor[api.Artifact](),
	"Decision":     reflect.TypeFor[serving.Decision](),
	"Stream":       reflect.TypeFor[api.Stream](),
	"StreamNow":    reflect.TypeFor[api.StreamNow](),
	"Suspension":   reflect.TypeFor[serving.Suspension](),
	"Insight":      reflect.TypeFor[api.Insight](),
	"ModelInsight": reflect.TypeFor[api.ModelInsight](),
	"ModelChange":  reflect.TypeFor[api.ModelChange](),
}

// taken are the schemas of requests, whose members are required as the type says. A stage of an app
// needs a model, too.
var taken = []string{"App", "Policy", "Limit", "Version", "VersionStage", "Scale", "Pin", "NewKey"}

// partial are the members that a schema leaves out.
var partial = map[string][]string{
	"App.stages":     {"code", "workers", "cpus", "cpus_per_worker", "max_queue", "batch", "idempotent"}, // of the stages of a version
	"VersionStage":   {"model", "app"},                                                                   // of the stages of an app
	"Version.stages": {"model", "app"},
	"Key":            {"hash"},
}

// TestSchemasAreThoseOfTheDefinitions compares the document with the types that are read and
// written: a field that one of them lacks is forgotten there.
func TestSchemasAreThoseOfTheDefinitions(t *testing.T) {
	doc, err := openapi3.NewLoader().LoadFromData(ask(t, served(t), "GET", "/openapi.yaml", "").Body.Bytes())
	require.NoError(t, err)
	for name, definition := range definitions {
		s := doc.Components.Schemas[name]
		if s == nil {
			t.Errorf("the document has no schema %s", name)
			continue
		}
		compareObject(t, name, s.Value, definition)
	}
}

// whole is a schema with the members of those that it is made of.
func whole(s *openapi3.Schema) *openapi3.Schema {
	if len(s.AllOf) == 0 {
		return s
	}
	all := &openapi3.Schema{Type: &openapi3.Types{"object"}, Properties: openapi3.Schemas{}}
	for _, part := range append(s.AllOf, &openapi3.SchemaRef{Value: &openapi3.Schema{Properties: s.Properties, Required: s.Required}}) {
		inner := whole(part.Value)
		maps.Copy(all.Properties, inner.Properties)
		all.Required = append(all.Required, inner.Required...)
	}
	return all
}

func compareObject(t *testing.T, path string, s *openapi3.Schema, definition reflect.Type) {
	s = whole(s)
	fields := schema.JSON.Fields(definition)
	for name := range s.Properties {
		if !slices.Contains(schema.Keys(fields), name) {
			t.Errorf("%s.%s is in the document alone", path, name)
		}
	}
	root, _, _ := strings.Cut(path, ".")
	takes := slices.Contains(taken, root) && path != "App.stages"
	for _, f := range fields {
		member, at := s.Properties[f.Key], path+"."+f.Key
		switch {
		case slices.Contains(partial[path], f.Key):
		case member == nil:
			t.Errorf("%s is not in the document", at)
		default:
			if takes && slices.Contains(s.Required, f.Key) != f.Required() {
				t.Errorf("%s: it is required: %v, and in the document: %v", at, f.Required(), !f.Required())
			}
			if !f.Required() && f.Default() != "" && documented(member.Value.Default) != f.Default() {
				t.Errorf("%s: by default %s, and in the document %v", at, f.Default(), member.Value.Default)
			}
			if least, err := strconv.ParseFloat(f.Tag.Get("min"), 64); err == nil && (member.Value.Min == nil || *member.Value.Min != least) {
				t.Errorf("%s: at least %v, and in the document %v", at, least, member.Value.Min)
			}
			compare(t, at, member.Value, f.Type)
		}
	}
}

func documented(value any) string {
	text, _ := json.Marshal(value)
	return string(text)
}

// compare holds what a member is against the type of its field.
func compare(t *testing.T, path string, s *openapi3.Schema, of reflect.Type) {
	if of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	want := kindOf(of)
	if want != "" && !whole(s).Type.Is(want) {
		t.Errorf("%s is %v in the document, and not %s", path, s.Type, want)
		return
	}
	switch {
	case want == "array" && kindOf(of.Elem()) == "object" && of.Elem().Kind() == reflect.Struct && len(s.Items.Value.Properties) > 0:
		compareObject(t, path, s.Items.Value, of.Elem())
	case want == "array":
		compare(t, path+"[]", s.Items.Value, of.Elem())
	case want == "object" && of.Kind() == reflect.Struct && definitionOf(of) == "":
		compareObject(t, path, s, of)
	}
}

// definitionOf is the name of the schema that a type has of its own; empty: none.
func definitionOf(of reflect.Type) string {
	for name, definition := range definitions {
		if definition == of {
			return name
		}
	}
	return ""
}

// kindOf is what a type is in JSON; empty: anything.
func kindOf(of reflect.Type) string {
	switch {
	case of == reflect.TypeFor[json.RawMessage](), of.Kind() == reflect.Interface:
		return ""
	case of == reflect.TypeFor[time.Time](), of == reflect.TypeFor[serving.InputType](), of == reflect.TypeFor[serving.ElementType]():
		return "string"
	}
	switch of.Kind() {
	case reflect.String:
		return "string"
	case reflect.Bool:
		return "boolean"
	case reflect.Float64:
		return "number"
	case reflect.Slice:
		return "array"
	case reflect.Map, reflect.Struct:
		return "object"
	}
	return "integer"
}

package conformance

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/topsail-serving/topsail/internal/schema"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/test/require"
)

// TestPoliciesAreThoseOfTheContract holds the kinds of policies and their options against the contract: others make forms of it.
func TestPoliciesAreThoseOfTheContract(t *testing.T) {
	policy := load(t, served(t))["putPolicy"].RequestBody.Value.Content["application/json"].Schema.Value
	options := schema.Keys(schema.JSON.Fields(reflect.TypeFor[serving.PolicySpec]()))
	if got := slices.Sorted(maps.Keys(policy.Properties)); !slices.Equal(got, slices.Sorted(slices.Values(options))) {
		t.Fatalf("policies have %v, and in the contract %v", options, got)
	}
	var kinds map[string]struct {
		Options []string
		Learns  bool
	}
	require.NoError(t, convert(policy.Extensions["x-kinds"], &kinds))
	if got := slices.Sorted(maps.Keys(kinds)); !slices.Equal(got, serving.PolicyKinds()) {
		t.Errorf("there are %v, and in the contract %v", serving.PolicyKinds(), got)
	}
	named := []string{}
	for _, name := range policy.Properties["kind"].Value.Enum {
		named = append(named, fmt.Sprint(name))
	}
	if want := append([]string{""}, serving.PolicyKinds()...); !slices.Equal(slices.Sorted(slices.Values(named)), want) {
		t.Errorf("kind can be %q, and in the contract %q", want, named)
	}
	every := []string{"kind", "loss", "scale", "costs", "record_seconds"}
	for name, kind := range kinds {
		if spec := (serving.PolicySpec{Kind: name}); spec.Learns() != kind.Learns {
			t.Errorf("%s learns: %v, and in the contract %v", name, spec.Learns(), kind.Learns)
		}
		for _, option := range options {
			has := option == "kind" || takes(t, name, option, policy.Properties[option])
			if says := slices.Contains(every, option) || slices.Contains(kind.Options, option); has != says {
				t.Errorf("%s takes %s: %v, and in the contract %v", name, option, has, says)
			}
		}
	}
}

// takes says whether policies of a kind have an option, which is given as the contract says.
func takes(t *testing.T, kind, option string, of *openapi3.SchemaRef) bool {
	t.Helper()
	app := serving.App{Name: "a", InputType: serving.Doubles}
	if err := convert(map[string]any{"kind": kind, option: example(of.Value)}, &app.Policy); err != nil {
		t.Errorf("%s of %s: %v", option, kind, err)
	}
	return !strings.Contains(fmt.Sprint(app.Check()), "has no option "+option+":")
}

// example is a value of a schema that is not empty.
func example(of *openapi3.Schema) any {
	switch {
	case len(of.Enum) > 0:
		return of.Enum[1]
	case of.Type.Is("object") && of.AdditionalProperties.Schema != nil:
		return map[string]any{"a": 1}
	case of.Type.Is("object"):
		return map[string]any{"kind": "single"}
	case of.Type.Is("array"):
		return []string{"a"}
	case of.Type.Is("boolean"):
		return true
	case of.Type.Is("string"):
		return "a"
	}
	return 1
}

// convert puts a value into a struct, by way of JSON.
func convert(value, into any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, into)
}

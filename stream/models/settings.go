package models

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"

	"github.com/topsail-serving/topsail/internal/schema"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/serving/bundle"
)

// What a version has beside the model itself are its settings: members of serving.Version, as the
// management API names them. Those of a message are a merge patch of the version that it replaces,
// as RFC 7396 has it.

// apart says which members of a version are no settings: a message names them in its own way, they
// are about what runs, which is the bundle that the message brings, or the catalog gives them.
func apart(member string) bool {
	switch member {
	case "model", "version", "description", inputType, inputLength,
		"command", "dir", "watch", "image", "container_addr", "container_port", "protocol", "connections", "bundle", "bundle_url",
		"service", "prepared", "generation", "pin", "origin", "deployed":
		return true
	}
	return false
}

// settingNames are the names of all settings.
func settingNames() []string {
	return slices.DeleteFunc(schema.Keys(schema.JSON.Fields(reflect.TypeFor[serving.Version]())), apart)
}

// readSettings checks settings that came as JSON, and returns them as they are compared: the same
// settings are the same bytes. None are nil.
func readSettings(text []byte) (json.RawMessage, error) {
	tree, err := schema.ParseJSON(text)
	if err != nil {
		return nil, err
	}
	settings, ok := tree.(map[string]any)
	if !ok {
		return nil, errors.New("the settings of a version must be a JSON object")
	}
	if len(settings) == 0 {
		return nil, nil
	}
	known := settingNames()
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		if !slices.Contains(known, name) {
			return nil, unknown(name, known)
		}
	}
	d := schema.Decoder{Partial: true}
	if problems := d.Decode("", tree, new(serving.Version)); len(problems) > 0 {
		return nil, problems[0]
	}
	return json.Marshal(plain(settings))
}

// unknown refuses a member that a message cannot have.
func unknown(name string, known []string) error {
	if apart(name) {
		return fmt.Errorf("%q is not for messages: what runs is the model of the message, and the catalog gives the rest", name)
	}
	return fmt.Errorf("%.100q is unknown%s", name, schema.DidYouMean(name, known))
}

// plain is a patch in which equal values are written alike.
func plain(patch map[string]any) map[string]any {
	for name, value := range patch {
		switch value := value.(type) {
		case map[string]any:
			patch[name] = plain(value)
		case []any:
			patch[name] = nil // as protobuf has it
			if len(value) > 0 {
				patch[name] = plainList(value)
			}
		case json.Number:
			patch[name] = plainNumber(value)
		}
	}
	return patch
}

// plainList is for lists, which are no patches: what is empty in them is left out.
func plainList(list []any) []any {
	for i, value := range list {
		switch value := value.(type) {
		case map[string]any:
			maps.DeleteFunc(plain(value), func(_ string, v any) bool { return v == nil })
		case []any:
			plainList(value)
		case json.Number:
			list[i] = plainNumber(value)
		}
	}
	return list
}

// plainNumber is a number, a whole one without a point where it is exact.
func plainNumber(n json.Number) any {
	x, err := n.Float64()
	switch {
	case err != nil:
		return n
	case x == math.Trunc(x) && math.Abs(x) < 1<<53:
		return int64(x)
	}
	return x
}

// members are settings as a tree.
func members(settings json.RawMessage) map[string]any {
	tree, _ := schema.ParseJSON(settings) // none are no document
	all, _ := tree.(map[string]any)
	return all
}

// settled are the members of the version that the model makes in the place of another one, as the
// API shows that; nil: there is none.
func (m *Model) settled(replaced map[string]any) map[string]any {
	own, taken := members(m.Settings), map[string]any{}
	for _, name := range append(settingNames(), inputType, inputLength) {
		if value, has := replaced[name]; has && m.takes(name, own) {
			taken[name] = value
		}
	}
	all := schema.Merge(taken, own)
	if m.InputType != "" {
		all[inputType], all[inputLength] = m.InputType, m.InputLength
	}
	if m.HostedBy != "" {
		all[hostedBy] = m.HostedBy
	}
	return all
}

const (
	inputType   = "input_type"
	inputLength = "input_length"
)

// takes says whether a member of the version before is one of the model's, too, as far as the
// model does not say otherwise: not where it is about another kind of version.
func (m *Model) takes(member string, own map[string]any) bool {
	switch member {
	case inputType, inputLength, "signature": // all of them or none
		return m.InputType == "" && own["signature"] == nil && m.Kind != bundleKind
	case "stages":
		return m.HostedBy == "" && slices.Contains([]string{"python", bundle.CommandRuntime, bundleKind}, m.Kind)
	case "batch":
		return own["stages"] == nil // which have their own
	case "host":
		return m.HostedBy == "" && m.InputType == ""
	case "replicas", "scale", "resources", "env", "driver", "artifacts", "secrets":
		return m.HostedBy == "" // whose host has them
	}
	return true
}

package models

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	modelspb "github.com/topsail-serving/topsail/stream/models/proto"
)

// hostedBy is a setting that a field of messages had before there were settings.
const hostedBy = "hosted_by"

// settingsOf are the settings of a message: its fields of their names, and without a null for each.
func settingsOf(m *modelspb.Model) (json.RawMessage, error) {
	settings, known := map[string]any{}, settingNames()
	m.ProtoReflect().Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		if name := string(f.Name()); name != hostedBy && slices.Contains(known, name) {
			settings[name] = valueOf(f, v)
		}
		return true
	})
	for _, path := range m.Without {
		if err := leaveOut(settings, m.ProtoReflect().Descriptor(), path); err != nil {
			return nil, err
		}
	}
	if len(settings) == 0 {
		return nil, nil
	}
	text, err := json.Marshal(settings)
	if err != nil {
		return nil, errors.New("a number is not finite")
	}
	return readSettings(text)
}

// valueOf is the value of a field as JSON has it.
func valueOf(f protoreflect.FieldDescriptor, v protoreflect.Value) any {
	switch {
	case f.IsMap():
		object := map[string]any{}
		v.Map().Range(func(k protoreflect.MapKey, v protoreflect.Value) bool {
			object[k.String()] = v.Interface()
			return true
		})
		return object
	case f.IsList():
		list := []any{}
		for i := range v.List().Len() {
			list = append(list, single(f, v.List().Get(i)))
		}
		return list
	}
	return single(f, v)
}

// single is a value that is no list.
func single(f protoreflect.FieldDescriptor, v protoreflect.Value) any {
	if f.Message() == nil {
		return v.Interface()
	}
	object := map[string]any{}
	v.Message().Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		object[string(f.Name())] = valueOf(f, v)
		return true
	})
	return object
}

// leaveOut puts null where a path leads, in the place of what is there.
func leaveOut(settings map[string]any, of protoreflect.MessageDescriptor, path string) error {
	name, rest, deeper := strings.Cut(path, ".")
	f := of.Fields().ByName(protoreflect.Name(name))
	if f == nil || deeper && (f.Message() == nil || f.IsList()) {
		return fmt.Errorf("without names %.100q, which is no setting", path)
	}
	if !deeper {
		settings[name] = nil
		return nil
	}
	inner, ok := settings[name].(map[string]any)
	if !ok {
		inner = map[string]any{}
		settings[name] = inner
	}
	if f.IsMap() {
		inner[rest] = nil
		return nil
	}
	return leaveOut(inner, f.Message(), rest)
}

// setSettings gives a message settings, if they are that.
func setSettings(m *modelspb.Model, settings json.RawMessage) error {
	if len(settings) == 0 {
		return nil
	}
	text, err := readSettings(settings)
	if err != nil {
		return err
	}
	tree := members(text)
	m.Without = without(tree, "")
	if text, err = json.Marshal(tree); err != nil {
		return err
	}
	var of modelspb.Model
	if err := protojson.Unmarshal(text, &of); err != nil {
		return err
	}
	proto.Merge(m, &of)
	return nil
}

// without takes all nulls out of settings, and returns where they were.
func without(settings map[string]any, path string) (paths []string) {
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		switch value := settings[name].(type) {
		case nil:
			delete(settings, name)
			paths = append(paths, path+name)
		case map[string]any:
			paths = append(paths, without(value, path+name+".")...)
		}
	}
	return paths
}

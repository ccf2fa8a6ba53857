package mapping

import (
	"context"
	"errors"
	"fmt"

	"github.com/bufbuild/protocompile"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"
)

// protoSchema is a file of protobuf's language.
type protoSchema struct{ file protoreflect.FileDescriptor }

// schemaPath is what a schema is called that has no path of its own.
const schemaPath = "schema.proto"

// compileProto compiles a schema with those that it imports.
func compileProto(s Schema) (*protoSchema, error) {
	sources := map[string]string{schemaPath: s.Text}
	for _, r := range s.References {
		sources[r.Name] = r.Text
	}
	compiler := protocompile.Compiler{
		Resolver: protocompile.WithStandardImports(&protocompile.SourceResolver{Accessor: protocompile.SourceAccessorFromMap(sources)}),
	}
	files, err := compiler.Compile(context.Background(), schemaPath)
	if err != nil {
		return nil, fmt.Errorf("%w: it is not a protobuf schema: %w", ErrBadSchema, err)
	}
	return &protoSchema{files[0]}, nil
}

// of finds a message by its indexes among its neighbours, from the outermost one inwards.
func (s *protoSchema) of(indexes []int) (codec, error) {
	within, found := s.file.Messages(), protoreflect.MessageDescriptor(nil)
	for _, i := range indexes {
		if i < 0 || i >= within.Len() {
			return nil, fmt.Errorf("its schema has no message of the indexes %v", indexes)
		}
		found = within.Get(i)
		within = found.Messages()
	}
	if found == nil {
		return nil, errors.New("its schema has no message")
	}
	return protoCodec{found}, nil
}

// named finds a message by its full name.
func (s *protoSchema) named(message string) (codec, error) {
	found := findMessage(s.file.Messages(), protoreflect.FullName(message))
	if found == nil {
		return nil, fmt.Errorf("there is no message %.100q: give its full name, with the package", message)
	}
	return protoCodec{found}, nil
}

func findMessage(among protoreflect.MessageDescriptors, name protoreflect.FullName) protoreflect.MessageDescriptor {
	for i := range among.Len() {
		m := among.Get(i)
		if m.FullName() == name {
			return m
		}
		if inner := findMessage(m.Messages(), name); inner != nil {
			return inner
		}
	}
	return nil
}

// describedProto is the codec of a message of a descriptor set, as protoc --descriptor_set_out writes it.
func describedProto(set []byte, message string) (codec, error) {
	var all descriptorpb.FileDescriptorSet
	if err := proto.Unmarshal(set, &all); err != nil {
		return nil, fmt.Errorf("it is not a descriptor set; make it with protoc --include_imports --descriptor_set_out: %w", err)
	}
	files, err := protodesc.NewFiles(&all)
	if err != nil {
		return nil, fmt.Errorf("the descriptor set is not complete; make it with protoc --include_imports: %w", err)
	}
	found, err := files.FindDescriptorByName(protoreflect.FullName(message))
	if err != nil {
		return nil, fmt.Errorf("there is no message %.100q: give its full name, with the package", message)
	}
	m, isMessage := found.(protoreflect.MessageDescriptor)
	if !isMessage {
		return nil, fmt.Errorf("%.100q is not a message", message)
	}
	return protoCodec{m}, nil
}

// protoCodec is that of one message.
type protoCodec struct {
	message protoreflect.MessageDescriptor
}

func (c protoCodec) decode(value []byte) (any, error) {
	m, err := c.unmarshal(value)
	if err != nil {
		return nil, fmt.Errorf("it is not a message %s: %w", c.message.FullName(), err)
	}
	left := maxValues
	return protoTree(m, &left)
}

// unmarshal reads a message. The library panics at an entry of a map whose key comes a second time and in
// another type.
func (c protoCodec) unmarshal(value []byte) (m protoreflect.Message, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("a map has a wrong entry: %v", r)
		}
	}()
	made := dynamicpb.NewMessage(c.message)
	return made, proto.UnmarshalOptions{RecursionLimit: maxDepth}.Unmarshal(value, made)
}

// encode writes a tree by way of its JSON. What the message has no field for is left out.
func (c protoCodec) encode(tree any) ([]byte, error) {
	text, err := appendJSON(nil, tree)
	if err != nil {
		return nil, err
	}
	m := dynamicpb.NewMessage(c.message)
	if err := (protojson.UnmarshalOptions{DiscardUnknown: true, RecursionLimit: maxDepth}).Unmarshal(text, m); err != nil {
		return nil, err
	}
	return proto.MarshalOptions{Deterministic: true}.Marshal(m)
}

// maxValues bounds the values of a message: two bytes can stand for a message with every field unset.
const maxValues = 1 << 20

var errTooMany = fmt.Errorf("it has more than %d values", maxValues)

// protoTree is a message as a tree, by the names of its fields. Fields that can be unset, and are, are
// missing.
func protoTree(m protoreflect.Message, left *int) (any, error) {
	if known, is, err := wellKnown(m, left); is {
		return known, err
	}
	fields := m.Descriptor().Fields()
	if *left -= fields.Len(); *left < 0 {
		return nil, errTooMany
	}
	tree := make(map[string]any, fields.Len())
	for i := range fields.Len() {
		f := fields.Get(i)
		if f.HasPresence() && !m.Has(f) {
			continue
		}
		value, err := protoField(f, m.Get(f), left)
		if err != nil {
			return nil, err
		}
		tree[string(f.Name())] = value
	}
	return tree, nil
}

func protoField(f protoreflect.FieldDescriptor, v protoreflect.Value, left *int) (any, error) {
	switch {
	case f.IsList():
		return protoList(f, v.List(), left)
	case f.IsMap():
		return protoMap(f, v.Map(), left)
	}
	return protoValue(f, v, left)
}

func protoList(f protoreflect.FieldDescriptor, list protoreflect.List, left *int) (any, error) {
	if *left -= list.Len(); *left < 0 {
		return nil, errTooMany
	}
	all := make([]any, list.Len())
	for i := range all {
		var err error
		if all[i], err = protoValue(f, list.Get(i), left); err != nil {
			return nil, err
		}
	}
	return all, nil
}

func protoMap(f protoreflect.FieldDescriptor, entries protoreflect.Map, left *int) (any, error) {
	if *left -= entries.Len(); *left < 0 {
		return nil, errTooMany
	}
	all := make(map[string]any, entries.Len())
	var failed error
	entries.Range(func(key protoreflect.MapKey, v protoreflect.Value) bool {
		all[key.String()], failed = protoValue(f.MapValue(), v, left)
		return failed == nil
	})
	return all, failed
}

func protoValue(f protoreflect.FieldDescriptor, v protoreflect.Value, left *int) (any, error) {
	switch f.Kind() {
	case protoreflect.MessageKind, protoreflect.GroupKind:
		return protoTree(v.Message(), left)
	case protoreflect.BytesKind:
		return append([]byte{}, v.Bytes()...), nil // not nil where there are none
	case protoreflect.EnumKind:
		if named := f.Enum().Values().ByNumber(v.Enum()); named != nil {
			return string(named.Name()), nil
		}
		return int32(v.Enum()), nil
	}
	return v.Interface(), nil
}

// wellKnown is a message of google.protobuf as its JSON has it, and one that wraps a value as that.
func wellKnown(m protoreflect.Message, left *int) (tree any, is bool, err error) {
	d := m.Descriptor()
	if d.ParentFile().Package() != "google.protobuf" {
		return nil, false, nil
	}
	switch d.Name() {
	case "Any", "Empty":
		return nil, false, nil // what is in it would have to be known
	case "BoolValue", "BytesValue", "DoubleValue", "FloatValue", "Int32Value", "Int64Value", "StringValue", "UInt32Value", "UInt64Value":
		f := d.Fields().ByName("value")
		tree, err = protoValue(f, m.Get(f), left)
		return tree, true, err
	}
	text, err := protojson.Marshal(m.Interface())
	if err == nil {
		tree, err = ParseJSON(text)
	}
	return tree, true, err
}

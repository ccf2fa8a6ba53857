package mapping

import (
	"context"
	"errors"
	"fmt"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/stream"
)

// UnknownSchema is why a record is rejected whose schema the registry does not know.
const UnknownSchema stream.Reason = "unknown_schema"

// maxName bounds the texts that a record gives, in bytes.
const maxName = 256

var errMissing = errors.New("it is missing in the record")

// Mapping reads the records of a topic. Many goroutines use it.
type Mapping struct {
	format  Format
	codec   codec    // of values without a frame; nil: all have one
	schemas *schemas // nil: records are written without one

	input   *Source // nil: the value
	fields  []Source
	tensors map[string]Source

	id, key, app, user, context *Source // nil: the record does not say
}

// New makes a mapping; registry may be nil.
func New(cfg Config, registry Registry) (*Mapping, error) {
	if err := cfg.Check(registry != nil); err != nil {
		return nil, err
	}
	m := &Mapping{format: cfg.Format}
	var err error
	switch {
	case registry != nil && cfg.Format.hasPaths() && cfg.SchemaFile == "":
		m.schemas = newSchemas(registry)
		if cfg.Format == JSON {
			m.codec = plainCodec(JSON)
		}
	case cfg.Format.hasSchema():
		m.codec, _, err = fileCodec(cfg.Format, cfg.SchemaFile, cfg.Message)
	default:
		m.codec = plainCodec(cfg.Format)
	}
	if err != nil {
		return nil, err
	}
	m.input, m.id, m.key = source(cfg.Input), source(cfg.ID), source(cfg.Key)
	m.app, m.user, m.context = source(cfg.App), source(cfg.User), source(cfg.Context)
	for _, text := range cfg.Fields {
		m.fields = append(m.fields, *source(orRoot(text)))
	}
	if len(cfg.Inputs) > 0 {
		m.tensors = make(map[string]Source, len(cfg.Inputs))
	}
	for name, text := range cfg.Inputs {
		m.tensors[name] = *source(orRoot(text))
	}
	return m, nil
}

// source is a source that has been checked; nil: there is none.
func source(text string) *Source {
	if text == "" {
		return nil
	}
	s, err := ParseSource(text)
	if err != nil {
		return nil
	}
	return &s
}

func orRoot(text string) string {
	if text == "" {
		return "$"
	}
	return text
}

// Record is one that is read.
type Record struct {
	ID, Key, User, Context string
	Apps                   []string // that it names

	mapping *Mapping
	record  *serving.StreamRecord
	value   []byte // without what the registry's serializers put before it
	tree    any
}

// Read reads a record. Its error is a stream.Rejection, or that of a registry that is unavailable:
// the record is to be read again.
func (m *Mapping) Read(ctx context.Context, r *serving.StreamRecord) (*Record, error) {
	read := &Record{mapping: m, record: r}
	if err := read.decode(ctx); err != nil {
		return nil, err
	}
	read.ID = r.Stream + "/" + r.Place
	for _, one := range []struct {
		name string
		from *Source
		into *string
	}{{"id", m.id, &read.ID}, {"key", m.key, &read.Key}, {"user", m.user, &read.User}, {"context", m.context, &read.Context}} {
		if one.from == nil {
			continue
		}
		var err error
		if *one.into, err = read.name(*one.from); err != nil {
			return nil, stream.Rejected(stream.Unreadable, "%s, from %v: %v", one.name, one.from, err)
		}
	}
	if m.app != nil {
		var err error
		if read.Apps, err = read.names(*m.app); err != nil {
			return nil, stream.Rejected(stream.Unreadable, "app, from %v: %v", m.app, err)
		}
	}
	if read.ID == "" {
		return nil, stream.Rejected(stream.NoID, "the record has no id at %v: give it one, or leave id out of the stream's record to use the offset", m.id)
	}
	return read, nil
}

// decode makes the tree of the record's value.
func (r *Record) decode(ctx context.Context) (err error) {
	m, with := r.mapping, r.mapping.codec
	r.value = r.record.Value
	if len(r.value) == 0 && m.format != Text {
		return stream.Rejected(stream.Unreadable, "the record has no value")
	}
	if m.schemas != nil && (m.format != JSON || r.value[0] == frameMagic) { // JSON comes with a frame or without
		if with, err = r.unframe(ctx); err != nil {
			return err
		}
	}
	if r.tree, err = with.decode(r.value); err != nil {
		return stream.Rejected(stream.Unreadable, "the value cannot be read as %v: %v", m.format, err)
	}
	return nil
}

// unframe takes off what stands before the value, and finds the codec of its schema.
func (r *Record) unframe(ctx context.Context) (codec, error) {
	m := r.mapping
	f, err := parseFrame(r.value, m.format)
	if err != nil {
		return nil, stream.Rejected(stream.Unreadable, "the value is not in the registry's wire format: %v", err)
	}
	r.value = f.value
	if !m.format.hasSchema() {
		return plainCodec(m.format), nil
	}
	all, err := m.schemas.get(ctx, f.id)
	switch {
	case errors.Is(err, ErrUnavailable):
		return nil, err
	case errors.Is(err, ErrUnknownSchema):
		return nil, stream.Rejected(UnknownSchema, "schema %d: %v; was the record written with another registry?", f.id, err)
	case err != nil:
		return nil, stream.Rejected(UnknownSchema, "schema %d: %v", f.id, err)
	}
	if !fits(all, m.format) {
		return nil, stream.Rejected(stream.Unreadable, "schema %d is not one of %v, which the stream's records are", f.id, m.format)
	}
	one, err := all.of(f.indexes)
	if err != nil {
		return nil, stream.Rejected(stream.Unreadable, "schema %d: %v", f.id, err)
	}
	return one, nil
}

// fits says whether a schema is of a format.
func fits(c frameCodec, format Format) bool {
	switch c.(type) {
	case avroCodec:
		return format == Avro
	case *protoSchema:
		return format == Protobuf
	}
	return format == JSON
}

// name is a value as a name; empty where there is none.
func (r *Record) name(from Source) (string, error) {
	v, found := from.of(r.record, r.tree)
	if !found {
		return "", nil
	}
	return nameOf(v)
}

// names are the names at a source: one, or those of a list.
func (r *Record) names(from Source) (names []string, err error) {
	v, _ := from.of(r.record, r.tree)
	all, is := v.([]any)
	if !is {
		all = []any{v}
	}
	if len(all) > serving.MaxRecordApps {
		return nil, fmt.Errorf("there are %d, and at most %d are possible", len(all), serving.MaxRecordApps)
	}
	for _, one := range all {
		name, err := nameOf(one)
		if err != nil {
			return nil, err
		}
		if name != "" {
			names = append(names, name)
		}
	}
	return names, nil
}

// nameOf is a value as a name; null is none.
func nameOf(v any) (string, error) {
	if v == nil {
		return "", nil
	}
	text, err := textOf(v)
	if err == nil && len(text) > maxName {
		err = fmt.Errorf("it has %d bytes: use at most %d", len(text), maxName)
	}
	return text, err
}

// Input is the input of an app that takes inputs of type t, or where that is tensors, these ones.
func (r *Record) Input(t serving.InputType, inputs []serving.Tensor) (serving.Input, error) {
	switch m := r.mapping; {
	case len(m.fields) > 0:
		return r.vector(t)
	case m.tensors != nil:
		return r.named(t, inputs)
	case m.input != nil:
		v, err := r.find(*m.input)
		if err != nil {
			return serving.Input{}, err
		}
		in, err := inputOf(v, t, inputs)
		return in, at(*m.input, err)
	}
	in, err := inputOf(r.tree, t, inputs)
	if err != nil {
		err = fmt.Errorf("the value: %w", err)
	}
	return in, err
}

// find is what is at a source, which must be there.
func (r *Record) find(from Source) (any, error) {
	v, found := from.of(r.record, r.tree)
	if !found {
		return nil, at(from, errMissing)
	}
	return v, nil
}

// at says where in the record something is wrong.
func at(from Source, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%v: %w", from, err)
}

// vector is the numbers of the fields, in their order. A field that is a list gives all of its numbers.
func (r *Record) vector(t serving.InputType) (serving.Input, error) {
	if !t.Numeric() {
		return serving.Input{}, fmt.Errorf("the app takes %v, and fields are for vectors of numbers: use input", t)
	}
	in := serving.Input{Type: t}
	for _, from := range r.mapping.fields {
		v, err := r.find(from)
		if err != nil {
			return serving.Input{}, err
		}
		if in.Data, err = appendVector(in.Data, v, t.DType()); err != nil {
			return serving.Input{}, at(from, err)
		}
	}
	if len(in.Data) == 0 {
		return serving.Input{}, errNoNumbers
	}
	return in, nil
}

// named is the tensors of a signature, each from its source.
func (r *Record) named(t serving.InputType, inputs []serving.Tensor) (serving.Input, error) {
	if t != serving.Tensors {
		return serving.Input{}, fmt.Errorf("the app takes %v, and inputs are for apps with a signature: use input", t)
	}
	for name := range r.mapping.tensors {
		if serving.Index(inputs, name) < 0 {
			return serving.Input{}, fmt.Errorf("the stream's inputs have %q, and the app takes %s", name, quotedNames(inputs))
		}
	}
	return payload(inputs, func(name string) (any, error) {
		from, given := r.mapping.tensors[name]
		if !given {
			return nil, errors.New("the stream's inputs do not say where it is")
		}
		v, err := r.find(from)
		return v, err
	})
}

package mapping

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

// Schema is one as a registry keeps it.
type Schema struct {
	Format     Format // JSON, Protobuf or Avro
	Text       string
	References []Reference // schemas that it and those before it name, those that name others after them
}

// Reference is a schema that others name: in Avro by the names of its types, in protobuf by its path.
type Reference struct{ Name, Text string }

// Registry keeps schemas by their ids, as Confluent's does. Many goroutines use it.
type Registry interface {
	// Schema returns the schema of an id. It fails with ErrUnknownSchema where there is none, with
	// ErrBadSchema where it cannot be used, and otherwise because the registry is unavailable.
	Schema(ctx context.Context, id int) (Schema, error)
	// Register returns the id of a schema of a subject, which it adds if that is allowed. Its error
	// says what stands in the way.
	Register(ctx context.Context, subject string, s Schema, add bool) (id int, err error)
}

var (
	// ErrUnknownSchema is that of an id without a schema.
	ErrUnknownSchema = errors.New("the registry knows no schema of this id")
	// ErrBadSchema is that of a schema that cannot be used.
	ErrBadSchema = errors.New("the schema cannot be used")
)

const (
	maxSchemaBytes = 4 << 20
	maxSchemas     = 256 // of a stream
)

// codec reads and writes values of one schema, or of a format that needs none.
type codec interface {
	// decode makes a tree of a value.
	decode(value []byte) (any, error)
	// encode writes a tree.
	encode(tree any) ([]byte, error)
}

// frameCodec also knows the messages of a protobuf schema by their indexes.
type frameCodec interface {
	// of is the codec of one message of the schema, and of other schemas the codec itself.
	of(indexes []int) (codec, error)
}

// plainCodec is that of a format without schemas.
type plainCodec Format

func (c plainCodec) decode(value []byte) (any, error) {
	switch Format(c) {
	case Bytes:
		return value, nil
	case Text:
		return decodeText(value)
	}
	return ParseJSON(value)
}

func (c plainCodec) encode(tree any) ([]byte, error) { return appendJSON(nil, tree) }

func (c plainCodec) of([]int) (codec, error) { return c, nil }

// newCodec makes the codec of a schema of a registry.
func newCodec(s Schema) (frameCodec, error) {
	switch s.Format {
	case Avro:
		return newAvro(s)
	case Protobuf:
		return compileProto(s)
	}
	return plainCodec(JSON), nil
}

// fileCodec makes the codec of the schema in a file: of Avro's JSON, of a descriptor set of protobuf, or
// of a .proto file.
func fileCodec(format Format, path, message string) (codec, Schema, error) {
	text, err := readSchema(path)
	if err != nil {
		return nil, Schema{}, err
	}
	schema := Schema{Format: format, Text: string(text)}
	var c codec
	switch {
	case format == Avro:
		c, err = newAvro(schema)
	case strings.HasSuffix(path, ".proto"):
		var all *protoSchema
		if all, err = compileProto(schema); err == nil {
			c, err = all.named(message)
		}
	default:
		c, err = describedProto(text, message)
	}
	if err != nil {
		return nil, Schema{}, fmt.Errorf("%s: %w", path, err)
	}
	return c, schema, nil
}

func readSchema(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, maxSchemaBytes+1))
	if err == nil && len(text) > maxSchemaBytes {
		err = fmt.Errorf("%s is larger than %d bytes", path, maxSchemaBytes)
	}
	return text, err
}

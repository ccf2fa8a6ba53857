package mapping

import (
	"fmt"

	"github.com/twmb/avro"
)

// avroCodec is that of an Avro schema.
type avroCodec struct{ schema *avro.Schema }

func newAvro(s Schema) (avroCodec, error) {
	var known avro.SchemaCache
	for _, r := range s.References {
		if _, err := known.Parse(r.Text); err != nil {
			return avroCodec{}, fmt.Errorf("%w: it names %.100q, which is not an Avro schema: %w", ErrBadSchema, r.Name, err)
		}
	}
	schema, err := known.Parse(s.Text)
	if err != nil {
		return avroCodec{}, fmt.Errorf("%w: it is not an Avro schema: %w", ErrBadSchema, err)
	}
	return avroCodec{schema}, nil
}

func (c avroCodec) of([]int) (codec, error) { return c, nil }

func (c avroCodec) decode(value []byte) (any, error) {
	var tree any
	rest, err := c.schema.Decode(value, &tree)
	switch {
	case err != nil:
		return nil, fmt.Errorf("it does not fit its Avro schema: %w", err)
	case len(rest) > 0:
		return nil, fmt.Errorf("it does not fit its Avro schema: %d bytes are behind it", len(rest))
	case deeper(tree, maxDepth):
		return nil, errTooDeep
	}
	return tree, nil
}

func (c avroCodec) encode(tree any) ([]byte, error) {
	return c.schema.Encode(tree)
}

// deeper says whether a tree has more levels than so many.
func deeper(tree any, levels int) bool {
	if levels < 0 {
		return true
	}
	switch v := tree.(type) {
	case map[string]any:
		for _, member := range v {
			if deeper(member, levels-1) {
				return true
			}
		}
	case []any:
		for _, element := range v {
			if deeper(element, levels-1) {
				return true
			}
		}
	}
	return false
}

package mapping

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// The wire format of Confluent's serializers: a zero byte, the id of the schema in four bytes, for
// protobuf the indexes of the message, and the value.
const (
	frameMagic = 0
	frameBytes = 5
	maxIndexes = maxDepth
)

var errIndexes = errors.New("the indexes of its message are cut off or too many")

// frame is a value with what stands before it.
type frame struct {
	id      int
	indexes []int // of protobuf
	value   []byte
}

// parseFrame reads a frame of a format.
func parseFrame(text []byte, format Format) (frame, error) {
	if len(text) < frameBytes || text[0] != frameMagic {
		return frame{}, errors.New("it does not begin with a zero byte and the id of a schema: were it written without the registry, the stream would need schema_file instead")
	}
	f := frame{id: int(binary.BigEndian.Uint32(text[1:])), value: text[frameBytes:]}
	if format != Protobuf {
		return f, nil
	}
	var err error
	f.indexes, f.value, err = parseIndexes(f.value)
	return f, err
}

// parseIndexes reads the indexes of a message, of which there are none for the first one.
func parseIndexes(text []byte) (indexes []int, rest []byte, err error) {
	count, n := binary.Varint(text)
	if n <= 0 || count < 0 || count > maxIndexes {
		return nil, nil, errIndexes
	}
	text = text[n:]
	if count == 0 {
		return []int{0}, text, nil
	}
	for range count {
		index, n := binary.Varint(text)
		if n <= 0 || index < 0 || index > 1<<16 {
			return nil, nil, errIndexes
		}
		indexes, text = append(indexes, int(index)), text[n:]
	}
	return indexes, text, nil
}

// appendFrame appends what stands before a value of a schema.
func appendFrame(b []byte, id int, indexes []int) []byte {
	b = append(b, frameMagic)
	b = binary.BigEndian.AppendUint32(b, uint32(id))
	switch {
	case indexes == nil:
		return b
	case len(indexes) == 1 && indexes[0] == 0:
		return append(b, 0)
	}
	b = binary.AppendVarint(b, int64(len(indexes)))
	for _, i := range indexes {
		b = binary.AppendVarint(b, int64(i))
	}
	return b
}

func decodeText(value []byte) (any, error) {
	tree, err := textInput(value)
	if err != nil {
		return nil, fmt.Errorf("it is not a text: %w", err)
	}
	return string(tree), nil
}

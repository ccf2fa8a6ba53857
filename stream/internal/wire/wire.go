// Package wire reads and writes the fields of protobuf messages.
package wire

import (
	"errors"
	"fmt"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"
)

var (
	// ErrNotUTF8 is that of a text that is none.
	ErrNotUTF8   = errors.New("a text is not UTF-8")
	errTruncated = errors.New("it ends in the middle of a field")
)

// Field is one field of a message: its bytes where it has some, else its number.
type Field struct {
	Number protowire.Number
	Kind   protowire.Type
	Bytes  []byte
	Value  uint64
}

// Each calls take with every field of a message. Fields of other kinds than
// numbers and bytes come without a value: nothing of ours is one.
func Each(message []byte, take func(f Field) error) error {
	for len(message) > 0 {
		number, kind, n := protowire.ConsumeTag(message)
		if n < 0 {
			return failure(n)
		}
		if number > protowire.MaxValidNumber {
			return fmt.Errorf("there is no field %d", number)
		}
		f := Field{Number: number, Kind: kind}
		message = message[n:]
		switch kind {
		case protowire.BytesType:
			f.Bytes, n = protowire.ConsumeBytes(message)
		case protowire.VarintType:
			f.Value, n = protowire.ConsumeVarint(message)
		case protowire.Fixed64Type:
			f.Value, n = protowire.ConsumeFixed64(message)
		default:
			n = protowire.ConsumeFieldValue(number, kind, message)
		}
		if n < 0 {
			return failure(n)
		}
		message = message[n:]
		if err := take(f); err != nil {
			return err
		}
	}
	return nil
}

func failure(n int) error {
	if err := protowire.ParseError(n); !errors.Is(err, errUnexpectedEnd) {
		return err
	}
	return errTruncated
}

var errUnexpectedEnd = protowire.ParseError(-1)

// Text stores a text into into, if the field is one.
func (f Field) Text(into *string) error {
	switch {
	case f.Kind != protowire.BytesType:
		return nil // to be skipped, as a field of a kind that we do not know
	case !utf8.Valid(f.Bytes):
		return fmt.Errorf("field %d: %w", f.Number, ErrNotUTF8)
	}
	*into = string(f.Bytes)
	return nil
}

// Append appends a text or bytes, and nothing where there is none.
func Append[T string | []byte](b []byte, number protowire.Number, value T) []byte {
	if len(value) == 0 {
		return b
	}
	return AppendElement(b, number, value)
}

// AppendElement appends a text or bytes, also where there is none.
func AppendElement[T string | []byte](b []byte, number protowire.Number, value T) []byte {
	b = protowire.AppendTag(b, number, protowire.BytesType)
	b = protowire.AppendVarint(b, uint64(len(value)))
	return append(b, value...)
}

// AppendNumber appends a number, and nothing for 0.
func AppendNumber(b []byte, number protowire.Number, value uint64) []byte {
	if value == 0 {
		return b
	}
	return protowire.AppendVarint(protowire.AppendTag(b, number, protowire.VarintType), value)
}

package records

import (
	"errors"
	"fmt"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"
)

var (
	// errNotUTF8 is that of a text that is none.
	errNotUTF8   = errors.New("a text is not UTF-8")
	errTruncated = errors.New("it ends in the middle of a field")
)

// field is one field of a message: its bytes where it has some, else its number.
type field struct {
	number protowire.Number
	kind   protowire.Type
	bytes  []byte
	value  uint64
}

// each calls take with every field of a message. Fields of other kinds than
// numbers and bytes come without a value: nothing of ours is one.
func each(message []byte, take func(f field) error) error {
	for len(message) > 0 {
		number, kind, n := protowire.ConsumeTag(message)
		if n < 0 {
			return failure(n)
		}
		if number > protowire.MaxValidNumber {
			return fmt.Errorf("there is no field %d", number)
		}
		f := field{number: number, kind: kind}
		message = message[n:]
		switch kind {
		case protowire.BytesType:
			f.bytes, n = protowire.ConsumeBytes(message)
		case protowire.VarintType:
			f.value, n = protowire.ConsumeVarint(message)
		case protowire.Fixed64Type:
			f.value, n = protowire.ConsumeFixed64(message)
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

// text stores a text into into, if the field is one.
func (f field) text(into *string) error {
	switch {
	case f.kind != protowire.BytesType:
		return nil // to be skipped, as a field of a kind that we do not know
	case !utf8.Valid(f.bytes):
		return fmt.Errorf("field %d: %w", f.number, errNotUTF8)
	}
	*into = string(f.bytes)
	return nil
}

// appendField appends a text or bytes, and nothing where there is none.
func appendField[T string | []byte](b []byte, number protowire.Number, value T) []byte {
	if len(value) == 0 {
		return b
	}
	return appendElement(b, number, value)
}

// appendElement appends a text or bytes, also where there is none.
func appendElement[T string | []byte](b []byte, number protowire.Number, value T) []byte {
	b = protowire.AppendTag(b, number, protowire.BytesType)
	b = protowire.AppendVarint(b, uint64(len(value)))
	return append(b, value...)
}

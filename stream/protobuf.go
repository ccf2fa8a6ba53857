package stream

import (
	"errors"
	"fmt"
	"math"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"
)

// The numbers of proto/serving.proto, which never change.
const (
	requestUUID    protowire.Number = 1
	requestData    protowire.Number = 2
	requestApp     protowire.Number = 3
	requestUser    protowire.Number = 4
	requestContext protowire.Number = 5
	requestKey     protowire.Number = 6

	responseUUID        protowire.Number = 1
	responseData        protowire.Number = 2
	responseConfidence  protowire.Number = 3
	responseQualifiers  protowire.Number = 4
	responseDefault     protowire.Number = 5
	responseExplanation protowire.Number = 6
	responseModel       protowire.Number = 7
	responseVersion     protowire.Number = 8
	responseQueryID     protowire.Number = 9
	responseMissing     protowire.Number = 10

	qualifierKey   protowire.Number = 1
	qualifierValue protowire.Number = 2
)

var (
	errNotUTF8   = errors.New("a text is not UTF-8")
	errTruncated = errors.New("it ends in the middle of a field")
)

// wireField is one field of a message: its bytes where it has some, else its number.
type wireField struct {
	number protowire.Number
	kind   protowire.Type
	bytes  []byte
	value  uint64
}

// eachField calls take with every field of a message. Fields of other kinds than
// numbers and bytes come without a value: nothing of ours is one.
func eachField(message []byte, take func(f wireField) error) error {
	for len(message) > 0 {
		number, kind, n := protowire.ConsumeTag(message)
		if n < 0 {
			return wireError(n)
		}
		if number > protowire.MaxValidNumber {
			return fmt.Errorf("there is no field %d", number)
		}
		f := wireField{number: number, kind: kind}
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
			return wireError(n)
		}
		message = message[n:]
		if err := take(f); err != nil {
			return err
		}
	}
	return nil
}

func wireError(n int) error {
	if err := protowire.ParseError(n); !errors.Is(err, errUnexpectedEnd) {
		return err
	}
	return errTruncated
}

var errUnexpectedEnd = protowire.ParseError(-1)

// text stores a text into into, if the field is one.
func (f wireField) text(into *string) error {
	switch {
	case f.kind != protowire.BytesType:
		return nil // to be skipped, as a field of a kind that we do not know
	case !utf8.Valid(f.bytes):
		return fmt.Errorf("field %d: %w", f.number, errNotUTF8)
	}
	*into = string(f.bytes)
	return nil
}

func (r *Request) parseProtobuf(message []byte) error {
	return eachField(message, func(f wireField) error {
		switch f.number {
		case requestUUID:
			return f.text(&r.UUID)
		case requestData:
			if f.kind == protowire.BytesType {
				r.Data = f.bytes
			}
		case requestApp:
			return f.text(&r.App)
		case requestUser:
			return f.text(&r.User)
		case requestContext:
			return f.text(&r.Context)
		case requestKey:
			return f.text(&r.Key)
		}
		return nil
	})
}

// AppendProtobuf appends the request as a ServingRequest; Data must be the bytes of an
// input.
func (r *Request) AppendProtobuf(b []byte) []byte {
	b = appendField(b, requestUUID, r.UUID)
	b = appendField(b, requestData, r.Data)
	b = appendField(b, requestApp, r.App)
	b = appendField(b, requestUser, r.User)
	b = appendField(b, requestContext, r.Context)
	return appendField(b, requestKey, r.Key)
}

// appendField appends a text or bytes, and nothing where there is none.
func appendField[T string | []byte](b []byte, number protowire.Number, value T) []byte {
	if len(value) == 0 {
		return b
	}
	return appendElement(b, number, value)
}

func appendElement[T string | []byte](b []byte, number protowire.Number, value T) []byte {
	b = protowire.AppendTag(b, number, protowire.BytesType)
	b = protowire.AppendVarint(b, uint64(len(value)))
	return append(b, value...)
}

// AppendProtobuf appends the response as a ServingResponse.
func (r *Response) AppendProtobuf(b []byte) []byte {
	b = appendField(b, responseUUID, r.UUID)
	b = appendField(b, responseData, r.Output)
	if r.Confidence != nil {
		b = protowire.AppendTag(b, responseConfidence, protowire.Fixed64Type)
		b = protowire.AppendFixed64(b, math.Float64bits(*r.Confidence))
	}
	for _, q := range r.Qualifiers {
		b = protowire.AppendTag(b, responseQualifiers, protowire.BytesType)
		b = protowire.AppendVarint(b, uint64(q.bytes()))
		b = appendField(b, qualifierKey, q.Key)
		b = appendField(b, qualifierValue, q.Value)
	}
	if r.Default {
		b = protowire.AppendTag(b, responseDefault, protowire.VarintType)
		b = protowire.AppendVarint(b, 1)
	}
	b = appendField(b, responseExplanation, r.Explanation)
	b = appendField(b, responseModel, r.Model)
	b = appendField(b, responseVersion, r.Version)
	if r.QueryID != 0 {
		b = protowire.AppendTag(b, responseQueryID, protowire.VarintType)
		b = protowire.AppendVarint(b, uint64(r.QueryID))
	}
	for _, m := range r.Missing {
		b = appendElement(b, responseMissing, m)
	}
	return b
}

// bytes is the length of the qualifier as a message.
func (q Qualifier) bytes() int {
	n := 0
	for _, text := range []string{q.Key, q.Value} {
		if text != "" {
			n += 1 + protowire.SizeBytes(len(text))
		}
	}
	return n
}

// parseProtobuf reads a ServingResponse.
func (r *Response) parseProtobuf(message []byte) error {
	return eachField(message, func(f wireField) error {
		switch f.number {
		case responseUUID:
			return f.text(&r.UUID)
		case responseData:
			if f.kind == protowire.BytesType {
				r.Output = f.bytes
			}
		case responseConfidence:
			if f.kind == protowire.Fixed64Type {
				x := math.Float64frombits(f.value)
				r.Confidence = &x
			}
		case responseQualifiers:
			return r.parseQualifier(f)
		case responseDefault:
			if f.kind == protowire.VarintType {
				r.Default = protowire.DecodeBool(f.value)
			}
		case responseExplanation:
			return f.text(&r.Explanation)
		case responseModel:
			return f.text(&r.Model)
		case responseVersion:
			return f.text(&r.Version)
		case responseQueryID:
			if f.kind == protowire.VarintType {
				r.QueryID = int64(f.value)
			}
		case responseMissing:
			if f.kind != protowire.BytesType {
				return nil
			}
			r.Missing = append(r.Missing, "")
			return f.text(&r.Missing[len(r.Missing)-1])
		}
		return nil
	})
}

func (r *Response) parseQualifier(f wireField) error {
	if f.kind != protowire.BytesType {
		return nil
	}
	var q Qualifier
	err := eachField(f.bytes, func(f wireField) error {
		switch f.number {
		case qualifierKey:
			return f.text(&q.Key)
		case qualifierValue:
			return f.text(&q.Value)
		}
		return nil
	})
	r.Qualifiers = append(r.Qualifiers, q)
	return err
}

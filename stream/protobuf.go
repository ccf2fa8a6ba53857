package stream

import (
	"math"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/topsail-serving/topsail/stream/internal/wire"
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

func (r *Request) parseProtobuf(message []byte) error {
	return wire.Each(message, func(f wire.Field) error {
		switch f.Number {
		case requestUUID:
			return f.Text(&r.UUID)
		case requestData:
			if f.Kind == protowire.BytesType {
				r.Data = f.Bytes
			}
		case requestApp:
			return f.Text(&r.App)
		case requestUser:
			return f.Text(&r.User)
		case requestContext:
			return f.Text(&r.Context)
		case requestKey:
			return f.Text(&r.Key)
		}
		return nil
	})
}

// AppendProtobuf appends the request as a ServingRequest; Data must be the bytes of an
// input.
func (r *Request) AppendProtobuf(b []byte) []byte {
	b = wire.Append(b, requestUUID, r.UUID)
	b = wire.Append(b, requestData, r.Data)
	b = wire.Append(b, requestApp, r.App)
	b = wire.Append(b, requestUser, r.User)
	b = wire.Append(b, requestContext, r.Context)
	return wire.Append(b, requestKey, r.Key)
}

// AppendProtobuf appends the response as a ServingResponse.
func (r *Response) AppendProtobuf(b []byte) []byte {
	b = wire.Append(b, responseUUID, r.UUID)
	b = wire.Append(b, responseData, r.Output)
	if r.Confidence != nil {
		b = protowire.AppendTag(b, responseConfidence, protowire.Fixed64Type)
		b = protowire.AppendFixed64(b, math.Float64bits(*r.Confidence))
	}
	for _, q := range r.Qualifiers {
		b = protowire.AppendTag(b, responseQualifiers, protowire.BytesType)
		b = protowire.AppendVarint(b, uint64(q.bytes()))
		b = wire.Append(b, qualifierKey, q.Key)
		b = wire.Append(b, qualifierValue, q.Value)
	}
	if r.Default {
		b = protowire.AppendTag(b, responseDefault, protowire.VarintType)
		b = protowire.AppendVarint(b, 1)
	}
	b = wire.Append(b, responseExplanation, r.Explanation)
	b = wire.Append(b, responseModel, r.Model)
	b = wire.Append(b, responseVersion, r.Version)
	if r.QueryID != 0 {
		b = protowire.AppendTag(b, responseQueryID, protowire.VarintType)
		b = protowire.AppendVarint(b, uint64(r.QueryID))
	}
	for _, m := range r.Missing {
		b = wire.AppendElement(b, responseMissing, m)
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
	return wire.Each(message, func(f wire.Field) error {
		switch f.Number {
		case responseUUID:
			return f.Text(&r.UUID)
		case responseData:
			if f.Kind == protowire.BytesType {
				r.Output = f.Bytes
			}
		case responseConfidence:
			if f.Kind == protowire.Fixed64Type {
				x := math.Float64frombits(f.Value)
				r.Confidence = &x
			}
		case responseQualifiers:
			return r.parseQualifier(f)
		case responseDefault:
			if f.Kind == protowire.VarintType {
				r.Default = protowire.DecodeBool(f.Value)
			}
		case responseExplanation:
			return f.Text(&r.Explanation)
		case responseModel:
			return f.Text(&r.Model)
		case responseVersion:
			return f.Text(&r.Version)
		case responseQueryID:
			if f.Kind == protowire.VarintType {
				r.QueryID = int64(f.Value)
			}
		case responseMissing:
			if f.Kind != protowire.BytesType {
				return nil
			}
			r.Missing = append(r.Missing, "")
			return f.Text(&r.Missing[len(r.Missing)-1])
		}
		return nil
	})
}

func (r *Response) parseQualifier(f wire.Field) error {
	if f.Kind != protowire.BytesType {
		return nil
	}
	var q Qualifier
	err := wire.Each(f.Bytes, func(f wire.Field) error {
		switch f.Number {
		case qualifierKey:
			return f.Text(&q.Key)
		case qualifierValue:
			return f.Text(&q.Value)
		}
		return nil
	})
	r.Qualifiers = append(r.Qualifiers, q)
	return err
}

package records

import (
	"math"
	"time"

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
	responseOutputs     protowire.Number = 11
	responseApp         protowire.Number = 12
	responseTook        protowire.Number = 13

	qualifierKey   protowire.Number = 1
	qualifierValue protowire.Number = 2
)

func (r *Request) parseProtobuf(message []byte) error {
	return each(message, func(f field) error {
		switch f.number {
		case requestUUID:
			return f.text(&r.UUID)
		case requestData:
			if f.kind == protowire.BytesType {
				r.Data = f.bytes
			}
		case requestApp:
			if f.kind != protowire.BytesType || len(f.bytes) == 0 {
				return nil
			}
			r.Apps = append(r.Apps, "")
			return f.text(&r.Apps[len(r.Apps)-1])
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
	for _, app := range r.Apps {
		b = appendElement(b, requestApp, app)
	}
	b = appendField(b, requestUser, r.User)
	b = appendField(b, requestContext, r.Context)
	return appendField(b, requestKey, r.Key)
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
	b = appendField(b, responseOutputs, r.Outputs)
	b = appendField(b, responseApp, r.App)
	if r.Took > 0 {
		b = protowire.AppendTag(b, responseTook, protowire.VarintType)
		b = protowire.AppendVarint(b, uint64(r.Took.Microseconds()))
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
	return each(message, func(f field) error {
		switch f.number {
		case responseUUID:
			return f.text(&r.UUID)
		case responseData:
			if f.kind == protowire.BytesType {
				r.Output = f.bytes
			}
		case responseOutputs:
			if f.kind == protowire.BytesType {
				r.Outputs = f.bytes
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
		case responseApp:
			return f.text(&r.App)
		case responseTook:
			if f.kind == protowire.VarintType {
				r.Took = microseconds(f.value)
			}
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

// microseconds is a duration of so many, or the longest one.
func microseconds(n uint64) time.Duration {
	return time.Duration(min(n, math.MaxInt64/uint64(time.Microsecond))) * time.Microsecond
}

func (r *Response) parseQualifier(f field) error {
	if f.kind != protowire.BytesType {
		return nil
	}
	var q Qualifier
	err := each(f.bytes, func(f field) error {
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

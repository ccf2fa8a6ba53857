package serving

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
)

// Output is what a model answered for one input. JSON is rendered once, when the
// output arrives, so that answering from the cache is a copy.
type Output struct {
	Value      Value
	JSON       []byte   // the output as the REST answer nests it
	Confidence *float64 // nil when the model gave none
	Qualifiers []Value  // named values beside the output; may be empty
}

// NewOutput renders v as JSON. It fails on what JSON cannot carry.
func NewOutput(v Value) (*Output, error) {
	j, err := AppendJSON(make([]byte, 0, shortText(v)), v)
	if err != nil {
		return nil, err
	}
	return &Output{Value: v, JSON: j}, nil
}

// shortText is room for the text of a number or of a short vector.
func shortText(v Value) int {
	const most, each = 512, 24
	if size := v.DType.Size(); size > 0 {
		return min(len(v.Data)/size*each, most)
	}
	return 0
}

// Bytes is the memory that the output holds, roughly, for bounding caches.
func (o *Output) Bytes() int {
	n := 160 + len(o.Value.Data) + len(o.JSON)
	for _, q := range o.Qualifiers {
		n += 64 + len(q.Name) + len(q.Data)
	}
	return n
}

var errNotFinite = errors.New("output is NaN or infinite, which JSON cannot carry")

// AppendJSON appends v as one JSON value. Text follows Clipper: one that is
// itself valid JSON is nested as JSON, any other becomes a JSON string.
func AppendJSON(b []byte, v Value) ([]byte, error) {
	switch v.DType {
	case String:
		return AppendText(b, v.Data), nil
	case JSON:
		if !json.Valid(v.Data) {
			return b, errors.New("output is declared as JSON and is not valid JSON")
		}
		return appendCompact(b, v.Data), nil
	case Opaque:
		return b, errors.New("output is opaque: it can travel between stages but not to a client")
	}
	size := v.DType.Size()
	if size == 0 {
		return b, fmt.Errorf("output has unknown type %v", v.DType)
	}
	want := size
	for _, d := range v.Shape {
		want *= d
	}
	if want != len(v.Data) {
		return b, fmt.Errorf("output of type %v and shape %v has %d bytes instead of %d", v.DType, v.Shape, len(v.Data), want)
	}
	b, _, err := appendTensor(b, v.DType, v.Shape, v.Data)
	return b, err
}

// AppendText appends text as Clipper's REST does: nested when it is valid JSON,
// else as a JSON string.
func AppendText(b, text []byte) []byte {
	if json.Valid(text) {
		return appendCompact(b, text)
	}
	quoted, err := json.Marshal(string(text)) // replaces invalid UTF-8; cannot fail on a string
	if err != nil {
		return append(b, `""`...)
	}
	return append(b, quoted...)
}

func appendCompact(b, valid []byte) []byte {
	if len(valid) < 16 && !bytes.ContainsAny(valid, " \t\r\n") {
		return append(b, valid...)
	}
	buf := bytes.NewBuffer(b)
	if json.Compact(buf, valid) != nil {
		return append(b, "null"...) // unreachable: the text was found valid
	}
	return buf.Bytes()
}

// appendTensor appends the elements of one tensor as nested arrays and returns
// what is left of data.
func appendTensor(b []byte, t DType, shape []int, data []byte) ([]byte, []byte, error) {
	if len(shape) == 0 {
		b, err := appendElement(b, t, data)
		return b, data[t.Size():], err
	}
	var err error
	b = append(b, '[')
	for i := range shape[0] {
		if i > 0 {
			b = append(b, ',')
		}
		if b, data, err = appendTensor(b, t, shape[1:], data); err != nil {
			return b, data, err
		}
	}
	return append(b, ']'), data, nil
}

func appendElement(b []byte, t DType, data []byte) ([]byte, error) {
	le := binary.LittleEndian
	switch t {
	case Uint8:
		return strconv.AppendUint(b, uint64(data[0]), 10), nil
	case Bool:
		return strconv.AppendBool(b, data[0] != 0), nil
	case Int32:
		return strconv.AppendInt(b, int64(int32(le.Uint32(data))), 10), nil
	case Int64:
		return strconv.AppendInt(b, int64(le.Uint64(data)), 10), nil
	case Float32:
		return appendFloat(b, float64(math.Float32frombits(le.Uint32(data))), 32)
	default:
		return appendFloat(b, math.Float64frombits(le.Uint64(data)), 64)
	}
}

// appendFloat writes the shortest form that reads back as the same number. A
// whole number keeps a point, so that clients in typed languages see a float.
func appendFloat(b []byte, x float64, bits int) ([]byte, error) {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return b, errNotFinite
	}
	format := byte('f')
	if abs := math.Abs(x); abs != 0 && (abs < 1e-6 || abs >= 1e21) {
		format = 'e'
	}
	start := len(b)
	b = strconv.AppendFloat(b, x, format, -1, bits)
	if format == 'f' && bytes.IndexByte(b[start:], '.') < 0 {
		b = append(b, '.', '0')
	}
	return b, nil
}

package serving

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Output is what a model answered for one input. JSON is rendered once, when the
// output arrives, so that answering from the cache is a copy.
type Output struct {
	Value      Value    // the first of Values, or the only one
	JSON       []byte   // Value as the REST answer nests it
	Values     []Value  // all outputs, of a model that names them; else nil
	NamedJSON  []byte   // Values as one JSON object; nil without them
	Confidence *float64 // nil when the model gave none
	Qualifiers []Value  // named values beside the output; may be empty
	// QualifiersJSON are the Qualifiers as one JSON object, with null for what JSON cannot carry; nil
	// without them.
	QualifiersJSON []byte
	Uncollected    bool // it came in parts that are together too large, and is not here
}

// Qualify puts qualifiers beside the output.
func (o *Output) Qualify(qualifiers []Value) {
	o.Qualifiers = qualifiers
	b := []byte{'{'}
	for i := range qualifiers {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(appendQuoted(b, []byte(qualifiers[i].Name)), ':')
		if more, err := appendNamedValue(b, &qualifiers[i]); err == nil {
			b = more
		} else {
			b = append(b, "null"...)
		}
	}
	o.QualifiersJSON = append(b, '}')
}

// All are the outputs: Values, or the only one.
func (o *Output) All() []Value {
	if o.Values != nil {
		return o.Values
	}
	return []Value{o.Value}
}

// NewOutputs is NewOutput of a whole payload: of one value without a name, or of named ones.
func NewOutputs(values []Value) (*Output, error) {
	if len(values) == 1 && values[0].Name == "" {
		return NewOutput(values[0])
	}
	if len(values) == 0 {
		return nil, errors.New("there is no output")
	}
	out := &Output{Value: values[0], Values: values}
	named, err := AppendNamed(make([]byte, 0, 64+shortText(values[0])), values)
	if err != nil {
		return nil, err
	}
	out.NamedJSON = named
	out.JSON, err = AppendJSON(nil, values[0])
	return out, err
}

// AppendNamed appends values as one JSON object. Unlike AppendJSON it writes every text as a string.
func AppendNamed(b []byte, values []Value) ([]byte, error) {
	b = append(b, '{')
	for i := range values {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(appendQuoted(b, []byte(values[i].Name)), ':')
		var err error
		if b, err = appendNamedValue(b, &values[i]); err != nil {
			return b, fmt.Errorf("output %q: %w", values[i].Name, err)
		}
	}
	return append(b, '}'), nil
}

func appendNamedValue(b []byte, v *Value) ([]byte, error) {
	if v.DType == String && len(v.Shape) == 0 {
		return appendQuoted(b, v.Data), nil
	}
	return AppendJSON(b, *v)
}

// NewOutput renders v as JSON. It fails on what JSON cannot carry.
func NewOutput(v Value) (*Output, error) {
	o := &struct {
		Output
		text [32]byte // of a number or a label, which so takes no allocation of its own
	}{}
	text := o.text[:0]
	if size := shortText(v); size > len(o.text) {
		text = make([]byte, 0, size)
	}
	j, err := AppendJSON(text, v)
	if err != nil {
		return nil, err
	}
	o.Value, o.JSON = v, j
	return &o.Output, nil
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
	n := 160 + len(o.JSON) + len(o.NamedJSON) + len(o.QualifiersJSON)
	if o.Values == nil {
		n += len(o.Value.Data)
	}
	for _, values := range [...][]Value{o.Values, o.Qualifiers} {
		for i := range values {
			n += 64 + len(values[i].Name) + len(values[i].Data)
		}
	}
	return n
}

var errNotFinite = errors.New("output is NaN or infinite, which JSON cannot carry")

// AppendJSON appends v as one JSON value. Text follows Clipper: one that is
// itself valid JSON is nested as JSON, any other becomes a JSON string.
func AppendJSON(b []byte, v Value) ([]byte, error) {
	switch v.DType {
	case String, Blob:
		if len(v.Shape) > 0 {
			return appendStrings(b, v)
		}
		if v.DType == Blob {
			return appendBase64(b, v.Data), nil
		}
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
	if mayBeJSON(text) && json.Valid(text) {
		return appendCompact(b, text)
	}
	return appendQuoted(b, text)
}

// mayBeJSON says whether text begins as JSON can. Most texts do not, and json.Valid makes an error of each.
func mayBeJSON(text []byte) bool {
	text = bytes.TrimLeft(text, " \t\r\n")
	return len(text) > 0 && strings.IndexByte(`{["-0123456789tfn`, text[0]) >= 0
}

// appendQuoted appends text as a JSON string; what is not UTF-8 becomes U+FFFD.
func appendQuoted(b, text []byte) []byte {
	if isPlain(text) {
		return append(append(append(b, '"'), text...), '"')
	}
	quoted, err := json.Marshal(string(text)) // cannot fail on a string
	if err != nil {
		return append(b, `""`...)
	}
	return append(b, quoted...)
}

// isPlain says whether a JSON string has the text as it is.
func isPlain(text []byte) bool {
	for _, c := range text {
		if c < ' ' || c > '~' || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' {
			return false
		}
	}
	return true
}

func appendBase64(b, data []byte) []byte {
	return append(base64.StdEncoding.AppendEncode(append(b, '"'), data), '"')
}

// appendStrings appends a tensor of Strings or Blobs as nested arrays.
func appendStrings(b []byte, v Value) ([]byte, error) {
	if err := v.Check(); err != nil {
		return b, fmt.Errorf("output of type %v and shape %v: %w", v.DType, v.Shape, err)
	}
	b, _ = appendNested(b, v.Shape, v.Data, func(b, data []byte) ([]byte, []byte) {
		element, rest, _ := NextElement(data)
		if v.DType == Blob {
			return appendBase64(b, element), rest
		}
		return appendQuoted(b, element), rest
	})
	return b, nil
}

func appendNested(b []byte, shape []int, data []byte, one func(b, data []byte) ([]byte, []byte)) ([]byte, []byte) {
	if len(shape) == 0 {
		return one(b, data)
	}
	b = append(b, '[')
	for i := range shape[0] {
		if i > 0 {
			b = append(b, ',')
		}
		b, data = appendNested(b, shape[1:], data, one)
	}
	return append(b, ']'), data
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
	case Int8:
		return strconv.AppendInt(b, int64(int8(data[0])), 10), nil
	case Int16:
		return strconv.AppendInt(b, int64(int16(le.Uint16(data))), 10), nil
	case Uint16:
		return strconv.AppendUint(b, uint64(le.Uint16(data)), 10), nil
	case Uint32:
		return strconv.AppendUint(b, uint64(le.Uint32(data)), 10), nil
	case Uint64:
		return strconv.AppendUint(b, le.Uint64(data), 10), nil
	case Float16:
		return appendFloat(b, float64(Half(le.Uint16(data))), 32)
	case BFloat16:
		return appendFloat(b, float64(BrainFloat(le.Uint16(data))), 32)
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

// OutputType is what an app takes the outputs of its models for.
type OutputType string

// The types of outputs. A label is compared as a whole: a text or a number; a vector
// is a flat list of numbers.
const (
	OutputAny    OutputType = ""
	OutputNumber OutputType = "number"
	OutputLabel  OutputType = "label"
	OutputVector OutputType = "vector"
	OutputJSON   OutputType = "json"
)

func (t OutputType) check() error {
	switch t {
	case OutputAny, OutputNumber, OutputLabel, OutputVector, OutputJSON:
		return nil
	}
	return fmt.Errorf("output_type %q is unknown: use %q, %q, %q or %q", t, OutputNumber, OutputLabel, OutputVector, OutputJSON)
}

// Outputs is what the app takes the outputs of its models for: output_type, or else what its signature has, if that is
// one output.
func (a *App) Outputs() OutputType {
	if outputs := a.Signature.OutputTensors(); a.OutputType == OutputAny && len(outputs) == 1 {
		return outputs[0].outputType()
	}
	return a.OutputType
}

package describe

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/topsail-serving/topsail/serving"
)

// signature is what tells the inputs of tensors; nil for other inputs.
func (s shape) signature() *serving.Signature {
	if s.inputs == "" {
		return nil
	}
	var signature serving.Signature
	_ = json.Unmarshal([]byte(s.inputs), &signature.Inputs) // shapeOf wrote it
	return &signature
}

// tensors is the schema of an input of tensors.
func (s shape) tensors() string {
	var required, properties []string
	for _, t := range s.signature().InputTensors() {
		name, _ := json.Marshal(t.Name) // a string: this cannot fail
		required = append(required, string(name))
		properties = append(properties, string(name)+":"+tensorSchema(t))
	}
	return `{"type":"object","additionalProperties":false,"required":[` + strings.Join(required, ",") + `],"properties":{` + strings.Join(properties, ",") + `}}`
}

// tensorSchema is the schema of one tensor.
func tensorSchema(t serving.Tensor) string {
	schema := elementSchema(serving.DType(t.Type))
	for _, d := range slices.Backward(t.Shape) {
		if d < 0 {
			schema = `{"type":"array","items":` + schema + `}`
		} else {
			schema = fmt.Sprintf(`{"type":"array","minItems":%[1]d,"maxItems":%[1]d,"items":%[2]s}`, d, schema)
		}
	}
	return schema
}

// elementSchema is the schema of one element.
func elementSchema(t serving.DType) string {
	whole := func(least, most string) string {
		return `{"type":"integer","minimum":` + least + `,"maximum":` + most + `,"description":"without point or exponent"}`
	}
	switch t {
	case serving.Bool:
		return `{"type":"boolean"}`
	case serving.Int8:
		return whole("-128", "127")
	case serving.Int16:
		return whole("-32768", "32767")
	case serving.Int32:
		return whole("-2147483648", "2147483647")
	case serving.Int64:
		return whole("-9223372036854775808", "9223372036854775807")
	case serving.Uint8:
		return whole("0", "255")
	case serving.Uint16:
		return whole("0", "65535")
	case serving.Uint32:
		return whole("0", "4294967295")
	case serving.Uint64:
		return whole("0", "18446744073709551615")
	case serving.Float16:
		return `{"type":"number","minimum":-65504,"maximum":65504}`
	case serving.BFloat16:
		return `{"type":"number","minimum":-3.38e38,"maximum":3.38e38}`
	case serving.Float32:
		return `{"type":"number","format":"float","minimum":-3.4028235e38,"maximum":3.4028235e38}`
	case serving.String:
		return `{"type":"string"}`
	case serving.Blob:
		return `{"type":"string","contentEncoding":"base64"}`
	case serving.JSON:
		return `{}`
	}
	return `{"type":"number","format":"double"}`
}

// madeTensors is an input of tensors: of dimensions of any length two, as far as that is not too long.
func (s shape) madeTensors() []byte {
	b := []byte{'{'}
	elements := 0
	for i, t := range s.signature().InputTensors() {
		if i > 0 {
			b = append(b, ',')
		}
		name, _ := json.Marshal(t.Name) // a string: this cannot fail
		b = append(append(b, name...), ':')
		n := 1
		for _, d := range t.Shape {
			if n *= max(d, -2*d); n > maxMade {
				return nil
			}
		}
		if elements += n; elements > maxMade {
			return nil
		}
		b = appendMade(b, t, 0)
	}
	return append(b, '}')
}

func appendMade(b []byte, t serving.Tensor, depth int) []byte {
	if depth == len(t.Shape) {
		return append(b, madeElement(serving.DType(t.Type))...)
	}
	b = append(b, '[')
	n := t.Shape[depth]
	for i := range max(n, -2*n) {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendMade(b, t, depth+1)
	}
	return append(b, ']')
}

func madeElement(t serving.DType) string {
	switch t {
	case serving.Bool:
		return "true"
	case serving.String:
		return `"a text"`
	case serving.Blob:
		return `"AAEC"`
	case serving.JSON:
		return `{"a":1}`
	case serving.Float16, serving.BFloat16, serving.Float32, serving.Float64:
		return "1.5"
	}
	return "1"
}

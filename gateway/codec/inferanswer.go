package codec

import (
	"math"
	"strconv"

	"github.com/topsail-serving/topsail/gateway/inference"
	"github.com/topsail-serving/topsail/serving"
)

// AppendInferAnswer appends an answer of the Open Inference Protocol, and says how many bytes of it are
// JSON: all, unless an output is binary, as binary says of each. It fails on numbers that JSON cannot carry.
func AppendInferAnswer(b []byte, a *inference.Answer, binary []bool) (body []byte, header int, err error) {
	start := len(b)
	b = AppendString(append(b, `{"model_name":`...), a.Model)
	if a.Version != "" {
		b = AppendString(append(b, `,"model_version":`...), a.Version)
	}
	if a.ID != "" {
		b = AppendString(append(b, `,"id":`...), a.ID)
	}
	if len(a.Parameters) > 0 {
		b = appendParameters(append(b, `,"parameters":{`...), a.Parameters)
		b = append(b, '}')
	}
	b = append(b, `,"outputs":[`...)
	for i := range a.Outputs {
		if i > 0 {
			b = append(b, ',')
		}
		if b, err = appendInferOutput(b, &a.Outputs[i], binary[i]); err != nil {
			return b, 0, err
		}
	}
	b = append(b, ']', '}')
	header = len(b) - start
	for i := range a.Outputs {
		if binary[i] {
			b = append(b, a.Outputs[i].Data...)
		}
	}
	return b, header, nil
}

// appendParameters appends members. Numbers that are not finite, which JSON cannot carry, are left out.
func appendParameters(b []byte, list []inference.Parameter) []byte {
	start := len(b)
	for _, p := range list {
		if x, ok := p.Value.(float64); ok && (math.IsNaN(x) || math.IsInf(x, 0)) {
			continue
		}
		if len(b) > start {
			b = append(b, ',')
		}
		b = append(AppendString(b, p.Name), ':')
		switch x := p.Value.(type) {
		case bool:
			b = strconv.AppendBool(b, x)
		case int64:
			b = strconv.AppendInt(b, x, 10)
		case float64:
			b = strconv.AppendFloat(b, x, 'g', -1, 64)
		case string:
			b = AppendString(b, x)
		}
	}
	return b
}

func appendInferOutput(b []byte, v *serving.Value, binary bool) ([]byte, error) {
	b = AppendString(append(b, `{"name":`...), v.Name)
	b = AppendString(append(b, `,"datatype":`...), v.DType.Datatype())
	b = append(b, `,"shape":[`...)
	for i, d := range v.Shape {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, int64(d), 10)
	}
	b = append(b, ']')
	if binary {
		b = strconv.AppendInt(append(b, `,"parameters":{"binary_data_size":`...), int64(len(v.Data)), 10)
		return append(b, '}', '}'), nil
	}
	b = append(b, `,"data":`...)
	if v.DType == serving.Blob { // texts are JSON strings
		return append(appendTexts(b, v), '}'), nil
	}
	flat := *v
	flat.Shape = []int{serving.Elements(v.Shape)}
	b, err := serving.AppendJSON(b, flat)
	return append(b, '}'), err
}

// appendTexts appends the elements of a Blob as JSON strings; what is not UTF-8 in them is lost, so that
// clients have to ask for it binary.
func appendTexts(b []byte, v *serving.Value) []byte {
	b = append(b, '[')
	for data, first := v.Data, true; ; first = false {
		element, rest, ok := serving.NextElement(data)
		if !ok {
			return append(b, ']')
		}
		if !first {
			b = append(b, ',')
		}
		b, data = AppendString(b, string(element)), rest
	}
}

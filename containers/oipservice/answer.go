package oipservice

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/topsail-serving/topsail/serving"
)

// answered is the JSON of an answer.
type answered struct {
	Outputs []output `json:"outputs"`
}

type output struct {
	tensorMetadata
	Parameters struct {
		Size *int `json:"binary_data_size"`
	} `json:"parameters"`
	Data json.RawMessage `json:"data"`
}

// answer reads the outputs of the one query of a request. head is the header of the response that says how much of the body
// is JSON; empty: all.
func (l *layout) answer(body []byte, head string) ([]serving.Value, error) {
	text := body
	if head != "" {
		n, err := strconv.Atoi(head)
		if err != nil || n < 0 || n > len(body) {
			return nil, fmt.Errorf("the server's answer says that %.20q of its %d bytes are JSON", head, len(body))
		}
		text = body[:n]
	}
	var said answered
	if err := json.Unmarshal(text, &said); err != nil {
		return nil, fmt.Errorf("the server's answer is not JSON: %w", err)
	}
	var values []serving.Value
	rest := body[len(text):]
	for i := range said.Outputs {
		v, left, err := said.Outputs[i].value(rest)
		if err != nil {
			return nil, fmt.Errorf("output %.100q of the server: %w", said.Outputs[i].Name, err)
		}
		values, rest = append(values, v), left
	}
	if len(rest) > 0 {
		return nil, fmt.Errorf("%d bytes follow the last output of the server", len(rest))
	}
	return l.pick(values)
}

// value reads an output, whose bytes may be at the beginning of raw.
func (o *output) value(raw []byte) (v serving.Value, rest []byte, err error) {
	v.Name, v.Shape = o.Name, o.Shape
	if v.DType, err = serving.ParseDatatype(o.Datatype); err != nil {
		return v, raw, err
	}
	if size := o.Parameters.Size; size != nil {
		if *size < 0 || *size > len(raw) {
			return v, raw, fmt.Errorf("it has %d bytes by its parameters, and %d came", *size, len(raw))
		}
		v.Data, raw = raw[:*size], raw[*size:]
	} else if v.Data, err = parseData(o.Data, v.DType); err != nil {
		return v, raw, err
	}
	return v, raw, v.Check()
}

// pick are the outputs that the version has, without the batch.
func (l *layout) pick(values []serving.Value) ([]serving.Value, error) {
	if len(values) == 0 {
		return nil, errors.New("the server answered without an output")
	}
	if len(l.outputs) == 0 {
		return l.unchecked(values), nil
	}
	var picked []serving.Value
	for _, t := range l.outputs {
		i := slices.IndexFunc(values, func(v serving.Value) bool { return v.Name == t.Name })
		if i < 0 {
			return nil, fmt.Errorf("the server answered without output %q", t.Name)
		}
		v, batch := values[i], 0
		if v.DType == serving.Blob && serving.DType(t.Type).Size() == 0 {
			v.DType = serving.DType(t.Type)
		}
		if len(t.Shape) == 0 && serving.Elements(v.Shape) == 1 {
			batch = len(v.Shape) // Triton's one element has a dimension
		} else if len(v.Shape) == len(t.Shape)+1 && v.Shape[0] == 1 {
			batch = 1
		}
		picked = append(picked, reshaped(v, v.Shape[batch:]))
	}
	return picked, nil
}

// unchecked are outputs of which the version says nothing. Without a signature it has one, and servers have
// one number for a query as [1, 1].
func (l *layout) unchecked(values []serving.Value) []serving.Value {
	if !l.named {
		values = values[:1]
		values[0].Name = ""
	}
	for i, v := range values {
		if v.DType == serving.Blob && valid(&v) {
			v.DType = serving.String
		}
		shape := v.Shape
		if len(shape) > 0 && shape[0] == 1 {
			shape = shape[1:]
		}
		if !l.named && serving.Elements(shape) == 1 {
			shape = nil
		}
		values[i] = reshaped(v, shape)
	}
	return values
}

// reshaped is v with the shape of one query. A single text stands without its length.
func reshaped(v serving.Value, shape []int) serving.Value {
	v.Shape = shape
	if len(shape) > 0 {
		return v
	}
	v.Shape = nil
	if v.DType.Size() == 0 {
		v.Data, _, _ = serving.NextElement(v.Data) // it was checked
	}
	return v
}

// valid says whether all elements of a tensor are texts.
func valid(v *serving.Value) bool {
	text := *v
	text.DType = serving.String
	return text.Check() == nil
}

// parseData reads a list of elements, flat or nested as their shape is. What is not a number is null, as MLServer
// sends it.
func parseData(text []byte, t serving.DType) ([]byte, error) {
	if len(text) == 0 {
		return nil, errors.New("it has no data")
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var data []byte
	for depth := 0; ; {
		token, err := d.Token()
		if err != nil {
			return nil, fmt.Errorf("its data are not JSON: %w", err)
		}
		switch x := token.(type) {
		case json.Delim:
			switch x {
			case '[':
				depth++
			case ']':
				depth--
			default:
				return nil, errors.New("its data are not a list of elements")
			}
		case nil:
			if t != serving.Float32 && t != serving.Float64 {
				return nil, fmt.Errorf("null cannot be %s", t.Datatype())
			}
			if data, err = serving.AppendNumber(data, t, math.NaN()); err != nil {
				return nil, err
			}
		case bool:
			if t != serving.Bool {
				return nil, fmt.Errorf("%v cannot be %s", x, t.Datatype())
			}
			data = append(data, map[bool]byte{true: 1}[x])
		case string:
			if t.Size() != 0 {
				return nil, fmt.Errorf("a text cannot be %s", t.Datatype())
			}
			data = serving.AppendElement(data, x)
		case json.Number:
			if data, err = parseNumber(data, t, x.String()); err != nil {
				return nil, err
			}
		}
		if depth == 0 {
			return data, nil
		}
	}
}

// parseNumber appends a number as it is written. Those of 64 bits have more digits than a float64.
func parseNumber(data []byte, t serving.DType, text string) ([]byte, error) {
	var x uint64
	var err error
	switch t {
	case serving.Int64:
		var signed int64
		signed, err = strconv.ParseInt(text, 10, 64)
		x = uint64(signed)
	case serving.Uint64:
		x, err = strconv.ParseUint(text, 10, 64)
	default:
		number, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return data, fmt.Errorf("%.30s cannot be %s", text, t.Datatype())
		}
		return serving.AppendNumber(data, t, number)
	}
	if err != nil {
		return data, fmt.Errorf("%.30s cannot be %s", text, t.Datatype())
	}
	return binary.LittleEndian.AppendUint64(data, x), nil
}

package grpcapi

import (
	"encoding/binary"
	"fmt"
	"math"
	"time"

	"github.com/topsail-serving/topsail/gateway/codec"
	"github.com/topsail-serving/topsail/gateway/grpcapi/proto"
	"github.com/topsail-serving/topsail/gateway/inference"
	"github.com/topsail-serving/topsail/serving"
)

// request reads a message. The data of its inputs may point into it. Errors are for clients.
func request(m *proto.ModelInferRequest) (*inference.Request, error) {
	r := &inference.Request{ID: m.GetId(), Inputs: make([]serving.Value, len(m.GetInputs()))}
	switch raw := len(m.GetRawInputContents()); {
	case len(m.GetInputs()) == 0:
		return nil, fmt.Errorf("inputs: the request has none")
	case len(m.GetInputs()) > serving.MaxTensors || len(m.GetOutputs()) > serving.MaxTensors:
		return nil, fmt.Errorf("a request has at most %d inputs and as many outputs", serving.MaxTensors)
	case raw > 0 && raw != len(m.GetInputs()):
		return nil, fmt.Errorf("raw_input_contents: there are %d, and %d inputs: give one for each input, or none", raw, len(m.GetInputs()))
	}
	for i, in := range m.GetInputs() {
		var err error
		if r.Inputs[i], err = input(in, m.GetRawInputContents(), i); err != nil {
			return nil, fmt.Errorf("input %.60q: %w", in.GetName(), err)
		}
	}
	for _, out := range m.GetOutputs() {
		r.Outputs = append(r.Outputs, inference.Output{Name: out.GetName()})
	}
	return r, options(&r.Options, m.GetParameters())
}

// options reads the parameters of a request; others than ours are tolerated.
func options(o *inference.Options, parameters map[string]*proto.InferParameter) error {
	for name, p := range parameters {
		switch name {
		case "timeout":
			micros, ok := whole(p)
			if !ok || micros < 0 {
				return fmt.Errorf("timeout: it is a number of microseconds, from 0 on")
			}
			o.Timeout = time.Duration(min(micros, serving.MaxSLO.Microseconds())) * time.Microsecond
		case "priority":
			priority, ok := whole(p)
			if !ok || priority < 0 {
				return fmt.Errorf("priority: it is a number, from 0 on")
			}
			o.Priority = int(min(priority, serving.LowestPriority))
		case "uid", "context":
			text, ok := p.GetParameterChoice().(*proto.InferParameter_StringParam)
			if !ok {
				return fmt.Errorf("%s: it is a string", name)
			}
			if len(text.StringParam) > codec.MaxName {
				return fmt.Errorf("%s: it has more than %d bytes", name, codec.MaxName)
			}
			if name == "uid" {
				o.User = text.StringParam
			} else {
				o.Context = text.StringParam
			}
		}
	}
	return nil
}

// whole is a parameter that is a whole number.
func whole(p *proto.InferParameter) (int64, bool) {
	switch x := p.GetParameterChoice().(type) {
	case *proto.InferParameter_Int64Param:
		return x.Int64Param, true
	case *proto.InferParameter_Uint64Param:
		return int64(x.Uint64Param), x.Uint64Param <= math.MaxInt64
	}
	return 0, false
}

// input reads a tensor, whose data are typed or the raw contents at i.
func input(in *proto.ModelInferRequest_InferInputTensor, raw [][]byte, i int) (v serving.Value, err error) {
	v.Name = in.GetName()
	if v.Name == "" {
		return v, fmt.Errorf("it has no name")
	}
	if v.DType, err = serving.ParseDatatype(in.GetDatatype()); err != nil {
		return v, err
	}
	if len(in.GetShape()) > serving.MaxDims+1 {
		return v, fmt.Errorf("the shape has more than %d dimensions and the batch", serving.MaxDims)
	}
	v.Shape = make([]int, len(in.GetShape()))
	for at, d := range in.GetShape() {
		if d < 0 || d > math.MaxInt32 {
			return v, fmt.Errorf("the shape has dimension %d: it is from 0 to 2^31 - 1", d)
		}
		v.Shape[at] = int(d)
	}
	n := serving.Elements(v.Shape)
	if n < 0 {
		return v, fmt.Errorf("the shape has more than 2^31 elements")
	}
	if len(raw) > 0 {
		if in.GetContents() != nil {
			return v, fmt.Errorf("it has contents, and there are raw_input_contents: give one of them")
		}
		v.Data = raw[i]
		return v, inference.CheckRaw(&v)
	}
	return v, typed(&v, in.GetContents(), n)
}

// typed takes the elements that a tensor's datatype has in its contents.
func typed(v *serving.Value, c *proto.InferTensorContents, n int) error {
	count, le := 0, binary.LittleEndian
	switch v.DType {
	case serving.Bool:
		count = len(c.GetBoolContents())
		for _, x := range c.GetBoolContents() {
			b := byte(0)
			if x {
				b = 1
			}
			v.Data = append(v.Data, b)
		}
	case serving.Int8, serving.Int16, serving.Int32:
		count = len(c.GetIntContents())
		bits := 8 * v.DType.Size()
		for _, x := range c.GetIntContents() {
			if int64(x) < -1<<(bits-1) || int64(x) >= 1<<(bits-1) {
				return fmt.Errorf("%d is no %s", x, v.DType.Datatype())
			}
			v.Data = le.AppendUint32(v.Data, uint32(x))[:len(v.Data)+v.DType.Size()]
		}
	case serving.Uint8, serving.Uint16, serving.Uint32:
		count = len(c.GetUintContents())
		for _, x := range c.GetUintContents() {
			if uint64(x) >= 1<<(8*v.DType.Size()) {
				return fmt.Errorf("%d is no %s", x, v.DType.Datatype())
			}
			v.Data = le.AppendUint32(v.Data, x)[:len(v.Data)+v.DType.Size()]
		}
	case serving.Int64:
		count = len(c.GetInt64Contents())
		for _, x := range c.GetInt64Contents() {
			v.Data = le.AppendUint64(v.Data, uint64(x))
		}
	case serving.Uint64:
		count = len(c.GetUint64Contents())
		for _, x := range c.GetUint64Contents() {
			v.Data = le.AppendUint64(v.Data, x)
		}
	case serving.Float32:
		count = len(c.GetFp32Contents())
		for _, x := range c.GetFp32Contents() {
			v.Data = le.AppendUint32(v.Data, math.Float32bits(x))
		}
	case serving.Float64:
		count = len(c.GetFp64Contents())
		for _, x := range c.GetFp64Contents() {
			v.Data = le.AppendUint64(v.Data, math.Float64bits(x))
		}
	case serving.Blob:
		count = len(c.GetBytesContents())
		for _, x := range c.GetBytesContents() {
			v.Data = serving.AppendElement(v.Data, x)
		}
	default:
		return fmt.Errorf("%s has no typed contents: send raw_input_contents", v.DType.Datatype())
	}
	if count != n {
		return fmt.Errorf("the contents have %d elements of %s, and the shape %v needs %d", count, v.DType.Datatype(), v.Shape, n)
	}
	return nil
}

// response writes an answer: its outputs raw, or typed where the request was typed and the type can be.
func response(a *inference.Answer, raw bool) *proto.ModelInferResponse {
	m := &proto.ModelInferResponse{ModelName: a.Model, ModelVersion: a.Version, Id: a.ID, Parameters: map[string]*proto.InferParameter{}}
	for _, p := range a.Parameters {
		m.Parameters[p.Name] = parameter(p.Value)
	}
	for i := range a.Outputs {
		t := a.Outputs[i].DType
		raw = raw || t == serving.Float16 || t == serving.BFloat16
	}
	for i := range a.Outputs {
		v := &a.Outputs[i]
		out := &proto.ModelInferResponse_InferOutputTensor{Name: v.Name, Datatype: v.DType.Datatype(), Shape: make([]int64, len(v.Shape))}
		for at, d := range v.Shape {
			out.Shape[at] = int64(d)
		}
		if raw {
			m.RawOutputContents = append(m.RawOutputContents, v.Data)
		} else {
			out.Contents = contents(v)
		}
		m.Outputs = append(m.Outputs, out)
	}
	return m
}

func parameter(value any) *proto.InferParameter {
	switch x := value.(type) {
	case bool:
		return &proto.InferParameter{ParameterChoice: &proto.InferParameter_BoolParam{BoolParam: x}}
	case int64:
		return &proto.InferParameter{ParameterChoice: &proto.InferParameter_Int64Param{Int64Param: x}}
	case float64:
		return &proto.InferParameter{ParameterChoice: &proto.InferParameter_DoubleParam{DoubleParam: x}}
	}
	return &proto.InferParameter{ParameterChoice: &proto.InferParameter_StringParam{StringParam: value.(string)}}
}

// contents are the elements of a value in the member of its type.
func contents(v *serving.Value) *proto.InferTensorContents {
	c, le, size := &proto.InferTensorContents{}, binary.LittleEndian, v.DType.Size()
	if size == 0 {
		for data := v.Data; ; {
			element, rest, ok := serving.NextElement(data)
			if !ok {
				return c
			}
			c.BytesContents, data = append(c.BytesContents, element), rest
		}
	}
	for data := v.Data; len(data) >= size; data = data[size:] {
		switch v.DType {
		case serving.Bool:
			c.BoolContents = append(c.BoolContents, data[0] != 0)
		case serving.Int8:
			c.IntContents = append(c.IntContents, int32(int8(data[0])))
		case serving.Int16:
			c.IntContents = append(c.IntContents, int32(int16(le.Uint16(data))))
		case serving.Int32:
			c.IntContents = append(c.IntContents, int32(le.Uint32(data)))
		case serving.Uint8:
			c.UintContents = append(c.UintContents, uint32(data[0]))
		case serving.Uint16:
			c.UintContents = append(c.UintContents, uint32(le.Uint16(data)))
		case serving.Uint32:
			c.UintContents = append(c.UintContents, le.Uint32(data))
		case serving.Int64:
			c.Int64Contents = append(c.Int64Contents, int64(le.Uint64(data)))
		case serving.Uint64:
			c.Uint64Contents = append(c.Uint64Contents, le.Uint64(data))
		case serving.Float32:
			c.Fp32Contents = append(c.Fp32Contents, math.Float32frombits(le.Uint32(data)))
		case serving.Float64:
			c.Fp64Contents = append(c.Fp64Contents, math.Float64frombits(le.Uint64(data)))
		}
	}
	return c
}

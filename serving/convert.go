package serving

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
)

// NewInput makes an input of what a model has put out, for the next model. Numbers
// become numbers of the type that is wanted, in row-major order whatever their shape,
// as far as that type can hold them; text is an input of strings as it is, and of
// numbers where it is a JSON list of them. For strings, numbers become JSON.
func NewInput(t InputType, v Value) (Input, error) {
	text := v.DType == String || v.DType == JSON
	switch {
	case t == Strings && text:
		return Input{Type: t, Data: v.Data}, nil
	case t == Strings:
		data, err := AppendJSON(nil, v)
		return Input{Type: t, Data: data}, err
	case v.DType == t.DType():
		return Input{Type: t, Data: v.Data}, nil
	case t == Bytes && (text || v.DType == Opaque):
		return Input{Type: t, Data: v.Data}, nil
	}
	numbers, err := numbersOf(v)
	if err != nil {
		return Input{}, err
	}
	data := make([]byte, 0, len(numbers)*t.DType().Size())
	for _, x := range numbers {
		if data, err = AppendNumber(data, t.DType(), x); err != nil {
			return Input{}, fmt.Errorf("the output has a number that is no %v: %w", t, err)
		}
	}
	return Input{Type: t, Data: data}, nil
}

// JoinInput makes one input of several outputs, by the names of their stages: of numbers all of
// them in order, of strings a JSON object.
func JoinInput(t InputType, names []string, values []Value) (Input, error) {
	joined := Input{Type: t}
	if t != Strings {
		for i, v := range values {
			in, err := NewInput(t, v)
			if err != nil {
				return Input{}, fmt.Errorf("from %s: %w", names[i], err)
			}
			joined.Data = append(joined.Data, in.Data...)
		}
		return joined, nil
	}
	object := make(map[string]json.RawMessage, len(values))
	for i, v := range values {
		text, err := AppendJSON(nil, v)
		if err != nil {
			return Input{}, fmt.Errorf("from %s: %w", names[i], err)
		}
		object[names[i]] = text
	}
	data, err := json.Marshal(object)
	joined.Data = data
	return joined, err
}

var errNotNumbers = errors.New("the output is neither a number nor a list of numbers")

// numbersOf are the numbers of a tensor, or of a text that is a JSON list of them.
func numbersOf(v Value) ([]float64, error) {
	if v.DType == String || v.DType == JSON {
		var list []float64
		if json.Unmarshal(v.Data, &list) == nil {
			return list, nil
		}
		var one float64
		if json.Unmarshal(v.Data, &one) == nil {
			return []float64{one}, nil
		}
		return nil, errNotNumbers
	}
	size := v.DType.Size()
	if size == 0 {
		return nil, errNotNumbers
	}
	list := make([]float64, len(v.Data)/size)
	for i := range list {
		list[i] = NumberAt(v.DType, v.Data[i*size:])
	}
	return list, nil
}

// NumberAt is the first number of data whose elements are of type t, which has a Size.
func NumberAt(t DType, b []byte) float64 {
	le := binary.LittleEndian
	switch t {
	case Uint8, Bool:
		return float64(b[0])
	case Int32:
		return float64(int32(le.Uint32(b)))
	case Int64:
		return float64(int64(le.Uint64(b)))
	case Int8:
		return float64(int8(b[0]))
	case Int16:
		return float64(int16(le.Uint16(b)))
	case Uint16:
		return float64(le.Uint16(b))
	case Uint32:
		return float64(le.Uint32(b))
	case Uint64:
		return float64(le.Uint64(b))
	case Float16:
		return float64(Half(le.Uint16(b)))
	case BFloat16:
		return float64(BrainFloat(le.Uint16(b)))
	case Float32:
		return float64(math.Float32frombits(le.Uint32(b)))
	}
	return math.Float64frombits(le.Uint64(b))
}

// AppendNumber appends x as an element of type t. A number that the type cannot hold is an error, and so is a
// fraction where a whole number is needed.
func AppendNumber(b []byte, t DType, x float64) ([]byte, error) {
	le := binary.LittleEndian
	switch {
	case t == Float64:
		return le.AppendUint64(b, math.Float64bits(x)), nil
	case t == Float32 && (math.Abs(x) <= math.MaxFloat32 || math.IsInf(x, 0) || math.IsNaN(x)):
		return le.AppendUint32(b, math.Float32bits(float32(x))), nil
	case t == Float16:
		return le.AppendUint16(b, ToHalf(float32(x))), nil
	case t == BFloat16:
		return le.AppendUint16(b, ToBrainFloat(float32(x))), nil
	}
	least, most := wholes(t)
	if x != math.Trunc(x) || x < least || x > most || most == 0 {
		return b, fmt.Errorf("%v cannot be %v", x, t)
	}
	whole := uint64(int64(x))
	if t == Uint64 {
		whole = uint64(x)
	}
	return append(b, le.AppendUint64(nil, whole)[:t.Size()]...), nil
}

// wholes are the least and the highest number of a type of whole numbers; of others both are 0.
func wholes(t DType) (least, most float64) {
	bits := 8 * t.Size()
	switch t {
	case Bool:
		return 0, 1
	case Uint8, Uint16, Uint32:
		return 0, math.Ldexp(1, bits) - 1
	case Uint64: // the highest float64 below
		return 0, math.Nextafter(math.Ldexp(1, bits), 0)
	case Int8, Int16, Int32:
		return -math.Ldexp(1, bits-1), math.Ldexp(1, bits-1) - 1
	case Int64:
		return -math.Ldexp(1, bits-1), math.Nextafter(math.Ldexp(1, bits-1), 0)
	}
	return 0, 0
}

// ConvertNumbers makes elements of one type those of another one, both of which have a Size. It fails as AppendNumber
// does.
func ConvertNumbers(from DType, data []byte, to DType) ([]byte, error) {
	converted := make([]byte, 0, len(data)/from.Size()*to.Size())
	var err error
	for ; len(data) >= from.Size(); data = data[from.Size():] {
		if converted, err = AppendNumber(converted, to, NumberAt(from, data)); err != nil {
			return nil, err
		}
	}
	return converted, nil
}

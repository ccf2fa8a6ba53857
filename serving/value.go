package serving

import (
	"encoding/binary"
	"fmt"
	"math"
)

// DType names the element type of a Value. The numbers are those of the wire
// protocol and never change.
type DType uint8

const (
	Uint8   DType = 1
	Int32   DType = 2
	Int64   DType = 3
	Float32 DType = 4
	Float64 DType = 5
	Bool    DType = 6  // one byte per element, 0 or 1
	String  DType = 16 // UTF-8 text, no shape
	JSON    DType = 17 // one JSON text, no shape
	Opaque  DType = 18 // bytes that only the two ends understand, no shape
)

// Size is the number of bytes of one element, or 0 for the types without a shape.
func (t DType) Size() int {
	switch t {
	case Uint8, Bool:
		return 1
	case Int32, Float32:
		return 4
	case Int64, Float64:
		return 8
	}
	return 0
}

// Known says whether t is one of the types above.
func (t DType) Known() bool { return t.Size() > 0 || (t >= String && t <= Opaque) }

func (t DType) String() string {
	switch t {
	case Uint8:
		return "uint8"
	case Int32:
		return "int32"
	case Int64:
		return "int64"
	case Float32:
		return "float32"
	case Float64:
		return "float64"
	case Bool:
		return "bool"
	case String:
		return "string"
	case JSON:
		return "json"
	case Opaque:
		return "opaque"
	}
	return fmt.Sprintf("dtype(%d)", uint8(t))
}

// Value is one named value of a payload: a tensor in row-major little-endian
// bytes, or a text or blob without a shape.
type Value struct {
	Name  string
	DType DType
	Shape []int // nil for a scalar and for types without a shape
	Data  []byte
}

// Number builds the scalar value of one float64.
func Number(x float64) Value {
	return Value{DType: Float64, Data: binary.LittleEndian.AppendUint64(nil, math.Float64bits(x))}
}

// Text builds a string value.
func Text(s string) Value { return Value{DType: String, Data: []byte(s)} }

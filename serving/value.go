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
	Uint8    DType = 1
	Int32    DType = 2
	Int64    DType = 3
	Float32  DType = 4
	Float64  DType = 5
	Bool     DType = 6 // one byte per element, 0 or 1
	Int8     DType = 7 // this and those below up to Blob: only to peers with rpc.FeatureTensors
	Int16    DType = 8
	Uint16   DType = 9
	Uint32   DType = 10
	Uint64   DType = 11
	Float16  DType = 12 // IEEE 754 binary16
	BFloat16 DType = 13 // the upper half of a Float32
	Blob     DType = 14 // any bytes; with a shape, see Value
	String   DType = 16 // UTF-8 text; a shape only to peers with rpc.FeatureTensors
	JSON     DType = 17 // one JSON text, no shape
	Opaque   DType = 18 // bytes that only the two ends understand, no shape
)

// dtypes are the types with the bytes of an element (0: any number), their names, which signatures use, too,
// and those of the Open Inference Protocol, where texts and JSON are BYTES.
var dtypes = [...]struct {
	size     int
	name     string
	datatype string
}{
	Uint8: {1, "uint8", "UINT8"}, Int32: {4, "int32", "INT32"}, Int64: {8, "int64", "INT64"}, Float32: {4, "float32", "FP32"}, Float64: {8, "float64", "FP64"},
	Bool: {1, "bool", "BOOL"}, Int8: {1, "int8", "INT8"}, Int16: {2, "int16", "INT16"}, Uint16: {2, "uint16", "UINT16"}, Uint32: {4, "uint32", "UINT32"}, Uint64: {8, "uint64", "UINT64"},
	Float16: {2, "float16", "FP16"}, BFloat16: {2, "bfloat16", "BF16"}, Blob: {0, "bytes", "BYTES"},
	String: {0, "string", "BYTES"}, JSON: {0, "json", "BYTES"}, Opaque: {0, "opaque", ""},
}

// Datatype is the name of t in the Open Inference Protocol; empty for one that it cannot carry.
func (t DType) Datatype() string {
	if int(t) < len(dtypes) {
		return dtypes[t].datatype
	}
	return ""
}

// ParseDatatype reads a name of the Open Inference Protocol; BYTES is a Blob.
func ParseDatatype(name string) (DType, error) {
	if name == "BYTES" {
		return Blob, nil
	}
	for t, known := range dtypes {
		if known.datatype == name && name != "" {
			return DType(t), nil
		}
	}
	return 0, fmt.Errorf("datatype %.20q is unknown: use BOOL, INT8, INT16, INT32, INT64, UINT8, UINT16, UINT32, UINT64, FP16, BF16, FP32, FP64 or BYTES", name)
}

// Size is the number of bytes of one element, or 0 for types whose elements differ in length.
func (t DType) Size() int {
	if int(t) < len(dtypes) {
		return dtypes[t].size
	}
	return 0
}

// Known says whether t is one of the types above.
func (t DType) Known() bool { return int(t) < len(dtypes) && dtypes[t].name != "" }

func (t DType) String() string {
	if t.Known() {
		return dtypes[t].name
	}
	return fmt.Sprintf("dtype(%d)", uint8(t))
}

// Value is one named value of a payload: a tensor in row-major little-endian
// bytes, or a text or blob. Of a tensor of Strings or Blobs each element is a u32 length
// and the bytes; a single one, without a shape, is the bytes alone.
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

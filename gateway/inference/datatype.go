package inference

import (
	"fmt"

	"github.com/topsail-serving/topsail/serving"
)

// Datatype is the protocol's name of an element type; empty for one that it cannot carry.
func Datatype(t serving.DType) string {
	if int(t) < len(datatypes) {
		return datatypes[t]
	}
	return ""
}

// datatypes are the protocol's names of element types. Texts and JSON are BYTES there.
var datatypes = [...]string{
	serving.Bool: "BOOL", serving.Int8: "INT8", serving.Int16: "INT16", serving.Int32: "INT32", serving.Int64: "INT64",
	serving.Uint8: "UINT8", serving.Uint16: "UINT16", serving.Uint32: "UINT32", serving.Uint64: "UINT64",
	serving.Float16: "FP16", serving.BFloat16: "BF16", serving.Float32: "FP32", serving.Float64: "FP64",
	serving.Blob: "BYTES", serving.String: "BYTES", serving.JSON: "BYTES",
}

// ParseDatatype reads a name; BYTES is a Blob.
func ParseDatatype(name string) (serving.DType, error) {
	if name == "BYTES" {
		return serving.Blob, nil
	}
	for t, known := range datatypes {
		if known == name && known != "" {
			return serving.DType(t), nil
		}
	}
	return 0, fmt.Errorf("datatype %.20q is unknown: use BOOL, INT8, INT16, INT32, INT64, UINT8, UINT16, UINT32, UINT64, FP16, BF16, FP32, FP64 or BYTES", name)
}

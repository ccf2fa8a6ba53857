package selection

import (
	"bytes"
	"encoding/json"
	"math"
	"reflect"
	"slices"
	"strconv"

	"github.com/topsail-serving/topsail/serving"
)

// Number is the output as one number, if it is one: a scalar, or a text that is one.
func Number(o *serving.Output) (float64, bool) {
	if v := &o.Value; v.DType.Size() > 0 {
		if len(v.Data) != v.DType.Size() {
			return 0, false
		}
		return serving.NumberAt(v.DType, v.Data), true
	}
	if len(o.JSON) == 0 || o.JSON[0] != '-' && (o.JSON[0] < '0' || o.JSON[0] > '9') {
		return 0, false // without the allocations of ParseFloat's error
	}
	x, err := strconv.ParseFloat(string(o.JSON), 64)
	return x, err == nil && !math.IsInf(x, 0) && !math.IsNaN(x)
}

// Vector appends the output's numbers, if it is a number or a flat list of them.
func Vector(dst []float64, o *serving.Output) ([]float64, bool) {
	v := &o.Value
	size := v.DType.Size()
	if size == 0 {
		return jsonVector(dst, o.JSON)
	}
	if len(v.Data)%size != 0 {
		return dst, false
	}
	for at := 0; at < len(v.Data); at += size {
		dst = append(dst, serving.NumberAt(v.DType, v.Data[at:]))
	}
	return dst, true
}

func jsonVector(dst []float64, text []byte) ([]float64, bool) {
	if bytes.IndexByte(text, 'n') >= 0 {
		return dst, false // a null, which would be read as 0
	}
	var list []float64
	if err := json.Unmarshal(text, &list); err == nil && list != nil {
		return append(dst, list...), true
	}
	var x float64
	if err := json.Unmarshal(text, &x); err != nil {
		return dst, false
	}
	return append(dst, x), true
}

// Same says whether two outputs are the same answer: equal as JSON values, whatever
// their spelling.
func Same(a, b *serving.Output) bool {
	if a.Values != nil && b.Values != nil {
		return bytes.Equal(a.NamedJSON, b.NamedJSON) || sameJSON(a.NamedJSON, b.NamedJSON)
	}
	if bytes.Equal(a.JSON, b.JSON) {
		return true
	}
	if x, ok := Number(a); ok {
		if y, ok := Number(b); ok {
			return x == y
		}
	}
	if a.Value.DType.Size() > 0 && b.Value.DType.Size() > 0 {
		return sameTensor(&a.Value, &b.Value)
	}
	return sameJSON(a.JSON, b.JSON)
}

// sameTensor compares numbers without decoding texts.
func sameTensor(a, b *serving.Value) bool {
	if (a.DType == serving.Bool) != (b.DType == serving.Bool) || !slices.Equal(a.Shape, b.Shape) {
		return false
	}
	x, y := a.Data, b.Data
	for len(x) >= a.DType.Size() && len(y) >= b.DType.Size() {
		if serving.NumberAt(a.DType, x) != serving.NumberAt(b.DType, y) {
			return false
		}
		x, y = x[a.DType.Size():], y[b.DType.Size():]
	}
	return len(x) == len(y)
}

// sameJSON compares values whose texts differ, and which are not both numbers.
func sameJSON(a, b []byte) bool {
	if !spellings(a, b) {
		return false
	}
	var x, y any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && reflect.DeepEqual(x, y)
}

// spellings says whether two texts that differ may be the same value: both lists or both
// objects, or strings of which one has an escape.
func spellings(a, b []byte) bool {
	if len(a) == 0 || len(b) == 0 || a[0] != b[0] {
		return false
	}
	switch a[0] {
	case '[', '{':
		return true
	case '"':
		return bytes.IndexByte(a, '\\') >= 0 || bytes.IndexByte(b, '\\') >= 0
	}
	return false
}

// Confidence is the model's own confidence in an output, or 0 where it gave none that is
// between 0 and 1.
func Confidence(o *serving.Output) float64 {
	if o.Confidence != nil && *o.Confidence >= 0 && *o.Confidence <= 1 {
		return *o.Confidence
	}
	return 0
}

package v1

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/topsail-serving/topsail/serving"
)

// AppendBatch appends the request for a batch. Each input is the Data of a
// serving.Input of type t. A length above 0 is the one that the model declares,
// in elements, and makes the format a fixed one; with 0 the format is fixed when
// all inputs happen to have one length. The length is ignored for Strings.
//
// On error b comes back as it was. Bytes of b past its length may be overwritten.
func AppendBatch(b []byte, t serving.InputType, length int, inputs [][]byte) ([]byte, error) {
	f, err := check(t, length, inputs)
	if err != nil {
		return b, err
	}
	b = append(b, byte(f))
	b = appendU32(b, len(inputs))
	switch {
	case f == Strings:
		return appendText(b, inputs)
	case f.fixed():
		return appendFixed(b, t, inputs), nil
	default:
		return appendVariable(b, t, inputs), nil
	}
}

// check finds the format of a batch, or says why it cannot be sent.
func check(t serving.InputType, length int, inputs [][]byte) (Format, error) {
	if n := len(inputs); n == 0 || n > MaxBatch {
		return 0, fmt.Errorf("rpc/v1: a batch has 1 to %d inputs, not %d", MaxBatch, n)
	}
	oneLength := true
	content := 4 * int64(len(inputs))
	size := max(1, t.DType().Size())
	for i, in := range inputs {
		if len(in)%size != 0 {
			return 0, fmt.Errorf("rpc/v1: input %d has %d bytes, which is not a whole number of %v", i, len(in), t)
		}
		if length > 0 && t != serving.Strings && len(in) != length*size {
			return 0, fmt.Errorf("rpc/v1: input %d has %d elements, and the model takes %d", i, len(in)/size, length)
		}
		oneLength = oneLength && len(in) == len(inputs[0])
		content += int64(wireSize(t, in))
	}
	if content > maxContent {
		return 0, fmt.Errorf("rpc/v1: the batch has %d bytes, and a request holds at most %d: use smaller batches", content, maxContent)
	}
	return formatOf(t, oneLength)
}

// wireSize is the number of bytes that an input's elements take in a request.
func wireSize(t serving.InputType, in []byte) int {
	if t == serving.Floats {
		return 2 * len(in)
	}
	return len(in)
}

func appendFixed(b []byte, t serving.InputType, inputs [][]byte) []byte {
	length := len(inputs[0]) / t.DType().Size()
	b = slices.Grow(b, 4+len(inputs)*wireSize(t, inputs[0]))
	b = appendU32(b, length)
	for _, in := range inputs {
		b = appendElements(b, t, in)
	}
	return b
}

func appendVariable(b []byte, t serving.InputType, inputs [][]byte) []byte {
	content := 0
	for _, in := range inputs {
		content += 4 + wireSize(t, in)
	}
	b = slices.Grow(b, 4+content)
	b = appendU32(b, content)
	for _, in := range inputs {
		b = appendU32(b, len(in)/t.DType().Size())
		b = appendElements(b, t, in)
	}
	return b
}

func appendElements(b []byte, t serving.InputType, in []byte) []byte {
	if t != serving.Floats {
		return append(b, in...)
	}
	le := binary.LittleEndian
	for ; len(in) >= 4; in = in[4:] {
		x := float64(math.Float32frombits(le.Uint32(in)))
		b = le.AppendUint64(b, math.Float64bits(x))
	}
	return b
}

func appendU32(b []byte, v int) []byte { return binary.LittleEndian.AppendUint32(b, uint32(v)) }

package v1_test

import (
	"bytes"
	"slices"
	"testing"

	v1 "github.com/topsail-serving/topsail/rpc/v1"
	"github.com/topsail-serving/topsail/rpc/v1/v1test"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/test/require"
)

func BenchmarkAppendBatch(b *testing.B) {
	vector := make([]byte, 784*8)
	text := bytes.Repeat([]byte("a sentence of some words; "), 10)
	for _, c := range []struct {
		name   string
		t      serving.InputType
		inputs [][]byte
	}{
		{"doubles", serving.Doubles, slices.Repeat([][]byte{vector}, 64)},
		{"floats", serving.Floats, slices.Repeat([][]byte{vector[:784*4]}, 64)},
		{"variable", serving.Doubles, append(slices.Repeat([][]byte{vector}, 63), vector[:8])},
		{"strings", serving.Strings, slices.Repeat([][]byte{text}, 64)},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			var buf []byte
			for b.Loop() {
				request, err := v1.AppendBatch(buf[:0], c.t, 0, c.inputs)
				require.NoError(b, err)
				buf = request
				b.SetBytes(int64(len(c.inputs) * len(c.inputs[0])))
			}
		})
	}
}

func BenchmarkDecodeBatch(b *testing.B) {
	request, err := v1.AppendBatch(nil, serving.Doubles, 0, slices.Repeat([][]byte{make([]byte, 784*8)}, 64))
	require.NoError(b, err)
	b.ReportAllocs()
	b.SetBytes(int64(len(request)))
	for b.Loop() {
		if _, err := v1.DecodeBatch(bytes.NewReader(request)); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkDecodeReply(b *testing.B) {
	reply := v1.AppendReply(nil, make([]float64, 64))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := v1.DecodeReply(reply, 64); err != nil {
			b.Fatal(err)
		}
	}
}

// A whole batch over loopback, with a container that does nothing.
func BenchmarkPredictBatch(b *testing.B) {
	outputs := make([]float64, 16)
	c := dial(b, v1test.Start(b, func(v1.Batch) []float64 { return outputs }).Addr())
	inputs := slices.Repeat([][]byte{make([]byte, 10*8)}, len(outputs))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := c.PredictBatch(b.Context(), serving.Doubles, 10, inputs); err != nil {
			b.Fatal(err)
		}
	}
}

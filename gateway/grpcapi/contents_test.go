package grpcapi

import (
	"bytes"
	"testing"

	googleproto "google.golang.org/protobuf/proto"

	"github.com/topsail-serving/topsail/gateway/grpcapi/proto"
	"github.com/topsail-serving/topsail/gateway/inference"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/test/require"
)

// Typed contents of every datatype are the raw ones.
func TestTypedContents(t *testing.T) {
	for _, v := range []serving.Value{
		{DType: serving.Bool, Data: []byte{0, 1}}, {DType: serving.Int8, Data: []byte{0xff, 1}}, {DType: serving.Uint8, Data: []byte{0xff, 1}},
		{DType: serving.Int16, Data: []byte{0xfe, 0xff, 1, 0}}, {DType: serving.Uint16, Data: []byte{0xfe, 0xff, 1, 0}},
		{DType: serving.Int32, Data: []byte{0xfe, 0xff, 0xff, 0xff, 1, 0, 0, 0}}, {DType: serving.Uint32, Data: []byte{0xfe, 0xff, 0xff, 0xff, 1, 0, 0, 0}},
		{DType: serving.Int64, Data: bytes.Repeat([]byte{0xf0}, 16)}, {DType: serving.Uint64, Data: bytes.Repeat([]byte{0xf0}, 16)},
		{DType: serving.Float32, Data: []byte{0, 0, 0x80, 0x3f, 0, 0, 0, 0x40}}, {DType: serving.Float64, Data: doubles(1, 2)},
		{DType: serving.Blob, Data: serving.AppendElement(serving.AppendElement(nil, "a"), "")},
	} {
		v.Shape = []int{2}
		got := serving.Value{DType: v.DType, Shape: v.Shape}
		if err := typed(&got, contents(&v), 2); err != nil || !bytes.Equal(got.Data, v.Data) {
			t.Errorf("%s became %v, %v", v.DType.Datatype(), got.Data, err)
		}
	}
}

// FuzzRequest: what is taken of a message has as many bytes as its shape needs, and is the same typed.
func FuzzRequest(f *testing.F) {
	add := func(m *proto.ModelInferRequest) {
		b, err := googleproto.Marshal(m)
		require.NoError(f, err)
		f.Add(b)
	}
	add(vector("sums", 1, 2))
	add(&proto.ModelInferRequest{
		Parameters: map[string]*proto.InferParameter{"timeout": parameter(int64(5)), "uid": parameter("u")},
		Inputs: []*proto.ModelInferRequest_InferInputTensor{{
			Name: "t", Datatype: "BYTES", Shape: []int64{1, 2}, Contents: &proto.InferTensorContents{BytesContents: [][]byte{{'a'}, nil}},
		}},
		Outputs: []*proto.ModelInferRequest_InferRequestedOutputTensor{{Name: "y"}},
	})
	f.Fuzz(func(t *testing.T, b []byte) {
		m := &proto.ModelInferRequest{}
		if googleproto.Unmarshal(b, m) != nil {
			return
		}
		r, err := request(m)
		if err != nil {
			return
		}
		for i := range r.Inputs {
			v := &r.Inputs[i]
			require.NoError(t, inference.CheckRaw(v))
			if v.DType == serving.Float16 || v.DType == serving.BFloat16 || v.DType == serving.Bool { // of which raw data may have any byte
				continue
			}
			again := serving.Value{DType: v.DType, Shape: v.Shape}
			if err := typed(&again, contents(v), serving.Elements(v.Shape)); err != nil || !bytes.Equal(again.Data, v.Data) {
				t.Fatalf("%v became %v, %v", v, again, err)
			}
		}
	})
}

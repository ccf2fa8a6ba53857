//go:build edge

package edge

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/encoding"
	_ "google.golang.org/grpc/encoding/gzip" // for bombs
	"google.golang.org/grpc/status"

	"github.com/topsail-serving/topsail/gateway/grpcapi/proto"
)

// call is a client of the port for gRPC, which leaves at the end of the attack.
func (s *server) call(t *testing.T, options ...grpc.DialOption) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient(s.grpc, append(options, grpc.WithTransportCredentials(insecure.NewCredentials()))...)
	if err != nil {
		t.Fatal(err)
	}
	return conn
}

// tensor is an input of a request.
func tensor(name, datatype string, shape ...int64) *proto.ModelInferRequest_InferInputTensor {
	return &proto.ModelInferRequest_InferInputTensor{Name: name, Datatype: datatype, Shape: shape}
}

// inferred is a request with one input and its data.
func inferred(in *proto.ModelInferRequest_InferInputTensor, raw ...string) *proto.ModelInferRequest {
	m := &proto.ModelInferRequest{ModelName: "target", Inputs: []*proto.ModelInferRequest_InferInputTensor{in}}
	for _, data := range raw {
		m.RawInputContents = append(m.RawInputContents, []byte(data))
	}
	return m
}

// malformedGRPC is calls that are wrong: each has a status that says so, on a connection that stays.
func malformedGRPC() attack {
	eight := strings.Repeat("\x00", 8)
	many := &proto.ModelInferRequest{ModelName: "target"}
	for range 10_000 {
		many.Inputs = append(many.Inputs, tensor("input", "FP64", 1, 1))
	}
	typed := tensor("input", "FP64", 1, 1)
	typed.Contents = &proto.InferTensorContents{Fp64Contents: []float64{1}}
	mistyped := tensor("input", "FP64", 1, 1)
	mistyped.Contents = &proto.InferTensorContents{IntContents: []int32{1}}
	version := inferred(tensor("input", "FP64", 1, 1), eight)
	version.ModelVersion = "7"
	unknown := inferred(tensor("input", "FP64", 1, 1), eight)
	unknown.ModelName = strings.Repeat("m", 1_000_000)
	wrong := codes.InvalidArgument
	list := []struct {
		name string
		m    *proto.ModelInferRequest
		code codes.Code
		says string
	}{
		{"nothing", &proto.ModelInferRequest{}, codes.NotFound, ""},
		{"no inputs", &proto.ModelInferRequest{ModelName: "target"}, wrong, "none"},
		{"a long name", unknown, codes.NotFound, ""},
		{"no such version", version, codes.NotFound, "does not exist"},
		{"10,000 tensors", many, wrong, "at most 64"},
		{"data of two inputs", inferred(tensor("input", "FP64", 1, 1), eight, eight), wrong, "raw_input_contents"},
		{"too few bytes", inferred(tensor("input", "FP64", 1, 2), eight), wrong, "needs 16"},
		{"too many bytes", inferred(tensor("input", "FP64", 1, 1), eight+eight), wrong, "needs 8"},
		{"contents twice", inferred(typed, eight), wrong, "give one of them"},
		{"contents of another type", inferred(mistyped), wrong, "0 elements"},
		{"no contents", inferred(tensor("input", "FP64", 1, 1)), wrong, "0 elements"},
		{"a shape below 0", inferred(tensor("input", "FP64", -1, 1), eight), wrong, "dimension -1"},
		{"a shape that overflows", inferred(tensor("input", "FP64", 1<<16, 1<<16, 1<<16, 1<<16), ""), wrong, "more than 2^31"},
		{"a dimension that overflows", inferred(tensor("input", "FP64", math.MaxInt64, 1), eight), wrong, "dimension"},
		{"a hundred dimensions", inferred(tensor("input", "FP64", make([]int64, 100)...), ""), wrong, "more than 8"},
		{"two billion rows of nothing", inferred(tensor("input", "FP64", 2_000_000_000, 0), ""), wrong, ""},
		{"an unknown type", inferred(tensor("input", "FP128", 1, 1), eight+eight), wrong, "unknown"},
		{"a text that is longer than the rest", inferred(tensor("input", "BYTES", 1), "\xff\xff\xff\xffabcd"), wrong, "ends before"},
		{"texts that are not there", inferred(tensor("input", "BYTES", 2_000_000_000), eight), wrong, "ends before"},
		{"a type that the app does not take", inferred(tensor("input", "FP32", 1, 2), eight), wrong, "FP64"},
	}
	return attack{
		name: fmt.Sprintf("%d wrong calls over gRPC", len(list)+4),
		run: func(t *testing.T, s *server) {
			conn := s.call(t)
			defer conn.Close()
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			client := proto.NewGRPCInferenceServiceClient(conn)
			expect := func(name string, err error, code codes.Code, says string) {
				t.Helper()
				if status.Code(err) != code || !strings.Contains(status.Convert(err).Message(), says) {
					t.Errorf("%s: %.300v, want %v %q", name, err, code, says)
				}
			}
			for _, one := range list {
				_, err := client.ModelInfer(ctx, one.m)
				expect(one.name, err, one.code, one.says)
			}
			large := inferred(tensor("input", "FP64", 1, 1), strings.Repeat("\x00", 17<<20))
			_, err := client.ModelInfer(ctx, large)
			expect("17 MiB", err, codes.ResourceExhausted, "")
			_, err = client.ModelInfer(ctx, large, grpc.UseCompressor("gzip"))
			expect("a bomb", err, codes.ResourceExhausted, "")
			err = conn.Invoke(ctx, proto.GRPCInferenceService_ModelInfer_FullMethodName, "\xff\xff\xff\xff", new(string), grpc.ForceCodec(plain{}))
			expect("what is no message", err, codes.Internal, "")
			err = conn.Invoke(ctx, "/inference.GRPCInferenceService/Nothing", "", new(string), grpc.ForceCodec(plain{}))
			expect("an unknown call", err, codes.Unimplemented, "")
			s.answersCalls(t)
			if strings.Contains(s.output(), "panic") {
				t.Error("something panicked")
			}
		},
		outside: 3 * 17 << 20,
	}
}

// plain is a codec of texts, for messages that are none.
type plain struct{}

var _ encoding.Codec = plain{}

func (plain) Marshal(v any) ([]byte, error)      { return []byte(v.(string)), nil }
func (plain) Unmarshal(data []byte, v any) error { *v.(*string) = string(data); return nil }
func (plain) Name() string                       { return "proto" }

// answersCalls holds a server to answer a call of a client that has come just now.
func (s *server) answersCalls(t *testing.T) {
	t.Helper()
	conn := s.call(t)
	defer conn.Close()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	_, err := proto.NewGRPCInferenceServiceClient(conn).ModelInfer(ctx, inferred(tensor("input", "FP64", 1, 1), strings.Repeat("\x00", 8)))
	if err != nil {
		t.Errorf("another client is not answered: %v", err)
	}
}

//go:build edge

package edge

import (
	"context"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/topsail-serving/topsail/gateway/grpcapi/proto"
	"github.com/topsail-serving/topsail/test/require"
)

// call is a client of the port for gRPC, which leaves at the end of the attack.
func (s *server) call(t *testing.T, options ...grpc.DialOption) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient(s.grpc, append(options, grpc.WithTransportCredentials(insecure.NewCredentials()))...)
	require.NoError(t, err)
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

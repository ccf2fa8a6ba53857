//go:build edge

package edge

import (
	"context"
	"fmt"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/topsail-serving/topsail/gateway/grpcapi/proto"
)

// endlessChat is a question whose answer in parts does not end by itself.
const endlessChat = `{"messages":[{"role":"user","content":"endless"}]}`

// asksTopsail asks it in our own form.
func asksTopsail() *proto.PredictRequest {
	return &proto.PredictRequest{App: "chat", Inputs: []*proto.Tensor{{Datatype: "BYTES", Data: framed(endlessChat)}}}
}

// framed is a text as an element of BYTES.
func framed(text string) []byte {
	n := len(text)
	return append([]byte{byte(n), byte(n >> 8), 0, 0}, text...)
}

// asksTriton asks it in Triton's.
func asksTriton() *proto.ModelInferRequest {
	m := inferred(tensor("input", "BYTES", 1), string(framed(endlessChat)))
	m.ModelName = "chat"
	m.Parameters = map[string]*proto.InferParameter{"triton_enable_empty_final_response": {ParameterChoice: &proto.InferParameter_BoolParam{BoolParam: true}}}
	return m
}

// begin begins so many calls for answers that do not end, on one connection: half of them in Triton's form.
// With read the first part of each is awaited.
func (s *server) begin(ctx context.Context, t *testing.T, conn *grpc.ClientConn, n int, read bool) {
	t.Helper()
	for i := range n {
		var err error
		if i%2 == 0 {
			var stream proto.Topsail_PredictStreamClient
			if stream, err = proto.NewTopsailClient(conn).PredictStream(ctx, asksTopsail()); err == nil && read {
				_, err = stream.Recv()
			}
		} else {
			var stream proto.GRPCInferenceService_ModelStreamInferClient
			if stream, err = proto.NewGRPCInferenceServiceClient(conn).ModelStreamInfer(ctx); err == nil {
				err = stream.Send(asksTriton())
			}
			if err == nil && i%4 == 1 { // and asks nothing more
				err = stream.CloseSend()
			}
			if err == nil && read {
				var first *proto.ModelStreamInferResponse
				if first, err = stream.Recv(); err == nil && first.GetErrorMessage() != "" {
					err = fmt.Errorf("an answer: %s", first.GetErrorMessage())
				}
			}
		}
		if err != nil {
			t.Errorf("call %d: %v", i, err)
			return
		}
	}
}

// droppedCalls is clients that cancel their calls after the beginning of the answers, and leave.
func droppedCalls() attack {
	const n = 300
	return attack{
		name: fmt.Sprintf("%d begin to read answers over gRPC and leave", n),
		run: func(t *testing.T, s *server) {
			for i := range 10 {
				conn := s.call(t)
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				s.begin(ctx, t, conn, n/10, true)
				if i%2 == 0 {
					cancel()
				}
				conn.Close()
				cancel()
			}
			s.awaitTalking(t, 2*time.Second, none)
		},
		outside: n * perConnection,
	}
}

// unreadCalls is clients that do not read their answers: the model stops.
func unreadCalls() attack {
	const n = 10
	return attack{
		name: fmt.Sprintf("%d do not read their answers over gRPC", n),
		run: func(t *testing.T, s *server) {
			conn := s.call(t, grpc.WithInitialWindowSize(64<<10), grpc.WithInitialConnWindowSize(64<<10))
			defer conn.Close()
			ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
			defer cancel()
			before := s.state(t).goroutines
			s.begin(ctx, t, conn, n, false)
			s.awaitTalking(t, 5*time.Second, func(n int) bool { return n > 0 })
			s.awaitTalking(t, 25*time.Second, none)
			for over := time.Now().Add(15 * time.Second); s.state(t).goroutines > before+strayGoroutines; time.Sleep(100 * time.Millisecond) {
				if time.Now().After(over) {
					t.Errorf("%d goroutines wait for clients that do not read", s.state(t).goroutines-before)
					break
				}
			}
			s.expectNothingUnderWay(t)
		},
		outside: n * (1<<20 + perConnection),
	}
}

package grpcapi

import (
	"context"
	"errors"
	"io"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/topsail-serving/topsail/gateway/admission"
	"github.com/topsail-serving/topsail/gateway/grpcapi/proto"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/test/require"
)

// ask asks for an answer in parts, and reads it to its end.
func predictStream(t *testing.T, ctx context.Context, c client, app string) (parts []string, answer *proto.PredictResponse, err error) {
	t.Helper()
	stream, err := proto.NewTopsailClient(c.conn).PredictStream(ctx, &proto.PredictRequest{App: app, Inputs: []*proto.Tensor{{Datatype: "FP64", Shape: []int64{2}, Data: doubles(1, 2)}}})
	require.NoError(t, err)
	for {
		m, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return parts, answer, nil
		}
		if err != nil {
			return parts, answer, err
		}
		if a := m.GetAnswer(); a != nil {
			answer = a
		} else {
			parts = append(parts, m.GetPart().GetOutputJson())
		}
	}
}

func TestPredictStream(t *testing.T) {
	c := start(t, Config{}, newFake(), admission.Config{})
	parts, answer, err := predictStream(t, t.Context(), c, "sums")
	if err != nil || len(parts) != 2 || parts[1] != "2.0" || answer.GetQueryId() != 7 || answer.GetOutputJson() != "2.0" {
		t.Errorf("%v, %v, %v", parts, answer, err)
	}
	for app, want := range map[string]codes.Code{"gone": codes.NotFound, "closed": codes.Unauthenticated} {
		if _, _, err := predictStream(t, t.Context(), c, app); status.Code(err) != want {
			t.Errorf("%s: %v", app, err)
		}
	}
}

// An answer that is cut after parts ends with the status of the reason; before them the default is the answer.
func TestAPredictStreamThatIsCut(t *testing.T) {
	late := serving.Prediction{Default: true, Output: []byte("-1"), Cause: serving.MissedSLO, Explanation: "late"}
	for parts, want := range map[int]codes.Code{0: codes.OK, 1: codes.DeadlineExceeded} {
		core := newFake()
		core.parts = &fakeParts{parts: make([]float64, parts), end: late}
		_, answer, err := predictStream(t, t.Context(), start(t, Config{}, core, admission.Config{}), "sums")
		if status.Code(err) != want || (want == codes.OK) != answer.GetDefault() {
			t.Errorf("after %d parts: %v, %v", parts, answer, err)
		}
	}
}

func TestACallerThatLeavesStopsTheAnswer(t *testing.T) {
	core := newFake()
	core.parts = &fakeParts{parts: []float64{1}, hang: true, closed: make(chan struct{})}
	c := start(t, Config{}, core, admission.Config{})
	ctx, cancel := context.WithCancel(t.Context())
	stream, err := proto.NewTopsailClient(c.conn).PredictStream(ctx, &proto.PredictRequest{App: "sums", Inputs: []*proto.Tensor{{Datatype: "FP64", Shape: []int64{2}, Data: doubles(1, 2)}}})
	require.NoError(t, err)
	if _, err := stream.Recv(); err != nil {
		t.Fatal(err)
	}
	cancel()
	select {
	case <-core.parts.closed:
	case <-time.After(time.Minute):
		t.Fatal("the answer goes on")
	}
}

// A client that does not read holds up its own call, for so long, and nothing else.
func TestWhoDoesNotReadIsCutOff(t *testing.T) {
	stuck := make(chan struct{})
	defer close(stuck)
	write := func(int) error { <-stuck; return nil }
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	err := written(ctx, make(chan int), write, func(send func(int) error) error {
		return errors.Join(send(1), send(2))
	})
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
}

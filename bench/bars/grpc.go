package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"net"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/topsail-serving/topsail/gateway/grpcapi/proto"
)

// serveEcho is a gRPC server that answers every request as Topsail does, with one output, the model's version, the query's
// id and the model in its parameters, and does nothing else.
func serveEcho(ctx context.Context) error {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := grpc.NewServer()
	proto.RegisterGRPCInferenceServiceServer(server, echo{})
	defer context.AfterFunc(ctx, server.Stop)()
	if err := announce(listening{GRPC: ln.Addr().String()}); err != nil {
		return err
	}
	return server.Serve(ln)
}

type echo struct {
	proto.UnimplementedGRPCInferenceServiceServer
}

func (echo) ModelInfer(_ context.Context, m *proto.ModelInferRequest) (*proto.ModelInferResponse, error) {
	return &proto.ModelInferResponse{
		ModelName: m.GetModelName(), ModelVersion: "1", Parameters: map[string]*proto.InferParameter{
			"query_id": {ParameterChoice: &proto.InferParameter_Int64Param{Int64Param: 1 << 52}},
			"model":    {ParameterChoice: &proto.InferParameter_StringParam{StringParam: "noop:1"}},
		},
		Outputs:           []*proto.ModelInferResponse_InferOutputTensor{{Name: "output", Datatype: "FP64", Shape: []int64{1}}},
		RawOutputContents: [][]byte{m.GetRawInputContents()[0][:8]},
	}, nil
}

// grpcConnections and grpcCalls are how a server is kept busy: so many connections, with so many calls each.
const (
	grpcConnections = 8
	grpcCalls       = many / grpcConnections
)

// driveGRPC asks as fast as the calls allow for one period.
func (b *bench) driveGRPC(ctx context.Context, name, addr string) (drive, error) {
	var data []byte
	for i := range inputLength {
		data = binary.LittleEndian.AppendUint64(data, math.Float64bits(float64(i+1)/10))
	}
	m := &proto.ModelInferRequest{
		ModelName: appName, RawInputContents: [][]byte{data},
		Inputs: []*proto.ModelInferRequest_InferInputTensor{{Name: "input", Datatype: "FP64", Shape: []int64{1, inputLength}}},
	}
	var all sync.WaitGroup
	times, errs := make([][]time.Duration, many), make([]error, many)
	end := time.Now().Add(b.period())
	for c := range grpcConnections {
		conn, err := grpc.NewClient(addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			return drive{}, err
		}
		defer func() { _ = conn.Close() }() // the run is over
		client := proto.NewGRPCInferenceServiceClient(conn)
		for i := range grpcCalls {
			at := c*grpcCalls + i
			all.Go(func() {
				for errs[at] == nil && time.Now().Before(end) {
					began := time.Now()
					_, errs[at] = client.ModelInfer(ctx, m)
					times[at] = append(times[at], time.Since(began))
				}
			})
		}
	}
	began := time.Now()
	all.Wait()
	took := time.Since(began)
	for _, err := range errs {
		if err != nil {
			return drive{}, fmt.Errorf("%s: %w", name, err)
		}
	}
	sorted := slices.Sorted(slices.Values(slices.Concat(times...)))
	d := drive{Answers: int64(len(sorted)), Elapsed: took, Rate: float64(len(sorted)) / took.Seconds(), P50: sorted[len(sorted)/2], P99: sorted[len(sorted)*99/100]}
	b.say("  %-32s %4d calls: %8.0f/s, p50 %7.2f ms, p99 %7.2f ms", name, many, d.Rate, millis(d.P50), millis(d.P99))
	return d, nil
}

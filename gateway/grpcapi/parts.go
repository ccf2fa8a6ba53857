package grpcapi

import (
	"context"
	"errors"
	"io"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/topsail-serving/topsail/gateway/codec"
	"github.com/topsail-serving/topsail/gateway/grpcapi/proto"
	"github.com/topsail-serving/topsail/gateway/inference"
	"github.com/topsail-serving/topsail/serving"
)

// PredictStream answers one query in parts.
func (s queries) PredictStream(m *proto.PredictRequest, stream proto.Topsail_PredictStreamServer) error {
	ctx := stream.Context()
	c, err := s.open(ctx, m.GetApp())
	if err != nil {
		return err
	}
	defer c.lease.Release()
	q, err := s.query(&c, m)
	if err != nil {
		return err
	}
	events := make(chan *proto.PredictEvent)
	return written(ctx, events, stream.Send, func(send func(*proto.PredictEvent) error) error {
		p, err := s.parts(ctx, &c, &q, func(out *serving.Output) error {
			return send(&proto.PredictEvent{Event: &proto.PredictEvent_Part{Part: part(c.app, out)}})
		})
		if err != nil {
			return err
		}
		return send(&proto.PredictEvent{Event: &proto.PredictEvent_Answer{Answer: predicted(c.app, p)}})
	})
}

// parts asks a query, gives its parts to send, and returns how the answer ended. One that was cut is an
// error.
func (s *Server) parts(ctx context.Context, c *call, q *serving.Query, send func(*serving.Output) error) (*serving.Prediction, error) {
	if err := c.charge(1); err != nil {
		return nil, err
	}
	answer, err := s.core.Stream(q)
	if err != nil {
		return nil, err
	}
	defer answer.Close()
	for begun := false; ; begun = true {
		out, err := answer.Next(ctx)
		if errors.Is(err, io.EOF) {
			p := answer.Answer()
			if begun && p.Default {
				return nil, &inference.NoPrediction{Cause: p.Cause, Explanation: p.Explanation}
			}
			return p, nil
		}
		if err == nil {
			err = send(out)
		}
		if err != nil {
			return nil, err
		}
	}
}

// sendWithin is how long a client may not take a message of a stream.
const sendWithin = 10 * time.Second

var errSlow = status.Error(codes.Aborted, "the answer was read too slowly")

// written runs what sends messages, and has them written by a goroutine of their own: a client that does
// not read holds that up, and not this call, which then ends.
func written[M any](ctx context.Context, messages chan M, write func(M) error, run func(send func(M) error) error) error {
	broken := make(chan error, 1)
	go func() { // it ends with the stream, which ends with this call
		for m := range messages {
			if err := write(m); err != nil {
				broken <- err
				return
			}
		}
		close(broken)
	}()
	late := time.NewTimer(sendWithin)
	defer late.Stop()
	err := run(func(m M) error {
		late.Reset(sendWithin)
		select {
		case messages <- m:
			return nil
		case err := <-broken:
			return err
		case <-late.C:
			return errSlow
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	})
	close(messages)
	if err != nil {
		return err
	}
	late.Reset(sendWithin)
	select {
	case err := <-broken: // nil: all is written
		return err
	case <-late.C:
		return errSlow
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// part is a part of an answer.
func part(app *serving.App, out *serving.Output) *proto.Part {
	whole := predicted(app, &serving.Prediction{Output: out.JSON, Full: out})
	p := &proto.Part{Outputs: whole.Outputs, OutputJson: whole.OutputJson}
	if out.Value.DType == serving.String && len(out.Value.Shape) == 0 {
		p.OutputJson = string(codec.AppendString(nil, string(out.Value.Data)))
	}
	return p
}

package grpcapi

import (
	"context"
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/status"
	googleproto "google.golang.org/protobuf/proto"

	"github.com/topsail-serving/topsail/gateway/grpcapi/proto"
	"github.com/topsail-serving/topsail/gateway/inference"
	"github.com/topsail-serving/topsail/serving"
)

// ModelInfer answers a request for the predictions of one or several rows.
func (s *Server) ModelInfer(ctx context.Context, m *proto.ModelInferRequest) (*proto.ModelInferResponse, error) {
	c, err := s.open(ctx, m.GetModelName())
	if err != nil {
		return nil, err
	}
	defer c.lease.Release()
	r, queries, err := s.queries(&c, m)
	if err != nil {
		return nil, err
	}
	predictions, err := s.ask(ctx, &c, queries)
	if err != nil {
		return nil, err
	}
	return inferred(&c, m, r, predictions)
}

// queries are those of a request's rows.
func (s *Server) queries(c *call, m *proto.ModelInferRequest) (*inference.Request, []serving.Query, error) {
	if err := c.take(googleproto.Size(m)); err != nil {
		return nil, nil, err
	}
	r, err := request(m)
	if err != nil {
		return nil, nil, invalid(err)
	}
	queries, err := r.Queries(serving.Query{
		App: c.app.Name, Priority: max(c.priority, r.Options.Priority), Received: c.received, Timeout: serving.ShorterTimeout(c.timeout, r.Options.Timeout),
		User: r.Options.User, Context: r.Options.Context, Version: m.GetModelVersion(),
	}, c.app, s.config.MaxBatch)
	if err != nil {
		return nil, nil, invalid(err)
	}
	return r, queries, nil
}

// inferred is the answer of predictions.
func inferred(c *call, m *proto.ModelInferRequest, r *inference.Request, predictions []serving.Prediction) (*proto.ModelInferResponse, error) {
	answer, err := inference.NewAnswer(c.app, r, predictions)
	if _, none := errors.AsType[*inference.NoPrediction](err); err != nil && !none {
		return nil, invalid(err)
	} else if err != nil {
		return nil, err
	}
	return response(answer, len(m.GetRawInputContents()) > 0), nil
}

const (
	// small is how large requests and answers may be that need nothing of the budget, as calls are bounded.
	small = 8 << 10
	// onTheWay is how often an input or an output is there while a model is asked: here, in a frame,
	// and with the sidecar, which in local mode is in this process.
	onTheWay = 3
)

// take takes room for a message of a size, unless it is small.
func (c *call) take(size int) error {
	if size > small && !c.lease.Take(onTheWay*size) {
		return errNoMemory
	}
	return nil
}

// ask charges queries to the limits, takes room for their answers, and asks them.
func (s *Server) ask(ctx context.Context, c *call, queries []serving.Query) ([]serving.Prediction, error) {
	if err := c.charge(len(queries)); err != nil {
		return nil, err
	}
	if room := s.admission.AnswerSize(c.app.Name) * len(queries); room > 0 && !c.lease.Take(room) {
		return nil, errNoMemory
	}
	predictions, err := s.core.Predict(ctx, queries...)
	if err != nil {
		return nil, err
	}
	largest := 0
	for i := range predictions {
		largest = max(largest, len(predictions[i].Output))
	}
	s.admission.LearnAnswerSize(c.app.Name, onTheWay*2*largest, onTheWay*2*small)
	return predictions, nil
}

// streamCalls is how many requests of one stream are answered at a time; more wait to be read.
const streamCalls = 64

// ModelStreamInfer answers the requests of a stream side by side. A request that fails has an error message, and
// the stream goes on. It ends when its client does not read.
func (s *Server) ModelStreamInfer(stream proto.GRPCInferenceService_ModelStreamInferServer) error {
	var answering sync.WaitGroup
	var sending sync.Mutex
	var broken error // of sending; guarded by sending
	var slow atomic.Bool
	slots := make(chan struct{}, streamCalls)
	for {
		m, err := stream.Recv()
		if err != nil {
			answering.Wait()
			switch {
			case slow.Load():
				return errSlow
			case errors.Is(err, io.EOF):
				return broken // which none writes any more
			}
			return err
		}
		slots <- struct{}{}
		answering.Go(func() {
			defer func() { <-slots }()
			s.answer(stream.Context(), m, func(answer *proto.ModelStreamInferResponse) error {
				sending.Lock()
				defer sending.Unlock()
				if broken == nil {
					late := time.AfterFunc(sendWithin, func() { slow.Store(true); cut(stream.Context()) })
					broken = stream.Send(answer)
					late.Stop()
				}
				return broken
			})
		})
	}
}

// answer sends the messages of a stream for one of its requests. Triton's clients know by the id which one an error is
// of.
func (s *Server) answer(ctx context.Context, m *proto.ModelInferRequest, send func(*proto.ModelStreamInferResponse) error) {
	var err error
	defer func() {
		if err != nil { // who cannot be told has gone
			_ = send(&proto.ModelStreamInferResponse{ErrorMessage: status.Convert(err).Message(), InferResponse: &proto.ModelInferResponse{Id: m.GetId(), ModelName: m.GetModelName()}})
		}
	}()
	defer s.recovered("ModelStreamInfer", &err)
	if last, ok := m.GetParameters()["triton_enable_empty_final_response"].GetParameterChoice().(*proto.InferParameter_BoolParam); ok && last.BoolParam {
		err = s.statusOf(ctx, s.answerInParts(ctx, m, send))
		return
	}
	one, err := s.ModelInfer(ctx, m)
	if err = s.statusOf(ctx, err); err == nil {
		err = send(&proto.ModelStreamInferResponse{InferResponse: one})
	}
}

// answerInParts sends a message for each part of an answer and an empty one behind them, which clients of models
// with several answers ask for. Several rows are answered at once.
func (s *Server) answerInParts(ctx context.Context, m *proto.ModelInferRequest, send func(*proto.ModelStreamInferResponse) error) error {
	c, err := s.open(ctx, m.GetModelName())
	if err != nil {
		return err
	}
	defer c.lease.Release()
	r, queries, err := s.queries(&c, m)
	if err != nil {
		return err
	}
	sendOne := func(p []serving.Prediction) error {
		one, err := inferred(&c, m, r, p)
		if err != nil {
			return err
		}
		one.Parameters[finalResponse] = parameter(false)
		return send(&proto.ModelStreamInferResponse{InferResponse: one})
	}
	var said []inference.Parameter // of the whole answer
	if len(queries) > 1 {
		predictions, err := s.ask(ctx, &c, queries)
		if err == nil {
			err = sendOne(predictions)
		}
		if err != nil {
			return err
		}
	} else {
		begun := false
		var p *serving.Prediction
		p, err = s.parts(ctx, &c, &queries[0], func(out *serving.Output) error {
			begun = true
			return sendOne([]serving.Prediction{{Output: out.JSON, Full: out}})
		})
		if err == nil && !begun {
			err = sendOne([]serving.Prediction{*p})
		}
		if err != nil {
			return err
		}
		said = inference.Parameters([]serving.Prediction{*p})
	}
	last := &proto.ModelInferResponse{ModelName: m.GetModelName(), Id: m.GetId(), Parameters: map[string]*proto.InferParameter{finalResponse: parameter(true)}}
	for _, p := range said {
		last.Parameters[p.Name] = parameter(p.Value)
	}
	return send(&proto.ModelStreamInferResponse{InferResponse: last})
}

// finalResponse is the parameter that says whether a message is the last one of its request.
const finalResponse = "triton_final_response"

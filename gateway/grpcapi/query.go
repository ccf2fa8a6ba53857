package grpcapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	googleproto "google.golang.org/protobuf/proto"

	"github.com/topsail-serving/topsail/gateway/codec"
	"github.com/topsail-serving/topsail/gateway/grpcapi/proto"
	"github.com/topsail-serving/topsail/gateway/inference"
	"github.com/topsail-serving/topsail/serving"
)

// queries is the service of Topsail's own.
type queries struct {
	proto.UnsafeTopsailServer // a call that is missing does not compile
	*Server
}

// Predict answers one query.
func (s queries) Predict(ctx context.Context, m *proto.PredictRequest) (*proto.PredictResponse, error) {
	c, err := s.open(ctx, m.GetApp())
	if err != nil {
		return nil, err
	}
	defer c.lease.Release()
	q, err := s.query(&c, m)
	if err != nil {
		return nil, err
	}
	ps, err := s.ask(ctx, &c, []serving.Query{q})
	if err != nil {
		return nil, err
	}
	return predicted(c.app, &ps[0]), nil
}

// query is the one that a request is.
func (s queries) query(c *call, m *proto.PredictRequest) (q serving.Query, err error) {
	if err := c.take(googleproto.Size(m)); err != nil {
		return q, err
	}
	if m.GetPriority() > serving.LowestPriority {
		return q, invalid(fmt.Errorf("priority must be between 0, the highest, and %d", serving.LowestPriority))
	}
	q = serving.Query{
		App: c.app.Name, Priority: max(c.priority, int(m.GetPriority())), Received: c.received, Timeout: c.timeout, User: m.GetUser(), Context: m.GetContext(),
		Version: m.GetVersion(), Salt: m.GetSalt(), NoCache: m.GetNoCache(), Explain: m.GetExplain(),
	}
	if err := checkNames(q.User, q.Context, q.Version, q.Salt); err != nil {
		return q, invalid(err)
	}
	if q.Candidates, err = candidates(m.GetCandidateModels()); err != nil {
		return q, invalid(err)
	}
	if q.Input, err = s.input(c.app, m.GetInputs()); err != nil {
		return q, invalid(err)
	}
	return q, nil
}

func checkNames(names ...string) error {
	for _, name := range names {
		if len(name) > codec.MaxName {
			return fmt.Errorf("user, context, version, salt and feedback_id have at most %d bytes each", codec.MaxName)
		}
	}
	return nil
}

// maxCandidates bounds candidate_models.
const maxCandidates = 256

func candidates(names []string) (ids []serving.ModelID, err error) {
	if len(names) > maxCandidates {
		return nil, fmt.Errorf("candidate_models has more than %d models", maxCandidates)
	}
	for _, name := range names {
		model, version, _ := strings.Cut(name, ":")
		ids = append(ids, serving.ModelID{Model: model, Version: version})
	}
	return ids, nil
}

// input is the one that tensors are for an app.
func (s *Server) input(app *serving.App, tensors []*proto.Tensor) (serving.Input, error) {
	if len(tensors) > serving.MaxTensors {
		return serving.Input{}, fmt.Errorf("inputs has more than %d tensors", serving.MaxTensors)
	}
	values := make([]serving.Value, len(tensors))
	for i, t := range tensors {
		name := t.GetName()
		if name == "" {
			name = inference.DefaultInput
		}
		var err error
		in := &proto.ModelInferRequest_InferInputTensor{Name: name, Datatype: t.GetDatatype(), Shape: append([]int64{1}, t.GetShape()...)}
		if values[i], err = input(in, [][]byte{t.GetData()}, 0); err != nil {
			return serving.Input{}, fmt.Errorf("input %.60q: %w", name, err)
		}
	}
	rows, err := inference.Rows(app, inference.Inputs(app, 0), values, nil, 1)
	if err != nil {
		return serving.Input{}, err
	}
	return rows[0], nil
}

// predicted is the answer of a prediction.
func predicted(app *serving.App, p *serving.Prediction) *proto.PredictResponse {
	out := &proto.PredictResponse{QueryId: p.QueryID, OutputJson: string(p.Output), Default: p.Default, DefaultExplanation: p.Explanation, Cached: p.Cached}
	if p.Default {
		out.DefaultCause = p.Cause.String()
	}
	if p.Model != (serving.ModelID{}) {
		out.Model = p.Model.String()
	}
	if p.Full != nil {
		out.Confidence, out.QualifiersJson = p.Full.Confidence, string(p.Full.QualifiersJSON)
	}
	for _, over := range p.PassedOver {
		out.PassedOver = append(out.PassedOver, &proto.PassedOver{Model: over.ModelID.String(), Why: over.Why.String()})
	}
	out.Missing, out.Shed, out.Failover = names(p.Missing), names(p.Shed), names(p.Failover)
	if p.Explained != nil {
		out.ExplanationJson = string(codec.AppendExplanation(nil, p.Explained))
	}
	values, err := inference.Stack(app, []serving.Prediction{*p}, nil)
	if err != nil {
		return out // the default fits no output
	}
	for i := range values {
		v := &values[i]
		out.Outputs = append(out.Outputs, &proto.Tensor{Name: v.Name, Datatype: v.DType.Datatype(), Shape: dimensions(v.Shape[1:]), Data: v.Data})
	}
	return out
}

func names(ids []serving.ModelID) (list []string) {
	for _, id := range ids {
		list = append(list, id.String())
	}
	return list
}

// Feedback takes one piece of feedback.
func (s queries) Feedback(ctx context.Context, m *proto.FeedbackRequest) (*proto.FeedbackResponse, error) {
	if s.updater == nil {
		return nil, status.Error(codes.Unimplemented, "feedback is not served here")
	}
	c, err := s.open(ctx, m.GetApp())
	if err != nil {
		return nil, err
	}
	defer c.lease.Release()
	if err := c.take(googleproto.Size(m)); err != nil {
		return nil, err
	}
	f := serving.Feedback{
		App: c.app.Name, ID: m.GetFeedbackId(), QueryID: m.GetQueryId(), User: m.GetUser(), Context: m.GetContext(), Received: c.received, Timeout: c.timeout,
	}
	if err := checkNames(f.User, f.Context, f.ID); err != nil {
		return nil, invalid(err)
	}
	if f.QueryID < 0 || f.QueryID >= 1<<53 {
		return nil, invalid(errors.New("query_id must be that of an answer"))
	}
	if len(m.GetInputs()) > 0 {
		if f.Input, err = s.input(c.app, m.GetInputs()); err != nil {
			return nil, invalid(err)
		}
	} else if f.QueryID == 0 {
		return nil, invalid(errors.New("give a query_id or inputs"))
	}
	if err := judge(&f, m); err != nil {
		return nil, invalid(err)
	}
	if err := c.charge(1); err != nil {
		return nil, err
	}
	learned, err := s.updater.Feedback(ctx, []serving.Feedback{f})
	if err != nil {
		return nil, err
	}
	l := &learned[0]
	return &proto.FeedbackResponse{QueryId: l.QueryID, Joined: string(l.Joined), Duplicate: l.Duplicate, Loss: l.Loss, Forwarded: int32(l.Forwarded)}, nil
}

// judge reads the label or the reward of feedback.
func judge(f *serving.Feedback, m *proto.FeedbackRequest) (err error) {
	switch j := m.GetJudgement().(type) {
	case *proto.FeedbackRequest_LabelJson:
		label := []byte(j.LabelJson)
		if !json.Valid(label) || strings.TrimSpace(j.LabelJson) == "null" {
			return errors.New(`label_json must be JSON and not null: a text is "..." in quotes`)
		}
		if f.Label, err = serving.NewOutput(serving.Value{DType: serving.JSON, Data: label}); err != nil {
			return fmt.Errorf("label_json cannot be used: %w", err)
		}
	case *proto.FeedbackRequest_Reward:
		if !(j.Reward >= 0 && j.Reward <= 1) {
			return errors.New("reward must be between 0 and 1")
		}
		f.Reward = &j.Reward
	default:
		return errors.New("give label_json or reward")
	}
	return nil
}

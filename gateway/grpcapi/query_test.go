package grpcapi

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/topsail-serving/topsail/gateway/admission"
	"github.com/topsail-serving/topsail/gateway/grpcapi/proto"
	"github.com/topsail-serving/topsail/serving"
)

func vectorTensor(xs ...float64) []*proto.Tensor {
	return []*proto.Tensor{{Datatype: "FP64", Shape: []int64{int64(len(xs))}, Data: doubles(xs...)}}
}

func TestPredict(t *testing.T) {
	core := newFake()
	c := proto.NewTopsailClient(start(t, Config{}, core, admission.Config{}).conn)
	got, err := c.Predict(t.Context(), &proto.PredictRequest{
		App: "sums", Inputs: vectorTensor(1, 2), User: "u", Context: "c", Version: "2", CandidateModels: []string{"forest", "linear:2"}, Salt: "s", NoCache: true, Explain: true,
	})
	if err != nil || got.QueryId != 1 || got.OutputJson != "3.0" || len(got.Outputs) != 1 || got.Outputs[0].Name != "output" || string(got.Outputs[0].Data) != string(doubles(3)) || len(got.Outputs[0].Shape) != 0 {
		t.Errorf("%v, %v", got, err)
	}
	q := core.queries()[0]
	if q.User != "u" || q.Context != "c" || q.Version != "2" || q.Salt != "s" || !q.NoCache || !q.Explain || len(q.Candidates) != 2 || q.Candidates[1] != (serving.ModelID{Model: "linear", Version: "2"}) {
		t.Errorf("%+v", q)
	}
	core.answer = func(context.Context, *serving.Query) (serving.Prediction, error) {
		return serving.Prediction{QueryID: 2, Output: []byte(`"none"`), Default: true, Cause: serving.NoReplica, Explanation: "why"}, nil
	}
	got, err = c.Predict(t.Context(), &proto.PredictRequest{App: "sums", Inputs: vectorTensor(1, 2)})
	if err != nil || !got.Default || got.DefaultCause != "no_replica" || got.DefaultExplanation != "why" || got.OutputJson != `"none"` || len(got.Outputs) != 0 {
		t.Errorf("a default that fits no output: %v, %v", got, err)
	}
	core.answer = func(context.Context, *serving.Query) (serving.Prediction, error) {
		return serving.Prediction{
			QueryID: 3, Output: []byte("1"), Model: serving.ModelID{Model: "small", Version: "1"}, Ranked: true,
			PassedOver: []serving.PassedOver{{ModelID: serving.ModelID{Model: "large", Version: "2"}, Why: serving.MissedSLO}},
			Missing:    []serving.ModelID{{Model: "large", Version: "2"}}, Shed: []serving.ModelID{{Model: "mid", Version: "1"}}, Failover: []serving.ModelID{{Model: "small", Version: "2"}},
			Explained: &serving.Explanation{},
		}, nil
	}
	got, err = c.Predict(t.Context(), &proto.PredictRequest{App: "sums", Inputs: vectorTensor(1, 2)})
	if err != nil || got.Model != "small:1" || len(got.PassedOver) != 1 || got.PassedOver[0].Model != "large:2" || got.PassedOver[0].Why != "missed_slo" ||
		!slices.Equal(got.Missing, []string{"large:2"}) || !slices.Equal(got.Shed, []string{"mid:1"}) || !slices.Equal(got.Failover, []string{"small:2"}) || !json.Valid([]byte(got.ExplanationJson)) {
		t.Errorf("all that there is to say: %v, %v", got, err)
	}
	for want, m := range map[string]*proto.PredictRequest{
		`input "input" is missing`:          {App: "sums"},
		"it has 8 bytes":                    {App: "sums", Inputs: []*proto.Tensor{{Datatype: "FP64", Shape: []int64{2}, Data: doubles(1)}}},
		"at most 256 bytes":                 {App: "sums", Inputs: vectorTensor(1), User: strings.Repeat("x", 257)},
		`input "x" is unknown`:              {App: "sums", Inputs: append(vectorTensor(1), &proto.Tensor{Name: "x", Datatype: "FP64", Shape: []int64{1}, Data: doubles(1)})},
		"candidate_models has more than":    {App: "sums", Inputs: vectorTensor(1), CandidateModels: make([]string, 257)},
		"inputs has more than":              {App: "sums", Inputs: make([]*proto.Tensor, serving.MaxTensors+1)},
		`datatype "" is unknown`:            {App: "sums", Inputs: []*proto.Tensor{{}}},
		`"input" comes twice`:               {App: "sums", Inputs: append(vectorTensor(1), vectorTensor(1)...)},
		"no app of this name is registered": {App: "gone"},
	} {
		if _, err := c.Predict(t.Context(), m); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

func TestFeedback(t *testing.T) {
	core := newFake()
	c := proto.NewTopsailClient(start(t, Config{}, core, admission.Config{}).conn)
	got, err := c.Feedback(t.Context(), &proto.FeedbackRequest{App: "sums", QueryId: 7, User: "u", FeedbackId: "f", Judgement: &proto.FeedbackRequest_LabelJson{LabelJson: "3"}})
	if err != nil || got.QueryId != 7 || got.Joined != "record" || got.Loss != 0.5 {
		t.Errorf("%v, %v", got, err)
	}
	if _, err := c.Feedback(t.Context(), &proto.FeedbackRequest{App: "sums", Inputs: vectorTensor(1), Judgement: &proto.FeedbackRequest_Reward{Reward: 1}}); err != nil {
		t.Error(err)
	}
	if first, second := core.heard[0], core.heard[1]; string(first.Label.JSON) != "3" || first.ID != "f" || first.App != "sums" || *second.Reward != 1 || string(second.Input.Data) != string(doubles(1)) {
		t.Errorf("%+v, %+v", first, second)
	}
	for want, m := range map[string]*proto.FeedbackRequest{
		"give a query_id or inputs": {App: "sums", Judgement: &proto.FeedbackRequest_Reward{Reward: 1}},
		"give label_json or reward": {App: "sums", QueryId: 1},
		"reward must be between":    {App: "sums", QueryId: 1, Judgement: &proto.FeedbackRequest_Reward{Reward: 2}},
		"label_json must be JSON":   {App: "sums", QueryId: 1, Judgement: &proto.FeedbackRequest_LabelJson{LabelJson: "a"}},
		"query_id must be that of":  {App: "sums", QueryId: -1, Judgement: &proto.FeedbackRequest_Reward{Reward: 1}},
	} {
		if _, err := c.Feedback(t.Context(), m); status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

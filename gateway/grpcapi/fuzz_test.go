package grpcapi

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"testing"

	googleproto "google.golang.org/protobuf/proto"

	"github.com/topsail-serving/topsail/gateway/admission"
	"github.com/topsail-serving/topsail/gateway/codec"
	"github.com/topsail-serving/topsail/gateway/grpcapi/proto"
	"github.com/topsail-serving/topsail/internal/obs"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/test/require"
)

// fuzzed is a server that is called without a network, and its apps: of vectors, of texts, and with a signature.
func fuzzed() (queries, *fakeCore, []string) {
	core := newFake()
	core.catalog.Apps["named"] = &serving.App{Name: "named", InputType: serving.Tensors, Signature: &serving.Signature{Inputs: []serving.Tensor{
		{Name: "image", Type: serving.ElementType(serving.Uint8), Shape: []int{-1, 2}}, {Name: "prompt", Type: serving.ElementType(serving.String)},
	}}}
	control := admission.New(admission.Config{Metrics: obs.NewRegistry()})
	control.Serve(core.catalog)
	return queries{Server: New(Config{}, core, core, control, slog.New(slog.DiscardHandler))}, core, []string{"sums", "texts", "named"}
}

// fuzzedInputs are tensors that suit each of those apps.
func fuzzedInputs() [][]*proto.Tensor {
	text := &proto.Tensor{Name: "prompt", Datatype: "BYTES", Data: serving.AppendElement(nil, "a")}
	return [][]*proto.Tensor{
		vectorTensor(1, 2), {{Datatype: "BYTES", Data: text.Data}},
		{text, {Name: "image", Datatype: "UINT8", Shape: []int64{1, 2}, Data: []byte{1, 2}}},
	}
}

func seed(f *testing.F, which int, m googleproto.Message) {
	b, err := googleproto.Marshal(m)
	require.NoError(f, err)
	f.Add(uint8(which), b)
}

// FuzzPredict: what is taken of a request has the input that the same tensors have in the Open Inference Protocol, and what is
// refused there as well is refused.
func FuzzPredict(f *testing.F) {
	s, core, apps := fuzzed()
	for i, inputs := range fuzzedInputs() {
		seed(f, i, &proto.PredictRequest{Inputs: inputs, User: "u", Context: "c", Version: "1", CandidateModels: []string{"m:1"}, Salt: "s", NoCache: true, Priority: 1, Explain: true})
	}
	f.Fuzz(func(t *testing.T, which uint8, b []byte) {
		m := &proto.PredictRequest{}
		if googleproto.Unmarshal(b, m) != nil {
			return
		}
		m.App = apps[int(which)%len(apps)]
		c := call{app: core.catalog.Apps[m.App], lease: s.config.Budget.Lease()}
		defer c.lease.Release()
		q, err := s.query(&c, m)
		same := &proto.ModelInferRequest{ModelName: m.App, RawInputContents: [][]byte{}}
		for _, in := range m.Inputs {
			name := in.GetName()
			if name == "" {
				name = "input"
			}
			same.Inputs = append(same.Inputs, &proto.ModelInferRequest_InferInputTensor{Name: name, Datatype: in.GetDatatype(), Shape: append([]int64{1}, in.GetShape()...)})
			same.RawInputContents = append(same.RawInputContents, in.GetData())
		}
		_, qs, wrong := s.Server.queries(&c, same)
		if err == nil && (wrong != nil || len(qs) != 1 || qs[0].Input.Type != q.Input.Type || !bytes.Equal(qs[0].Input.Data, q.Input.Data)) {
			t.Fatalf("%v: %v is %v in the Open Inference Protocol, %v", m, q.Input, qs, wrong)
		}
		if err == nil && (q.Priority > serving.LowestPriority || len(q.User) > codec.MaxName || len(q.Candidates) != len(m.CandidateModels)) {
			t.Fatalf("%+v", q)
		}
		if within := m.Priority <= serving.LowestPriority && len(m.CandidateModels) <= maxCandidates && checkNames(m.User, m.Context, m.Version, m.Salt) == nil; err != nil && wrong == nil && within {
			t.Fatalf("%v is refused: %v", m, err)
		}
	})
}

// FuzzFeedback: what is taken has a query or an input, and a judgement that is one.
func FuzzFeedback(f *testing.F) {
	s, core, apps := fuzzed()
	for i, inputs := range fuzzedInputs() {
		seed(f, i, &proto.FeedbackRequest{Inputs: inputs, User: "u", Judgement: &proto.FeedbackRequest_LabelJson{LabelJson: `{"a":[1]}`}})
		seed(f, i, &proto.FeedbackRequest{QueryId: 1 << 40, FeedbackId: "f", Judgement: &proto.FeedbackRequest_Reward{Reward: 0.5}})
	}
	f.Fuzz(func(t *testing.T, which uint8, b []byte) {
		m := &proto.FeedbackRequest{}
		if googleproto.Unmarshal(b, m) != nil {
			return
		}
		m.App = apps[int(which)%len(apps)]
		core.heard = nil
		if _, err := s.Feedback(context.Background(), m); err != nil {
			if len(core.heard) > 0 {
				t.Fatalf("%v is heard and refused: %v", m, err)
			}
			return
		}
		got := core.heard[0]
		judged := got.Reward != nil && *got.Reward >= 0 && *got.Reward <= 1 || got.Label != nil && json.Valid(got.Label.JSON)
		if !judged || got.QueryID < 0 || got.QueryID == 0 && len(m.Inputs) == 0 {
			t.Fatalf("%v is taken as %+v", m, got)
		}
	})
}

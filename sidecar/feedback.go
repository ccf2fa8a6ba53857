package sidecar

import (
	"slices"

	"github.com/topsail-serving/topsail/rpc"
	"github.com/topsail-serving/topsail/serving"
)

const (
	maxFeedback     = 1 << 20 // bytes of one entry
	maxFeedbackUser = 1 << 10 // bytes of a user id
)

// learn hands feedback to every container of the pool, since each holds the model in memory of its
// own. What none can learn from is dropped and counted: there is no reply to feedback.
func (p *pool) learn(list []rpc.Feedback) {
	for i := range list {
		if !fits(p.model, &list[i]) || !p.learners.add(ownFeedback(list[i])) {
			p.metrics.feedbackDropped.Inc()
		}
	}
}

// ownFeedback copies what points into the frame.
func ownFeedback(v rpc.Feedback) rpc.Feedback {
	v.Input = slices.Clone(v.Input)
	v.Label = slices.Clone(v.Label)
	v.User = slices.Clone(v.User)
	return v
}

// fits says whether feedback is one input of the model with one label.
func fits(m *serving.Version, v *rpc.Feedback) bool {
	if v.Size() > maxFeedback || len(v.User) > maxFeedbackUser {
		return false
	}
	label, err := rpc.ParsePayload(v.Label)
	if err != nil || len(label) != 1 || label[0].DType == serving.Opaque {
		return false
	}
	input, err := rpc.ParsePayload(v.Input)
	if m.InputType == serving.Tensors {
		return err == nil && serving.FitAll(m.Signature.InputTensors(), input) == nil
	}
	return err == nil && len(input) == 1 && isInput(m, &input[0])
}

func isInput(m *serving.Version, v *serving.Value) bool {
	if v.DType != m.InputType.DType() {
		return false
	}
	if m.InputType == serving.Strings {
		return true // they have no shape
	}
	return len(v.Shape) == 1 && (m.InputLength == 0 || v.Shape[0] == m.InputLength)
}

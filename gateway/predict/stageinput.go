package predict

import (
	"fmt"

	"github.com/topsail-serving/topsail/rpc"
	"github.com/topsail-serving/topsail/serving"
)

// inputOf is what a stage's model is asked: what its sources have put out, by name where the model
// has a signature.
func (s *stages) inputOf(q *query, stage int, v *version) (serving.Input, error) {
	from := s.Sources(stage)
	payloads := make([][]serving.Value, len(from))
	for i, source := range s.sources[stage] {
		var err error
		if payloads[i], err = q.putOut(source); err != nil {
			return serving.Input{}, err
		}
	}
	if v.inputType == serving.Tensors {
		return namedInput(v.signature.InputTensors(), from, payloads)
	}
	values := make([]serving.Value, len(payloads))
	for i, payload := range payloads {
		values[i] = payload[0]
	}
	if len(values) == 1 {
		return serving.NewInput(v.inputType, values[0])
	}
	return serving.JoinInput(v.inputType, from, values)
}

// putOut is what a stage has put out, or below 0 the query's input: one value at least.
func (q *query) putOut(stage int) ([]serving.Value, error) {
	switch {
	case stage < 0 && q.Input.Type == serving.Tensors:
		return rpc.ParsePayload(q.Input.Data)
	case stage < 0:
		return []serving.Value{q.Input.Value()}, nil
	}
	return q.answers[q.slots[stage]].Output.All(), nil
}

// namedInput takes the inputs of a signature from payloads: from the value of that name, of whichever
// payload, else from the only value of a source of that name, or of the only source.
func namedInput(inputs []serving.Tensor, from []string, payloads [][]serving.Value) (serving.Input, error) {
	values := make([]serving.Value, len(inputs))
	for i, t := range inputs {
		v := valueNamed(t.Name, from, payloads)
		if v == nil && len(inputs) == 1 && len(payloads) == 1 && len(payloads[0]) == 1 {
			v = &payloads[0][0]
		}
		if v == nil {
			return serving.Input{}, fmt.Errorf("nothing before it puts out %q, which is %s", t.Name, t)
		}
		values[i] = *v
		values[i].Name = t.Name
		if err := t.Fits(&values[i]); err != nil {
			return serving.Input{}, err
		}
	}
	return serving.Input{Type: serving.Tensors, Data: rpc.AppendPayload(nil, values...)}, nil
}

func valueNamed(name string, from []string, payloads [][]serving.Value) *serving.Value {
	for _, payload := range payloads {
		for i := range payload {
			if payload[i].Name == name {
				return &payload[i]
			}
		}
	}
	for i, source := range from {
		if source == name {
			return &payloads[i][0]
		}
	}
	return nil
}

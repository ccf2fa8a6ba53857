package container

import (
	"context"
	"errors"
	"fmt"

	"topsail/rpc"
	v1 "topsail/rpc/v1"
	"topsail/serving"
	"topsail/sidecar/queue"
)

// V1 runs batches on one connection to a version 1 container.
type V1 struct {
	client *v1.Client
	model  *serving.Version
	inputs [][]byte // reused
}

// DialV1 connects to the version 1 container of a model version.
func DialV1(ctx context.Context, model *serving.Version) (*V1, error) {
	client, err := v1.Dial(ctx, model.Container.Addr)
	if err != nil {
		return nil, err
	}
	return &V1{client: client, model: model}, nil
}

// Close closes the connection.
func (r *V1) Close() error { return r.client.Close() }

// PredictBatch implements batch.Runner.
func (r *V1) PredictBatch(ctx context.Context, items []*queue.Item) error {
	sound := r.unpack(items)
	if len(sound) == 0 {
		return nil
	}
	outputs, err := r.client.PredictBatch(ctx, r.model.InputType, r.model.InputLength, r.inputs)
	if errors.Is(err, context.DeadlineExceeded) {
		err = ErrStalled
	}
	if err != nil {
		return fmt.Errorf("version 1 container at %s: %w", r.model.Container.Addr, err)
	}
	for i, it := range sound {
		it.Answer(&rpc.Answer{Payload: rpc.AppendPayload(nil, serving.Number(outputs[i]))})
	}
	return nil
}

// unpack takes the raw inputs out of their payloads, since version 1 has its own
// encoding, and refuses the items that it cannot carry: one of them would keep
// the others from being sent.
func (r *V1) unpack(items []*queue.Item) (sound []*queue.Item) {
	r.inputs = r.inputs[:0]
	for _, it := range items {
		values, err := rpc.ParsePayload(it.Ask.Payload)
		if err == nil {
			err = r.check(values)
		}
		if err != nil {
			it.Refuse(rpc.StatusBadInput, err.Error())
			continue
		}
		r.inputs = append(r.inputs, values[0].Data)
		sound = append(sound, it)
	}
	return sound
}

func (r *V1) check(values []serving.Value) error {
	m := r.model
	if len(values) != 1 || values[0].DType != m.InputType.DType() {
		return fmt.Errorf("a version 1 container of %v takes one value of type %v", m.ModelID, m.InputType.DType())
	}
	in := serving.Input{Type: m.InputType, Data: values[0].Data}
	if m.InputLength > 0 && m.InputType != serving.Strings && in.Len() != m.InputLength {
		return fmt.Errorf("the model %v takes inputs of length %d, not %d", m.ModelID, m.InputLength, in.Len())
	}
	return nil
}

package container

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/topsail-serving/topsail/rpc"
	v1 "github.com/topsail-serving/topsail/rpc/v1"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/sidecar/queue"
)

// V1 runs batches on one connection to a version 1 container.
type V1 struct {
	client *v1.Client
	using  sync.Mutex // held while the client is used
	model  *serving.Version
	inputs [][]byte // reused
}

// checkEvery is how often an idle connection is looked at, and how long a new one must hold.
const checkEvery = 100 * time.Millisecond

// DialV1 connects to the version 1 container of a model version. A connection that is closed
// right away does not count: what forwards a port accepts before the container listens.
func DialV1(ctx context.Context, model *serving.Version) (*V1, error) {
	client, err := v1.Dial(ctx, model.Container.Addr)
	if err != nil {
		return nil, err
	}
	select {
	case <-time.After(checkEvery):
		err = client.Check()
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, client.Close())
	}
	return &V1{client: client, model: model}, nil
}

// Close closes the connection.
func (r *V1) Close() error { return r.client.Close() }

// Watch returns why the connection is lost while no batch runs, or the end of ctx. A running batch
// notices this itself.
func (r *V1) Watch(ctx context.Context) error {
	tick := time.NewTicker(checkEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			if err := r.check(); err != nil {
				return err
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (r *V1) check() error {
	if !r.using.TryLock() {
		return nil
	}
	defer r.using.Unlock()
	return r.client.Check()
}

// Shutdown asks the container to end, waits for its word until ctx ends, and closes the
// connection. While a batch runs it only does the last.
func (r *V1) Shutdown(ctx context.Context) error {
	if !r.using.TryLock() {
		return r.client.Close()
	}
	defer r.using.Unlock()
	return errors.Join(r.client.Shutdown(ctx), r.client.Close())
}

// AwaitEndV1 returns when the container at addr has ended, even one that hangs, or with ctx.
// It takes a connection for that, which breaks when the container ends.
func AwaitEndV1(ctx context.Context, addr string) {
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "tcp", addr)
	if err != nil {
		return
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	_, _ = conn.Read(make([]byte, 1)) // nothing was asked: only the end can come
}

// Begin implements batch.Runner. A batch that is given up has the container count as stalled.
func (r *V1) Begin(items []*queue.Item, ended func(error)) (giveUp func()) {
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		defer cancel()
		ended(r.predict(ctx, items))
	}()
	return cancel
}

func (r *V1) predict(ctx context.Context, items []*queue.Item) error {
	sound := r.unpack(items)
	if len(sound) == 0 {
		return nil
	}
	r.using.Lock()
	defer r.using.Unlock()
	outputs, err := r.client.PredictBatch(ctx, r.model.InputType, r.model.InputLength, r.inputs)
	if ctx.Err() != nil && err != nil {
		err = errUnanswered
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
			err = r.accepts(values)
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

func (r *V1) accepts(values []serving.Value) error {
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

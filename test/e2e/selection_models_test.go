//go:build system

package e2e

import (
	"context"
	"encoding/binary"
	"errors"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/topsail-serving/topsail/containers/gocontainer"
	"github.com/topsail-serving/topsail/serving"
)

// model answers one input. It returns when ctx ends, which is that of its replica.
type model func(ctx context.Context, in serving.Value) gocontainer.Result

// predict answers batches, one input after the other.
func (m model) predict(ctx context.Context) gocontainer.Predict {
	return func(inputs []serving.Value) []gocontainer.Result {
		all := make([]gocontainer.Result, len(inputs))
		for i, in := range inputs {
			all[i] = m(ctx, in)
		}
		return all
	}
}

// says always gives the same text.
func says(text string) model { return tells(serving.Text(text)) }

// tells always gives the same value.
func tells(v serving.Value) model {
	return func(context.Context, serving.Value) gocontainer.Result { return gocontainer.Result{Output: v} }
}

// fails always gives an error.
func fails(text string) model {
	return func(context.Context, serving.Value) gocontainer.Result {
		return gocontainer.Result{Err: errors.New(text)}
	}
}

// sure says how sure the model is, by the first number of the input.
func (m model) sure(of func(x float64) float64) model {
	return func(ctx context.Context, in serving.Value) gocontainer.Result {
		r, confidence := m(ctx, in), of(number(in))
		r.Confidence = &confidence
		return r
	}
}

// surely is sure without regard to the input.
func (m model) surely(confidence float64) model {
	return m.sure(func(float64) float64 { return confidence })
}

// after takes its time for each input.
func (m model) after(time func() time.Duration) model {
	return func(ctx context.Context, in serving.Value) gocontainer.Result {
		pause(ctx, time())
		return m(ctx, in)
	}
}

func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// behind waits while a gate is shut.
func (m model) behind(g *gate) model {
	return func(ctx context.Context, in serving.Value) gocontainer.Result {
		g.pass(ctx)
		return m(ctx, in)
	}
}

// counted counts inputs as they come.
func (m model) counted(n *atomic.Int64) model {
	return func(ctx context.Context, in serving.Value) gocontainer.Result {
		n.Add(1)
		return m(ctx, in)
	}
}

func number(in serving.Value) float64 {
	return math.Float64frombits(binary.LittleEndian.Uint64(in.Data))
}

// gate is open until it is shut, and can be opened again.
type gate struct {
	mu   sync.Mutex // guards the following
	wait chan struct{}
}

func newGate() *gate {
	g := &gate{}
	g.shut()
	g.open()
	return g
}

func (g *gate) shut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.wait = make(chan struct{})
}

func (g *gate) open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	close(g.wait)
}

func (g *gate) pass(ctx context.Context) {
	g.mu.Lock()
	wait := g.wait
	g.mu.Unlock()
	select {
	case <-wait:
	case <-ctx.Done():
	}
}

package gocontainer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/topsail-serving/topsail/rpc"
	"github.com/topsail-serving/topsail/serving"
)

// desk is the sidecar's end of the connection of a container that runs queries side by side, on a
// pipe, in a bubble.
type desk struct {
	*testing.T
	conn  *rpc.Conn
	stop  context.CancelFunc // of the container
	ended error              // why the container's connection ended
	done  chan struct{}

	mu      sync.Mutex // guards the following
	entries map[uint64][]string
	drained bool
	reports []time.Time
}

type deskConfig struct {
	Config
	features rpc.Features // of the sidecar
	deaf     bool         // it reads nothing until the end
}

func atDesk(t *testing.T, cfg deskConfig, predict StreamPredict, run func(d *desk)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		d := &desk{T: t, entries: map[uint64][]string{}, done: make(chan struct{})}
		near, far := net.Pipe()
		var container *rpc.Conn
		var opening, running sync.WaitGroup
		opening.Go(func() {
			container, _ = rpc.Connect(t.Context(), near, rpc.Hello{Features: rpc.FeatureParts, MaxFrame: rpc.MaxFrame})
		})
		d.conn, _ = rpc.Accept(t.Context(), far, rpc.Hello{Features: cfg.features, MaxFrame: rpc.MinMaxFrame}, nil)
		opening.Wait()
		if cfg.Concurrency == 0 {
			cfg.Concurrency = rpc.AnyConcurrency
		}
		s := newStreams(container, &cfg.Config, predict, newLearning(nil, cfg.Metrics, slog.New(slog.DiscardHandler)))
		ctx, leave := context.WithCancel(t.Context())
		work, stop := context.WithCancel(t.Context())
		d.stop = stop
		handle := d.handle
		if cfg.deaf {
			handle = func(rpc.Frame) error { <-ctx.Done(); return ctx.Err() }
		}
		running.Go(func() { d.conn.Run(ctx, handle) })
		running.Go(func() { d.ended = s.run(work); close(d.done) })
		run(d)
		leave()
		running.Wait()
		stop()
		if _, broken := errors.AsType[*rpc.ProtocolError](d.ended); broken {
			return
		}
		if len(s.open) > 0 || len(s.places) > 0 {
			t.Errorf("%d batches are open, %d places taken", len(s.open), len(s.places))
		}
	})
}

func (d *desk) handle(f rpc.Frame) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch f.Kind {
	case rpc.KindMetrics:
		d.reports = append(d.reports, time.Now())
		return nil
	case rpc.KindDrain:
		d.drained = true
		return nil
	case rpc.KindReply:
		r, err := rpc.ParseReply(f)
		if err != nil {
			return err
		}
		var a rpc.Answer
		for r.Next(&a) {
			d.entries[r.Batch] = append(d.entries[r.Batch], entry(&r, &a))
		}
		return r.Err()
	}
	return rpc.Unexpected(f)
}

// entry is an answer in short: "0 ok abc +" is a part, and END the last of its batch.
func entry(r *rpc.Reply, a *rpc.Answer) string {
	text := string(a.Message)
	if a.Status == rpc.StatusOK {
		values, err := rpc.ParsePayload(a.Payload)
		text = fmt.Sprintf("%d values, %v", len(values), err)
		if len(values) == 1 {
			text = string(values[0].Data)
		}
	}
	s := fmt.Sprintf("%d %v %s", a.Index, a.Status, text)
	if a.More {
		s += " +"
	}
	if r.End {
		s += " END"
	}
	return s
}

// ask asks for texts in one PREDICT; with bits for parts.
func (d *desk) ask(batch, bits uint64, texts ...string) {
	b := rpc.AppendPredictHead(nil, rpc.PredictHead{Batch: batch, Model: 1, Count: len(texts)})
	for _, text := range texts {
		b = rpc.AppendAsk(b, &rpc.Ask{Budget: -1, Bits: bits, Payload: rpc.AppendPayload(nil, serving.Text(text))})
	}
	d.conn.Send(rpc.KindPredict, 0, b)
}

func (d *desk) cancel(batch uint64) {
	d.conn.Send(rpc.KindCancel, 0, rpc.AppendCancel(nil, rpc.Cancel{Batch: batch, Index: rpc.CancelAll}))
}

func (d *desk) got(batch uint64) []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.entries[batch])
}

func (d *desk) expect(batch uint64, want ...string) {
	d.Helper()
	if got := d.got(batch); !slices.Equal(got, want) {
		d.Errorf("batch %d has %q, want %q", batch, got, want)
	}
}

// spell answers with the letters of a text as parts, one each second.
func spell(ctx context.Context, q *Query, part func(...serving.Value) error) Result {
	text := string(q.Inputs[0].Data)
	for _, letter := range text {
		if err := part(serving.Text(string(letter))); err != nil {
			return Result{Err: err}
		}
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
		}
	}
	return Result{Output: serving.Text(text)}
}

var partsToo = deskConfig{features: rpc.FeatureParts}

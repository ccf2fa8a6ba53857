package sidecar

import (
	"bytes"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/rpc"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/test/require"
)

// reply is an answer that a gateway got.
type reply struct {
	rpc.ReplyHead
	rpc.Answer
	at time.Time
}

// gateway is a client of a sidecar. It checks that the outputs that come are
// those of its own inputs, echoed, and that each input is answered once.
type gateway struct {
	t    *testing.T
	conn *rpc.Conn
	gone chan struct{} // closed when the connection has ended
	why  error

	mu        sync.Mutex
	announced map[uint32]rpc.State
	latest    map[serving.ModelID]rpc.Announcement
	inputs    map[uint64][][]byte // by batch
	replies   map[uint64][]reply
	open      int // inputs without a last answer
}

func newGateway(t *testing.T, nc net.Conn) *gateway {
	t.Helper()
	conn, err := rpc.Connect(t.Context(), nc, hello(rpc.RoleGateway, ""))
	require.NoError(t, err)
	g := &gateway{t: t, conn: conn, gone: make(chan struct{}), announced: map[uint32]rpc.State{}, latest: map[serving.ModelID]rpc.Announcement{}, inputs: map[uint64][][]byte{}, replies: map[uint64][]reply{}}
	go func() {
		defer close(g.gone)
		g.why = conn.Run(t.Context(), g.handle)
	}()
	t.Cleanup(func() { <-g.gone })
	return g
}

func (r *rig) gateway() *gateway {
	r.t.Helper()
	return newGateway(r.t, r.dial.gateway())
}

func (g *gateway) handle(f rpc.Frame) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if f.Kind == rpc.KindAnnounce {
		list, err := rpc.ParseAnnounce(f.Body)
		for _, a := range list {
			g.announced[a.ID] = a.State
			if a.State == rpc.StateGone && a.ID < g.latest[a.Model].ID {
				continue // of the version before
			}
			if a.State == rpc.StateGone && a.Reason == "" {
				a.Reason = g.latest[a.Model].Reason // it is said once
			}
			g.latest[a.Model] = a
		}
		return err
	}
	in, err := rpc.ParseReply(f)
	if err != nil {
		return err
	}
	var a rpc.Answer
	for in.Next(&a) {
		g.take(in.ReplyHead, a)
	}
	return in.Err()
}

func (g *gateway) take(head rpc.ReplyHead, a rpc.Answer) {
	inputs := g.inputs[head.Batch]
	if int(a.Index) >= len(inputs) {
		g.t.Errorf("an answer to input %d of batch %d, which has %d", a.Index, head.Batch, len(inputs))
		return
	}
	// The 8 bytes of the number come last, in an input and in its echo.
	if n := len(a.Payload); a.Status == rpc.StatusOK && (n < 8 || !bytes.HasSuffix(inputs[a.Index], a.Payload[n-8:])) {
		g.t.Errorf("input %d of batch %d got the output of another", a.Index, head.Batch)
	}
	for _, before := range g.replies[head.Batch] {
		if before.Index == a.Index && !before.More {
			g.t.Errorf("input %d of batch %d was answered after its last answer", a.Index, head.Batch)
		}
	}
	a.Payload, a.Message, a.Stages = slices.Clone(a.Payload), slices.Clone(a.Message), slices.Clone(a.Stages)
	g.replies[head.Batch] = append(g.replies[head.Batch], reply{head, a, time.Now()})
	if !a.More {
		g.open--
	}
}

// ask sends a batch and returns its name. A budget below 0 is no deadline.
func (g *gateway) ask(model uint32, budget time.Duration, inputs ...[]byte) (batch uint64) {
	return g.askFor(serving.Class{}, model, budget, inputs...)
}

// askFor is ask for an app; of an empty one the gateway does not tell.
func (g *gateway) askFor(class serving.Class, model uint32, budget time.Duration, inputs ...[]byte) (batch uint64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	batch = uint64(len(g.inputs) + 1)
	g.inputs[batch] = inputs
	g.open += len(inputs)
	b := rpc.AppendPredictHead(nil, rpc.PredictHead{Batch: batch, Model: model, Count: len(inputs)})
	for _, in := range inputs {
		b = rpc.AppendAsk(b, &rpc.Ask{Budget: budget, Payload: in, App: []byte(class.App), Weight: 1, Priority: uint8(class.Priority)})
	}
	if err := g.conn.Send(rpc.KindPredict, 0, b); err != nil {
		g.t.Errorf("ask: %v", err)
	}
	return batch
}

// askParts asks one input for an answer in parts.
func (g *gateway) askParts(model uint32, budget time.Duration, input []byte) (batch uint64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	batch = uint64(len(g.inputs) + 1)
	g.inputs[batch] = [][]byte{input}
	g.open++
	b := rpc.AppendPredictHead(nil, rpc.PredictHead{Batch: batch, Model: model, Count: 1})
	if err := g.conn.Send(rpc.KindPredict, 0, rpc.AppendAsk(b, &rpc.Ask{Budget: budget, Payload: input, Bits: rpc.AskParts})); err != nil {
		g.t.Errorf("ask: %v", err)
	}
	return batch
}

// all are the answers so far, parts among them.
func (g *gateway) all(batch uint64) []reply {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.replies[batch])
}

// answer is the last answer to the first input of a batch, once it is there.
func (g *gateway) answer(batch uint64) reply {
	g.t.Helper()
	return g.answers(batch, 1)[0]
}

// answers are the last answers to n inputs of a batch, by index.
func (g *gateway) answers(batch uint64, n int) []reply {
	g.t.Helper()
	g.mu.Lock()
	defer g.mu.Unlock()
	got := make([]reply, n)
	found := 0
	for _, a := range g.replies[batch] {
		if !a.More {
			got[a.Index] = a
			found++
		}
	}
	if found != n {
		g.t.Fatalf("batch %d has %d answers, want %d", batch, found, n)
	}
	return got
}

// statuses counts the last answers so far.
func (g *gateway) statuses() map[rpc.Status]int {
	g.mu.Lock()
	defer g.mu.Unlock()
	counts := map[rpc.Status]int{}
	for _, list := range g.replies {
		for _, a := range list {
			if !a.More {
				counts[a.Status]++
			}
		}
	}
	return counts
}

func (g *gateway) state(model uint32) rpc.State {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.announced[model]
}

func (g *gateway) unanswered() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.open
}

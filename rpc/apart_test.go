package rpc

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/test/require"
)

// Payloads of any size arrive as they were sent, those that are sent from where they are and those that are copied into
// the frame, in frames of one and of several, over a socket, a pipe, and where frames may be compressed. What a handler
// takes stays as it is while others arrive.
func TestLargePayloadsArriveAndCanBeTaken(t *testing.T) {
	apart := testHello
	apart.Features = 0
	for name, open := range map[string]func() (*Conn, *Conn){
		"socket":     func() (*Conn, *Conn) { return loopback(t, testHello, testHello, plain) },
		"local":      func() (*Conn, *Conn) { return local(t, testHello, testHello) },
		"pipe":       func() (*Conn, *Conn) { return pair(t, apart, apart) },
		"compressed": func() (*Conn, *Conn) { return pair(t, testHello, testHello) },
	} {
		t.Run(name, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(1, 2))
			sizes := []int{1, leaveApart, leaveApart + 1, 3 << 20, 100, 600_000, 600_000, 2 * leaveApart, 7}
			wholes := []bool{3: true, 5: true, 7: true, 8: true} // payloads as they are
			inputs := make([]serving.Input, len(sizes))
			for i, n := range sizes {
				inputs[i] = serving.Input{Type: serving.Bytes, Data: make([]byte, n)}
				for j := 0; j < n; j += 1 + rng.IntN(8) {
					inputs[i].Data[j] = byte(rng.Uint32())
				}
				if wholes[i] {
					inputs[i] = serving.Input{Type: serving.Tensors, Data: AppendInput(nil, inputs[i])}
				}
			}
			from, to := open()
			ctx, cancel := context.WithCancel(t.Context())
			var got [][]byte // the payloads
			taken := 0
			var wg sync.WaitGroup
			wg.Go(func() { from.Run(ctx, Unexpected) })
			wg.Go(func() {
				err := to.Run(ctx, func(f Frame) error {
					mine := f.Take()
					if mine {
						taken++
					}
					p, err := ParsePredict(f)
					if err != nil {
						return err
					}
					for ask := new(Ask); p.Next(ask); {
						size := len(inputs[len(got)%len(inputs)].Data)
						if p.Batch == 99 {
							size = len(ask.Payload)
						}
						if ask.Apart != (name == "local" && size > leaveApart) {
							t.Errorf("payload %d is apart: %v", len(got), ask.Apart)
						}
						if !mine && !ask.Apart {
							ask.Payload = bytes.Clone(ask.Payload)
						}
						if got = append(got, ask.Payload); string(ask.User) != "me" {
							t.Errorf("input %d is of user %q", len(got)-1, ask.User)
						}
					}
					if len(got) >= 2*len(inputs) {
						cancel()
					}
					return p.Err()
				})
				if ctx.Err() == nil {
					t.Error(err)
					cancel()
				}
			})
			for i, in := range inputs { // each alone
				b := AppendPredictHead(from.Begin(KindPredict), PredictHead{Batch: uint64(i), Count: 1})
				require.NoError(t, from.End(from.AppendAskInput(b, &Ask{User: []byte("me")}, in), 0))
			}
			b := AppendPredictHead(from.Begin(KindPredict), PredictHead{Batch: 99, Count: len(inputs)}) // and all together
			for _, in := range inputs {
				b = from.AppendAsk(b, &Ask{User: []byte("me"), Payload: AppendInput(nil, in)})
			}
			require.NoError(t, from.End(b, 0))
			wg.Wait()
			for i, payload := range got {
				if !bytes.Equal(payload, AppendInput(nil, inputs[i%len(inputs)])) {
					t.Errorf("payload %d, of %d bytes, is not as it was sent", i, sizes[i%len(sizes)])
				}
			}
			takes := 7 // frames of more than readBuffer
			if name == "local" {
				takes = 0 // their memory is the sender's
			}
			if len(got) != 2*len(inputs) || taken != takes {
				t.Errorf("%d payloads, and %d frames taken", len(got), taken)
			}
		})
	}
}

// A frame that is refused leaves nothing of its payloads, and those that wait count as what waits.
func TestARefusedFrameLeavesNoPayload(t *testing.T) {
	small := testHello
	small.MaxFrame = 1 << 20
	c, _ := loopback(t, testHello, small, plain)
	in := serving.Input{Type: serving.Bytes, Data: make([]byte, 1<<20)}
	send := func(data []byte) error {
		b := AppendPredictHead(c.Begin(KindPredict), PredictHead{Count: 1})
		return c.End(c.AppendAskInput(b, &Ask{}, serving.Input{Type: in.Type, Data: data}), 0)
	}
	if err := send(in.Data); !errors.Is(err, ErrTooLarge) || len(c.apart) != 0 || c.weight != 0 || len(c.out) != 0 {
		t.Errorf("%v; %d payloads of %d bytes, and %d of the frame", err, len(c.apart), c.weight, len(c.out))
	}
	sent := 0
	for ; sent <= maxBacklog; sent += 1000_000 {
		if err := send(in.Data[:1000_000]); err != nil {
			t.Fatalf("after %d bytes: %v", sent, err)
		}
	}
	if err := send(in.Data[:1000_000]); !errors.Is(err, ErrBacklog) || c.weight != sent {
		t.Errorf("%v; %d of %d bytes wait", err, c.weight, sent)
	}
	if err := c.SendFeedback(1, 1<<20, Feedback{}); !errors.Is(err, ErrBacklog) {
		t.Errorf("feedback: %v", err)
	}
}

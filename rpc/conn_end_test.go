package rpc

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/topsail-serving/topsail/test/require"
)

// loopback opens version 2 over TCP.
func loopback(t testing.TB, dial, listen Hello, wrap func(net.Conn) net.Conn) (*Conn, *Conn) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	near, err := net.Dial("tcp", listener.Addr().String())
	require.NoError(t, err)
	far, err := listener.Accept()
	require.NoError(t, err)
	return handshake(t, wrap(near), far, dial, listen)
}

func plain(nc net.Conn) net.Conn { return nc }

// Senders do not know when a connection ends. Up to then every frame that End took
// arrives, in the order of its sender; from then on End says so.
func TestEveryFrameThatWasTakenArrives(t *testing.T) {
	t.Run("socket", func(t *testing.T) {
		x, y := loopback(t, testHello, testHello, plain)
		everyFrameArrives(t, x, y)
	})
	t.Run("local", func(t *testing.T) {
		x, y := local(t, testHello, testHello)
		everyFrameArrives(t, x, y)
	})
}

func everyFrameArrives(t *testing.T, x, y *Conn) {
	const senders = 8
	sizeOf := func(sender, n uint32) int { // some frames are too large for their buffer to be kept
		if sender == 7 && n%64 == 0 {
			return keepInUse + 1000
		}
		return int(sender) * 300
	}
	ctx, cancel := context.WithCancel(t.Context())
	var got [senders]uint32
	var reading, writing sync.WaitGroup
	reading.Go(func() {
		end := y.Run(t.Context(), func(f Frame) error {
			sender, n := binary.LittleEndian.Uint32(f.Body), binary.LittleEndian.Uint32(f.Body[4:])
			if got[sender] != n || len(f.Body) != 8+sizeOf(sender, n) || bytes.Count(f.Body[8:], []byte{byte(sender)}) != len(f.Body)-8 {
				return fmt.Errorf("frame %d of sender %d, with %d bytes, is not as it was sent", n, sender, len(f.Body))
			}
			if got[sender]++; n == 300 && sender == 0 {
				cancel() // while the others send
			}
			return nil
		})
		if _, said := errors.AsType[*ByeError](end); !said {
			t.Errorf("the reader ended with %v, want a BYE", end)
		}
	})
	var took [senders]uint32
	for i := range uint32(senders) {
		writing.Go(func() {
			for {
				b := appendU32(appendU32(x.Begin(KindPredict), i), took[i])
				err := x.End(append(b, bytes.Repeat([]byte{byte(i)}, sizeOf(i, took[i]))...), 0)
				switch {
				case err == nil:
					took[i]++
				case errors.Is(err, ErrClosed):
					return
				case !errors.Is(err, ErrBacklog):
					t.Error(err)
					return
				}
			}
		})
	}
	if end := x.Run(ctx, Unexpected); !errors.Is(end, context.Canceled) {
		t.Errorf("the writer ended with %v, want %v", end, context.Canceled)
	}
	writing.Wait()
	reading.Wait()
	if got != took {
		t.Errorf("arrived %v, taken %v", got, took)
	}
}

// The writer may have ended with the context before the handler answers.
func TestAnAnswerGivenAfterTheContextEndedArrives(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x, y := pair(t, testHello, testHello)
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() {
			end := x.Run(ctx, func(f Frame) error {
				cancel()
				synctest.Wait() // for whatever ends by that
				return x.Send(KindReply, FlagEnd, f.Body)
			})
			if !errors.Is(end, context.Canceled) {
				t.Errorf("Run = %v", end)
			}
		})
		answered := false
		wg.Go(func() {
			_ = y.Run(t.Context(), func(f Frame) error {
				answered = f.Kind == KindReply && string(f.Body) == "ask"
				return nil
			})
		})
		if err := y.Send(KindPredict, 0, []byte("ask")); err != nil {
			t.Error(err)
		}
		wg.Wait()
		if !answered {
			t.Error("the answer was taken and did not arrive")
		}
	})
}

func TestRunGivesTheCauseOfItsContext(t *testing.T) {
	x, y := pair(t, testHello, testHello)
	why := errors.New("shutting down")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	if err := x.Run(ctx, Unexpected); !errors.Is(err, why) {
		t.Errorf("Run = %v, want %v", err, why)
	}
	if _, err := y.nc.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("the connection is not closed: %v", err)
	}
}

func TestNothingFollowsBye(t *testing.T) {
	x, y := pair(t, testHello, testHello)
	require.NoError(t, x.Send(KindBye, 0, AppendBye(nil, "done")))
	if err := x.Send(KindReply, 0, nil); !errors.Is(err, ErrClosed) {
		t.Errorf("Send after BYE = %v, want ErrClosed", err)
	}
	var wg sync.WaitGroup
	wg.Go(func() { _ = x.Run(t.Context(), Unexpected) })
	end := y.Run(t.Context(), Unexpected)
	if said, ok := errors.AsType[*ByeError](end); !ok || said.Reason != "done" {
		t.Errorf("the peer ended with %v, want the BYE", end)
	}
	wg.Wait()
}

// However long an error's text is, it fits what the peer accepts.
func TestAnErrorOfTheHandlerIsToldToThePeer(t *testing.T) {
	small := Hello{MaxFrame: MinMaxFrame}
	x, y := pair(t, small, small)
	why := errors.New("no such model" + strings.Repeat("!", 1<<17))
	var wg sync.WaitGroup
	wg.Go(func() {
		if end := y.Run(t.Context(), func(Frame) error { return why }); !errors.Is(end, why) {
			t.Errorf("Run does not give the handler's error, but %T", end)
		}
	})
	if err := x.Send(KindDrain, 0, nil); err != nil {
		t.Error(err)
	}
	end := x.Run(t.Context(), Unexpected)
	if said, ok := errors.AsType[*ByeError](end); !ok || !strings.HasPrefix(said.Reason, "no such model!!") {
		t.Errorf("the peer ended with %v, want the reason", end)
	}
	wg.Wait()
}

func TestARefusedFrameLeavesTheOthersWhole(t *testing.T) {
	small := Hello{MaxFrame: MinMaxFrame}
	x, y := pair(t, small, small)
	for i := range 100 {
		err := x.Send(KindReply, 0, make([]byte, MinMaxFrame+1+i))
		if !errors.Is(err, ErrTooLarge) {
			t.Fatalf("Send = %v, want ErrTooLarge", err)
		}
		require.NoError(t, x.Send(KindPredict, 0, appendU32(nil, uint32(i))))
	}
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { _ = x.Run(ctx, Unexpected) })
	got := uint32(0)
	_ = y.Run(ctx, func(f Frame) error {
		if f.Kind != KindPredict || binary.LittleEndian.Uint32(f.Body) != got {
			t.Errorf("frame %d is kind %d, %x", got, f.Kind, f.Body)
		}
		if got++; got == 100 {
			cancel()
		}
		return nil
	})
	wg.Wait()
	if got != 100 {
		t.Errorf("%d frames arrived, want 100", got)
	}
}

func TestOnlyKindsThatMustBeUnderstoodAreUnexpected(t *testing.T) {
	for kind, want := range map[Kind]bool{0: true, KindHello: true, KindPredict: true, 127: true, KindMetrics: false, 129: false, 255: false} {
		err := Unexpected(Frame{Kind: kind})
		if _, ok := errors.AsType[*ProtocolError](err); ok != want {
			t.Errorf("kind %d: %v", kind, err)
		}
	}
}

func TestManySendersShareAWrite(t *testing.T) {
	const senders, each = 32, 50
	var writes atomic.Int64
	x, y := loopback(t, testHello, testHello, func(nc net.Conn) net.Conn { return &counted{Conn: nc, writes: &writes} })
	writes.Store(0)
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for range senders {
		wg.Go(func() {
			for range each {
				if err := x.Send(KindPredict, 0, make([]byte, 100)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait() // nothing leaves before Run
	wg.Go(func() { _ = x.Run(ctx, Unexpected) })
	got, took := 0, int64(0)
	_ = y.Run(ctx, func(Frame) error {
		if got++; got == senders*each {
			took = writes.Load() // before those of the farewell
			cancel()
		}
		return nil
	})
	wg.Wait()
	if got != senders*each || took != 1 {
		t.Errorf("%d frames arrived in %d writes, want %d in 1", got, took, senders*each)
	}
}

// On one machine nothing is compressed, but what was agreed on holds: the peer may.
func TestACompressedFrameIsTakenFromTheSameMachine(t *testing.T) {
	x, y := loopback(t, testHello, testHello, plain)
	if x.comp != nil || y.comp != nil {
		t.Error("a connection within the machine compresses")
	}
	x.comp = new(compressor)
	body := make([]byte, 4<<10)
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { _ = x.Run(ctx, Unexpected) })
	if err := x.Send(KindPredict, 0, body); err != nil {
		t.Error(err)
	}
	end := y.Run(ctx, func(f Frame) error {
		if f.Flags&FlagCompressed == 0 || !bytes.Equal(f.Body, body) {
			t.Errorf("flags %d, %d bytes; want the body, compressed on its way", f.Flags, len(f.Body))
		}
		cancel()
		return nil
	})
	wg.Wait()
	if _, bad := errors.AsType[*ProtocolError](end); bad {
		t.Errorf("Run = %v", end)
	}
}

// counted counts the writes of a connection.
type counted struct {
	net.Conn
	writes *atomic.Int64
}

func (c *counted) Write(b []byte) (int, error) {
	c.writes.Add(1)
	return c.Conn.Write(b)
}

// Frames that come alone are written at once as far as the socket takes them. What it does not take, and what comes
// meanwhile, follows in order.
func TestFramesWrittenAtOnceStayWholeAndInOrder(t *testing.T) {
	x, y := loopback(t, Hello{MaxFrame: MaxFrame}, Hello{MaxFrame: MaxFrame}, plain)
	const frames, size = 600, 60_000 // more than the socket holds
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	all.Go(func() { _ = x.Run(ctx, func(Frame) error { return nil }) })
	atOnce := 0
	for i := range frames {
		b := append(x.Begin(KindReply), bytes.Repeat([]byte{byte(i)}, size)...)
		if i%3 < 2 {
			x.sent = -int64(loneAfter) // long ago
		}
		require.NoError(t, x.End(b, 0))
		x.mu.Lock()
		if len(x.out) == 0 && i%3 < 2 {
			atOnce++
		}
		x.mu.Unlock()
	}
	if atOnce == 0 {
		t.Error("none was written at once")
	}
	next := 0
	_ = y.Run(t.Context(), func(f Frame) error {
		if len(f.Body) != size || bytes.Count(f.Body, []byte{byte(next)}) != size {
			t.Errorf("frame %d has %d bytes, and begins with %d", next, len(f.Body), f.Body[0])
		}
		if next++; next == frames {
			cancel()
		}
		return nil
	})
	all.Wait()
	if next != frames {
		t.Errorf("%d of %d frames arrived", next, frames)
	}
}

// What is sent every now and then is written at once, and so is each frame where they are sent one at a time. The
// first of many that come together waits for the others.
func TestWhichFramesAreWrittenAtOnce(t *testing.T) {
	const long, short = -int64(time.Hour), int64(time.Microsecond)
	for name, c := range map[string]struct {
		sent, gap   int64
		alone, want bool
	}{
		"now and then":        {long, -long, false, true},
		"the first of many":   {long, short, false, false},
		"soon after another":  {int64(time.Hour), -long, false, false},
		"one at a time, soon": {int64(time.Hour), short, true, true},
	} {
		x, _ := loopback(t, Hello{MaxFrame: MaxFrame}, Hello{MaxFrame: MaxFrame}, plain)
		if x.sent, x.gap = c.sent, c.gap; c.alone {
			x.SendAlone()
		}
		require.NoError(t, x.End(append(x.Begin(KindReply), 1, 2, 3), 0))
		if atOnce := len(x.out) == 0; atOnce != c.want {
			t.Errorf("%s: written at once: %v, want %v", name, atOnce, c.want)
		}
	}
}

package rpc

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/topsail-serving/topsail/test/require"
)

// A large frame over a slow line is no silence.
func TestAFrameThatArrivesSlowlyIsHeard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x, y := pair(t, testHello, testHello)
		var wg sync.WaitGroup
		wg.Go(func() { _, _ = io.Copy(io.Discard, y.nc) }) // PINGs; they are not answered
		wg.Go(func() {
			stream := AppendFrame(nil, KindDrain, 0, make([]byte, 40))
			for len(stream) > 0 {
				time.Sleep(deadAfter / 10)
				if _, err := y.nc.Write(stream[:1]); err != nil {
					t.Errorf("%d bytes before the end of the frame: %v", len(stream), err)
				}
				stream = stream[1:]
			}
			y.nc.Close()
		})
		frames := 0
		end := x.Run(t.Context(), func(Frame) error { frames++; return nil })
		if frames != 1 || !errors.Is(end, io.EOF) {
			t.Errorf("%d frames arrived before %v", frames, end)
		}
		wg.Wait()
	})
}

// slowly reads from nc, pausing between pieces, and answers as little as a peer
// must to be alive.
func slowly(nc net.Conn, piece int, pause time.Duration) (read int) {
	b := make([]byte, piece)
	for {
		n, err := nc.Read(b)
		if read += n; err != nil {
			return read
		}
		time.Sleep(pause)
		if _, err := nc.Write(AppendFrame(nil, KindPong, 0, make([]byte, 8))); err != nil {
			return read
		}
	}
}

func TestAPeerThatReadsSlowlyGetsItsFrame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const size = 16 << 20
		hello := Hello{MaxFrame: MaxFrame}
		x, y := pair(t, hello, hello)
		require.NoError(t, x.Send(KindPredict, 0, make([]byte, size)))
		ctx, cancel := context.WithCancel(t.Context())
		read := 0
		var wg sync.WaitGroup
		wg.Go(func() { read = slowly(y.nc, 1<<20, time.Second) }) // 16 s in all
		wg.Go(func() { time.Sleep(25 * time.Second); cancel() })
		if end := x.Run(ctx, Unexpected); !errors.Is(end, context.Canceled) {
			t.Errorf("Run = %v, want it to last", end)
		}
		wg.Wait()
		if read < headerSize+size {
			t.Errorf("the peer got %d bytes of %d", read, size)
		}
	})
}

func TestAPeerThatReadsNothingIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x, y := pair(t, testHello, testHello)
		defer y.nc.Close()
		require.NoError(t, x.Send(KindPredict, 0, make([]byte, 100)))
		start := time.Now()
		time.AfterFunc(time.Second, func() { _ = x.Send(KindPredict, 0, nil) }) // must not be waited for too
		end := x.Run(t.Context(), Unexpected)
		if took := time.Since(start); took < writeWithin || took > writeWithin+time.Second {
			t.Errorf("gave up after %v: %v", took, end)
		}
	})
}

// Whatever waits and whatever the peer does, Run ends soon after its context.
func TestRunEndsSoonWhenThePeerReadsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hello := Hello{MaxFrame: MaxFrame}
		x, y := pair(t, hello, hello)
		defer y.nc.Close()
		ctx, cancel := context.WithCancel(t.Context())
		for range 2 {
			require.NoError(t, x.Send(KindPredict, 0, make([]byte, 30<<20)))
		}
		start := time.Now()
		time.AfterFunc(time.Second, cancel)
		_ = x.Run(ctx, Unexpected)
		if took := time.Since(start); took > time.Second+leaveWithin {
			t.Errorf("Run ended %v after its context", took-time.Second)
		}
	})
}

// The same for what is sent when the writer has ended already.
func TestRunEndsSoonWhenThePeerDoesNotReadTheLastFrame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hello := Hello{MaxFrame: MaxFrame}
		x, y := pair(t, hello, hello)
		defer y.nc.Close()
		go func() { _, _ = y.nc.Write(AppendFrame(nil, KindPredict, 0, nil)) }()
		ctx, cancel := context.WithCancel(t.Context())
		start := time.Now()
		_ = x.Run(ctx, func(Frame) error {
			cancel()
			synctest.Wait()
			return x.Send(KindReply, FlagEnd, make([]byte, 30<<20))
		})
		if took := time.Since(start); took > leaveWithin {
			t.Errorf("Run ended %v after its context", took)
		}
	})
}

// A sender that never pauses must not keep the writer from noticing that the peer
// has gone silent.
func TestASilentPeerIsGivenUpWhileFramesAreSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x, y := pair(t, testHello, testHello)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		var wg sync.WaitGroup
		wg.Go(func() { // reads, says nothing
			for b := make([]byte, 1<<10); ; time.Sleep(2 * time.Millisecond) {
				if _, err := y.nc.Read(b); err != nil {
					return
				}
			}
		})
		wg.Go(func() { // so that there is something to write after every write
			for x.Send(KindPredict, 0, make([]byte, 100)) == nil {
				time.Sleep(time.Millisecond)
			}
		})
		end := x.Run(ctx, Unexpected)
		if ctx.Err() != nil || end == nil || !strings.Contains(end.Error(), "silent") {
			t.Errorf("Run = %v, want that the peer is silent", end)
		}
		wg.Wait()
	})
}

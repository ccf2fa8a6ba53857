package rpc

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

var testHello = Hello{Role: RoleGateway, MaxFrame: MaxFrame, Features: FeatureLZ4}

// pair opens version 2 between two ends of a pipe.
func pair(t testing.TB, dial, listen Hello) (*Conn, *Conn) {
	t.Helper()
	a, b := net.Pipe()
	return handshake(t, a, b, dial, listen)
}

func handshake(t testing.TB, a, b net.Conn, dial, listen Hello) (*Conn, *Conn) {
	t.Helper()
	var accepted *Conn
	var acceptErr error
	var wg sync.WaitGroup
	wg.Go(func() { accepted, acceptErr = Accept(context.Background(), b, listen, nil) })
	dialled, err := Connect(context.Background(), a, dial)
	wg.Wait()
	if err != nil || acceptErr != nil {
		t.Fatalf("handshake: connect %v, accept %v", err, acceptErr)
	}
	return dialled, accepted
}

func TestFramesArriveWholeAndInOrder(t *testing.T) {
	for _, lz4 := range []Features{0, FeatureLZ4} {
		hello := testHello
		hello.Features = lz4
		a, b := pair(t, hello, hello)
		ctx, cancel := context.WithCancel(t.Context())
		bodies := [][]byte{nil, []byte("x"), bytes.Repeat([]byte("ab"), 40_000), bytes.Repeat([]byte{7}, 5<<20), []byte("end")}
		var got [][]byte
		var wg sync.WaitGroup
		wg.Go(func() { a.Run(ctx, Unexpected) })
		wg.Go(func() {
			b.Run(ctx, func(f Frame) error {
				got = append(got, bytes.Clone(f.Body))
				if len(got) == len(bodies) {
					cancel()
				}
				return nil
			})
		})
		for _, body := range bodies {
			if err := a.Send(KindPredict, 0, body); err != nil {
				t.Fatal(err)
			}
		}
		wg.Wait()
		for i := range bodies {
			if i >= len(got) || !bytes.Equal(got[i], bodies[i]) {
				t.Fatalf("features %d: frame %d did not arrive as it was sent", lz4, i)
			}
		}
	}
}

func TestAProtocolErrorIsToldToThePeer(t *testing.T) {
	a, b := pair(t, testHello, testHello)
	var wg sync.WaitGroup
	var said error
	wg.Go(func() { said = a.Run(t.Context(), Unexpected) })
	wg.Go(func() { b.Run(t.Context(), Unexpected) })
	a.Send(77, 0, nil)
	wg.Wait()
	if bye, ok := errors.AsType[*ByeError](said); !ok || bye.Reason == "" {
		t.Errorf("the offender heard %v, want a BYE with a reason", said)
	}
}

func TestASilentPeerIsPingedAndThenGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := pair(t, testHello, testHello)
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() { b.Run(ctx, Unexpected) })
		var err error
		done := make(chan struct{})
		wg.Go(func() { err = a.Run(ctx, Unexpected); close(done) })
		time.Sleep(time.Minute) // pings keep an idle connection open
		select {
		case <-done:
			t.Fatalf("an idle connection ended: %v", err)
		default:
		}
		cancel()
		wg.Wait()

		a, b = pair(t, testHello, testHello)
		wg.Go(func() { io.Copy(io.Discard, b.nc) }) // reads, never answers
		start := time.Now()
		err = a.Run(t.Context(), Unexpected)
		if took := time.Since(start); took < deadAfter || took > deadAfter+2*pingAfter {
			t.Errorf("gave up after %v: %v", took, err)
		}
		wg.Wait()
	})
}

func TestSendAfterTheEndFails(t *testing.T) {
	a, b := pair(t, testHello, testHello)
	b.nc.Close()
	if err := a.Run(t.Context(), Unexpected); !errors.Is(err, io.EOF) {
		t.Errorf("Run = %v, want EOF", err)
	}
	if err := a.Send(KindDrain, 0, nil); !errors.Is(err, ErrClosed) {
		t.Errorf("Send = %v, want ErrClosed", err)
	}
}

func TestABackedUpConnectionRefusesMore(t *testing.T) {
	a, _ := pair(t, Hello{MaxFrame: MaxFrame}, Hello{MaxFrame: MaxFrame})
	body := make([]byte, 16<<20)
	var err error
	for range 12 { // nobody runs the connection, so nothing leaves
		if err = a.Send(KindPredict, 0, body); err != nil {
			break
		}
	}
	if !errors.Is(err, ErrBacklog) {
		t.Errorf("Send = %v, want ErrBacklog", err)
	}
}

// What is written and what is appended meanwhile must be two buffers, also after a
// frame whose buffer is too large to be kept.
func TestFramesSentDuringAWriteDoNotTouchIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hello := Hello{MaxFrame: MaxFrame}
		x, y := pair(t, hello, hello)
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() { _ = x.Run(ctx, Unexpected) })
		send := func(fill byte, size int) {
			if err := x.Send(KindPredict, 0, bytes.Repeat([]byte{fill}, size)); err != nil {
				t.Error(err)
			}
			synctest.Wait() // until the writer waits for the peer
		}
		r := newReader(y.nc, MaxFrame, false)
		read := func(fill byte, size int) {
			f, err := r.next()
			if err != nil || len(f.Body) != size || bytes.Count(f.Body, []byte{fill}) != size {
				t.Errorf("frame %d: %d bytes, %d of them right: %v", fill, len(f.Body), bytes.Count(f.Body, []byte{fill}), err)
			}
			synctest.Wait()
		}
		size := func(fill byte) int {
			if fill%8 == 0 {
				return keepInUse + 100
			}
			return 100
		}
		const last = 60
		send(1, size(1))
		for fill := byte(2); fill <= last; fill++ { // always one ahead of the peer
			send(fill, size(fill))
			read(fill-1, size(fill-1))
		}
		read(last, size(last))
		if cap(x.out) > keepInUse || cap(x.spare) > keepInUse {
			t.Errorf("buffers of %d and %d bytes are kept", cap(x.out), cap(x.spare))
		}
		send(1, keepInUse-100)
		read(1, keepInUse-100)
		time.Sleep(2 * pingAfter)
		synctest.Wait()
		x.mu.Lock()
		if cap(x.out) > keepBuffer || cap(x.spare) > keepBuffer {
			t.Errorf("while the peer is silent, buffers of %d and %d bytes are kept", cap(x.out), cap(x.spare))
		}
		x.mu.Unlock()
		cancel()
		wg.Wait()
	})
}

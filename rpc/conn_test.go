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

func TestHandshakeAgreesOnTheLowerMinorAndSharedFeatures(t *testing.T) {
	newer := Hello{Minor: 3, Role: RoleSidecar, MaxFrame: MinMaxFrame, Features: FeatureLZ4 | 1<<40, Name: "r1"}
	older := Hello{Minor: 1, Role: RoleGateway, MaxFrame: MaxFrame, Features: 0}
	dialled, accepted := pair(t, older, newer)
	if dialled.Minor() != 1 || accepted.Minor() != 1 {
		t.Errorf("minor: dialled %d, accepted %d, want 1", dialled.Minor(), accepted.Minor())
	}
	if dialled.lz4 || accepted.lz4 {
		t.Error("LZ4 is in use although only one side offers it")
	}
	if dialled.Peer().Name != "r1" || accepted.Peer().Role != RoleGateway {
		t.Errorf("peers: %+v, %+v", dialled.Peer(), accepted.Peer())
	}
	err := dialled.Send(KindPredict, 0, make([]byte, MinMaxFrame+1))
	if !errors.Is(err, ErrTooLarge) {
		t.Errorf("a frame above the peer's limit: %v, want ErrTooLarge", err)
	}
}

func TestAcceptRefusesAWrongToken(t *testing.T) {
	a, b := net.Pipe()
	var wg sync.WaitGroup
	wg.Go(func() {
		_, err := Accept(context.Background(), b, Hello{MaxFrame: MaxFrame, Token: []byte("right")}, nil)
		if err == nil {
			t.Error("Accept took a wrong token")
		}
	})
	_, err := Connect(context.Background(), a, Hello{MaxFrame: MaxFrame, Token: []byte("wrong")})
	wg.Wait()
	if !errors.Is(err, ErrRefused) {
		t.Errorf("Connect: %v, want ErrRefused", err)
	}
}

func TestHandshakeGivesUpOnASilentPeer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := net.Pipe()
		defer b.Close()
		go io.Copy(io.Discard, b)
		start := time.Now()
		_, err := Connect(t.Context(), a, testHello)
		if err == nil || time.Since(start) != handshakeTimeout {
			t.Errorf("Connect to a silent peer: %v after %v", err, time.Since(start))
		}
	})
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

func TestANewerPeersOptionalFramesAndFieldsAreSkipped(t *testing.T) {
	newer := testHello
	newer.Minor = 9
	a, b := pair(t, newer, testHello)
	ctx, cancel := context.WithCancel(t.Context())
	var asks []Ask
	var wg sync.WaitGroup
	wg.Go(func() { a.Run(ctx, Unexpected) })
	wg.Go(func() {
		b.Run(ctx, func(f Frame) error {
			defer cancel()
			p, err := ParsePredict(f.Body)
			if err != nil {
				return err
			}
			var ask Ask
			for p.Next(&ask) {
				asks = append(asks, Ask{QueryID: ask.QueryID, Payload: bytes.Clone(ask.Payload)})
			}
			return p.Err()
		})
	})
	a.Send(200, 0, []byte("a kind that nobody knows yet"))
	body := AppendPredictHead(nil, PredictHead{Batch: 1, Count: 1})
	payload := AppendPayload(nil)
	body, at := openSize(body)
	body = append(appendU32(body, 1000), payload...)
	body = appendFieldString(body, 250, "a field that nobody knows yet")
	body = appendField(body, predictQueryID, appendU64(nil, 42))
	a.Send(KindPredict, 0, closeSize(body, at))
	wg.Wait()
	if len(asks) != 1 || asks[0].QueryID != 42 || !bytes.Equal(asks[0].Payload, payload) {
		t.Fatalf("asks = %+v", asks)
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
	for range 8 { // nobody runs the connection, so nothing leaves
		if err = a.Send(KindPredict, 0, body); err != nil {
			break
		}
	}
	if !errors.Is(err, ErrBacklog) {
		t.Errorf("Send = %v, want ErrBacklog", err)
	}
}

func BenchmarkRoundTrip(b *testing.B) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer listener.Close()
	near, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		b.Fatal(err)
	}
	far, err := listener.Accept()
	if err != nil {
		b.Fatal(err)
	}
	x, y := handshake(b, near, far, testHello, testHello)
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	back := make(chan struct{}, 1)
	var wg sync.WaitGroup
	wg.Go(func() { x.Run(ctx, func(Frame) error { back <- struct{}{}; return nil }) })
	wg.Go(func() { y.Run(ctx, func(f Frame) error { return y.Send(KindReply, FlagEnd, f.Body) }) })
	body := make([]byte, 150)
	b.ReportAllocs()
	for b.Loop() {
		if err := x.Send(KindPredict, 0, body); err != nil {
			b.Fatal(err)
		}
		<-back
	}
	cancel()
	wg.Wait()
}

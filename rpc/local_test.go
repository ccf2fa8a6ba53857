package rpc

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/topsail-serving/topsail/test/require"
)

// local opens version 2 within the process.
func local(t testing.TB, dial, listen Hello) (*Conn, *Conn) {
	t.Helper()
	var l Local
	ln := l.Listen()
	defer ln.Close()
	accepted := make(chan net.Conn, 1)
	go func() {
		nc, _ := ln.Accept()
		accepted <- nc
	}()
	nc, err := l.Dial(t.Context(), ln.Addr().String())
	require.NoError(t, err)
	return handshake(t, nc, <-accepted, dial, listen)
}

func TestLocalAddresses(t *testing.T) {
	var l Local
	elsewhere := errors.New("elsewhere")
	dial := l.Before(func(context.Context, string) (net.Conn, error) { return nil, elsewhere })
	one, two := l.Listen(), l.Listen()
	addr := one.Addr().String()
	if addr == two.Addr().String() {
		t.Errorf("two listeners at %s", addr)
	}
	var accepting sync.WaitGroup
	accepting.Go(func() {
		if nc, err := one.Accept(); err != nil {
			t.Error(err)
		} else {
			nc.Close()
		}
	})
	nc, err := dial(t.Context(), addr)
	require.NoError(t, err)
	accepting.Wait()
	if n, err := nc.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("read %d, %v from what has been closed", n, err)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if _, err := dial(ended, addr); !errors.Is(err, context.Canceled) {
		t.Errorf("dialled what does not accept: %v", err)
	}
	if err := errors.Join(one.Close(), one.Close()); err != nil {
		t.Error(err)
	}
	if _, err := one.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("accepted by a closed listener: %v", err)
	}
	if _, err := l.Dial(t.Context(), addr); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("dialled a closed listener: %v", err)
	}
	if _, err := dial(t.Context(), addr); !errors.Is(err, elsewhere) {
		t.Errorf("dialled another address: %v", err)
	}
}

// However one side ends, the other one ends, too, and with the reason.
func TestALocalConnectionEnds(t *testing.T) {
	for name, c := range map[string]struct {
		end  func(x *Conn, cancel func())
		want string
	}{
		"its owner":   {func(_ *Conn, cancel func()) { cancel() }, "rpc: the peer closed the connection: stopping"},
		"a bad frame": {func(x *Conn, _ func()) { _ = x.Send(77, 0, nil) }, "rpc: read: EOF"},
		"its close":   {func(x *Conn, _ func()) { x.nc.Close() }, "rpc: read: EOF"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				x, y := local(t, testHello, testHello)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				var running sync.WaitGroup
				var said error
				running.Go(func() { said = x.Run(ctx, Unexpected) })
				running.Go(func() {
					if err := y.Run(t.Context(), Unexpected); name != "a bad frame" && err.Error() != c.want {
						t.Errorf("ended with %v, want %s", err, c.want)
					}
				})
				synctest.Wait()
				c.end(x, cancel)
				running.Wait()
				if _, bye := errors.AsType[*ByeError](said); bye != (name == "a bad frame") {
					t.Errorf("the other side ended with %v", said)
				}
				if err := x.Send(KindPing, 0, nil); !errors.Is(err, ErrClosed) {
					t.Errorf("after the end: %v", err)
				}
			})
		})
	}
}

// A side whose peer never shakes hands ends with its owner, and when the peer hangs up.
func TestALocalConnectionWithoutAPeer(t *testing.T) {
	for _, hangsUp := range []bool{false, true} {
		a, b := net.Pipe()
		mine, theirs := newLocalEnd(a), newLocalEnd(b)
		mine.other, theirs.other = theirs, mine
		c := newConn(mine, testHello, testHello)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		if hangsUp {
			theirs.Close()
		} else {
			cancel()
		}
		if err := c.Run(ctx, Unexpected); !errors.Is(err, io.EOF) && !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	}
}

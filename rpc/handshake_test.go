package rpc

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestHandshakeAgreesOnTheLowerMinorAndSharedFeatures(t *testing.T) {
	newer := Hello{Minor: 3, Role: RoleSidecar, MaxFrame: MinMaxFrame, Features: FeatureLZ4 | 1<<40, Name: "r1"}
	older := Hello{Minor: 1, Role: RoleGateway, MaxFrame: MaxFrame, Features: 0}
	dialled, accepted := pair(t, older, newer)
	if dialled.Minor() != 1 || accepted.Minor() != 1 {
		t.Errorf("minor: dialled %d, accepted %d, want 1", dialled.Minor(), accepted.Minor())
	}
	if dialled.lz4 || accepted.lz4 || dialled.comp != nil || accepted.comp != nil {
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

func TestAcceptSaysWhyItRefuses(t *testing.T) {
	why := strings.Repeat("no room. ", 10_000) // more than a HELLO's answer may hold
	a, b := net.Pipe()
	var wg sync.WaitGroup
	wg.Go(func() {
		c, err := Accept(t.Context(), b, testHello, func(h Hello) error { return errors.New(why) })
		if c != nil || err == nil || err.Error() != why {
			t.Errorf("Accept = %v, %v", c, err)
		}
	})
	_, err := Connect(t.Context(), a, testHello)
	wg.Wait()
	if !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), "no room. no room.") {
		t.Errorf("Connect: %v, want ErrRefused and the reason", err)
	}
}

func TestAcceptChecksTheTokenOnlyWhenItHasOne(t *testing.T) {
	for _, tt := range []struct {
		mine, theirs string
		open         bool
	}{{"", "", true}, {"", "any", true}, {"right", "right", true}, {"right", "", false}, {"right", "righ", false}} {
		a, b := net.Pipe()
		var wg sync.WaitGroup
		wg.Go(func() {
			c, err := Accept(t.Context(), b, Hello{MaxFrame: MaxFrame, Token: []byte(tt.mine)}, nil)
			if (err == nil) != tt.open {
				t.Errorf("token %q for %q: %v", tt.theirs, tt.mine, err)
			}
			if c != nil && string(c.Peer().Token) != tt.theirs {
				t.Errorf("token of the peer: %q, want %q", c.Peer().Token, tt.theirs)
			}
		})
		c, err := Connect(t.Context(), a, Hello{MaxFrame: MaxFrame, Token: []byte(tt.theirs)})
		wg.Wait()
		if (err == nil) != tt.open {
			t.Errorf("Connect with %q to %q: %v", tt.theirs, tt.mine, err)
		}
		if c != nil && len(c.Peer().Token) > 0 {
			t.Errorf("the listener told its token %q", c.Peer().Token)
		}
	}
}

func TestTheHandshakeEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := net.Pipe()
		defer a.Close()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start := time.Now()
		_, err := Accept(ctx, b, testHello, nil)
		if err == nil || time.Since(start) != time.Second {
			t.Errorf("Accept of a silent peer: %v after %v, want 1s", err, time.Since(start))
		}
		if _, err := b.Write(nil); !errors.Is(err, io.ErrClosedPipe) {
			t.Errorf("the connection is not closed: %v", err)
		}
	})
}

// What is not this protocol is found out from the first 8 bytes.
func TestAStrangerIsRefused(t *testing.T) {
	hello := encode(testHello).Body
	for name, stream := range map[string][]byte{
		"http":           []byte("GET / HTTP/1.1\r\n\r\n"),
		"tls":            {0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc},
		"another frame":  AppendFrame(nil, KindPing, 0, make([]byte, 8)),
		"another magic":  AppendFrame(nil, KindHello, 0, append([]byte("TPS1"), hello[4:]...)),
		"compressed":     AppendFrame(nil, KindHello, FlagCompressed, hello),
		"too large":      AppendFrame(nil, KindHello, 0, append(hello[:20:20], make([]byte, maxHello/5*5+5)...)), // fields of tag 0
		"above 2 GiB":    {0xff, 0xff, 0xff, 0xff, byte(KindHello), 0, 0, 0},
		"a small limit":  AppendFrame(nil, KindHello, 0, AppendHello(nil, Hello{MaxFrame: MinMaxFrame - 1})),
		"half a goodbye": AppendFrame(nil, KindBye, 0, []byte{9, 0, 'x'}),
	} {
		a, b := net.Pipe()
		var wg sync.WaitGroup
		wg.Go(func() { _, _ = a.Write(stream) }) // some of it is refused unread
		wg.Go(func() { _, _ = io.Copy(io.Discard, a) })
		_, err := Accept(t.Context(), b, testHello, nil)
		b.Close()
		wg.Wait()
		if _, ok := errors.AsType[*ProtocolError](err); !ok {
			t.Errorf("%s: %v, want a *ProtocolError", name, err)
		}
	}
}

func TestAHelloTakesNothingOfWhatFollows(t *testing.T) {
	near, far := net.Pipe()
	stream := AppendFrame(nil, KindHello, 0, AppendHello(nil, testHello))
	stream = AppendFrame(stream, KindDrain, 0, nil) // in the same write
	var wg sync.WaitGroup
	wg.Go(func() {
		if _, err := far.Write(stream); err != nil {
			t.Error(err)
		}
		far.Close()
	})
	wg.Go(func() { _, _ = io.Copy(io.Discard, far) })
	got, err := readHello(near)
	if err != nil || got.Role != testHello.Role {
		t.Errorf("%+v, %v", got, err)
	}
	rest, err := io.ReadAll(near)
	if err != nil || !bytes.Equal(rest, AppendFrame(nil, KindDrain, 0, nil)) {
		t.Errorf("left: %x, %v", rest, err)
	}
	wg.Wait()
}

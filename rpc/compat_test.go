package rpc

import (
	"bytes"
	"encoding/binary"
	"errors"
	"maps"
	"net"
	"reflect"
	"slices"
	"sync"
	"testing"
)

// unknown is a field that nobody knows yet.
func unknown(b []byte) []byte { return appendField(b, 250, []byte("of a later version")) }

// newer is the frame as a later minor version might send it: with more fields in
// every entry, and more behind what version 2.0 has in a body.
func newer(f Frame) Frame {
	starts := map[Kind]int{KindAnnounce: 4, KindPredict: 16, KindReply: 24, KindFeedback: 8, KindLoad: 4, KindMetrics: 4}
	at, ok := starts[f.Kind]
	if !ok {
		f.Body = unknown(bytes.Clone(f.Body))
		return f
	}
	body := bytes.Clone(f.Body[:at])
	for at < len(f.Body) {
		next := at + 4 + int(binary.LittleEndian.Uint32(f.Body[at:]))
		var size int
		body, size = openSize(body)
		body = closeSize(unknown(append(body, f.Body[at+4:next]...)), size)
		at = next
	}
	f.Body = body
	return f
}

// appendMarked appends a frame whose header has something where version 2.0 has 0.
func appendMarked(b []byte, f Frame) []byte {
	start := len(b)
	b = AppendFrame(b, f.Kind, f.Flags, f.Body)
	b[start+6], b[start+7] = 0xab, 0xcd
	return b
}

// peer is the other side of a connection, made by hand: it writes the bytes that
// it is given and keeps what it reads.
type peer struct {
	hello Hello
	read  []Frame
}

// play opens a connection as the side that dials, sends stream and reads until the
// connection ends.
func (p *peer) play(nc net.Conn, hello Frame, stream []byte) error {
	if _, err := nc.Write(appendMarked(nil, hello)); err != nil {
		return err
	}
	var err error
	if p.hello, err = readHello(nc); err != nil {
		return err
	}
	var reading sync.WaitGroup
	reading.Go(func() {
		r := newReader(nc, MaxFrame, true)
		for {
			f, err := r.next()
			if err != nil {
				return
			}
			f.Body = bytes.Clone(f.Body)
			p.read = append(p.read, f)
		}
	})
	defer reading.Wait()
	_, err = nc.Write(stream)
	return err
}

// meet lets this code accept a peer that sends hello and stream, and gives what
// the handler got until the connection ended. before is called on the open Conn.
func meet(t *testing.T, mine Hello, p *peer, hello Frame, stream []byte, before func(*Conn)) (got []any, end error) {
	t.Helper()
	near, far := net.Pipe()
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() {
		if err := p.play(far, hello, stream); err != nil {
			t.Errorf("the peer: %v", err)
		}
	})
	c, err := Accept(t.Context(), near, mine, nil)
	if err != nil {
		t.Error(err)
		return nil, err
	}
	before(c)
	return got, c.Run(t.Context(), func(f Frame) error {
		f.Body = bytes.Clone(f.Body)
		v, err := decode(f)
		got = append(got, v)
		return err
	})
}

// handled are the golden values that a handler gets to see.
func handled() (list []any) {
	values := goldenValues()
	for _, name := range slices.Sorted(maps.Keys(values)) {
		switch v := values[name].(type) {
		case announce, predict, reply, Cancel, drain, feedback, metrics:
			list = append(list, v)
		}
	}
	return list
}

func TestANewerPeerIsUnderstood(t *testing.T) {
	hello := Hello{Minor: 9, Role: RoleGateway, Features: 1<<64 - 1, MaxFrame: 1<<32 - 1, Name: "later"}
	want := handled()
	var stream []byte
	for i, v := range want {
		stream = appendMarked(stream, Frame{Kind: Kind(129 + i), Flags: 2, Body: []byte("a kind that nobody knows yet")})
		stream = appendMarked(stream, newer(encode(v)))
	}
	stream = appendMarked(stream, newer(encode(ping(7))))
	stream = appendMarked(stream, newer(encode(pong(7))))
	stream = appendMarked(stream, newer(encode(bye("so long"))))

	var p peer
	got, end := meet(t, testHello, &p, newer(encode(hello)), stream, func(c *Conn) {
		if c.Minor() != testHello.Minor || !reflect.DeepEqual(c.Peer(), hello) {
			t.Errorf("minor %d with %+v", c.Minor(), c.Peer())
		}
		if c.limit != MaxFrame || !c.lz4 {
			t.Errorf("limit %d, compression %v; want ours, and what both offer", c.limit, c.lz4)
		}
	})
	if !reflect.DeepEqual(got, want) {
		t.Errorf("understood\n%+v, want\n%+v", got, want)
	}
	if said, ok := errors.AsType[*ByeError](end); !ok || said.Reason != "so long" {
		t.Errorf("Run ended with %v, want the BYE", end)
	}
	if p.hello.Minor != testHello.Minor || p.hello.Features != testHello.Features {
		t.Errorf("the newer peer got %+v", p.hello)
	}
	if pinged := newer(encode(ping(7))).Body; len(p.read) != 1 || p.read[0].Kind != KindPong || !bytes.Equal(p.read[0].Body, pinged) {
		t.Errorf("the newer peer read %+v, want its ping echoed whole", p.read)
	}
}

// Here this code is the newer one: it offers more than the peer knows, and must
// use nothing of that.
func TestAnOlderPeerIsSpokenToInItsVersion(t *testing.T) {
	mine := Hello{Minor: 9, Role: RoleSidecar, Features: 1<<64 - 1, MaxFrame: MaxFrame, Name: "later"}
	hello := Hello{Role: RoleContainer, MaxFrame: MinMaxFrame}
	want := handled()
	var stream []byte
	for _, v := range want {
		f := encode(v)
		stream = AppendFrame(stream, f.Kind, f.Flags, f.Body)
	}
	stream = AppendFrame(stream, KindBye, 0, AppendBye(nil, ""))
	large := Frame{Kind: KindFeedback, Body: make([]byte, MinMaxFrame)}
	sent := []Frame{encode(goldenValues()["predict several inputs"]), encode(goldenValues()["cancel all"]), large}

	var p peer
	got, end := meet(t, mine, &p, encode(hello), stream, func(c *Conn) {
		if c.Minor() != 0 || c.lz4 || c.comp != nil || c.limit != MinMaxFrame {
			t.Errorf("minor %d, compression %v, limit %d", c.Minor(), c.lz4, c.limit)
		}
		for _, f := range sent {
			if err := c.Send(f.Kind, f.Flags, f.Body); err != nil {
				t.Error(err)
			}
		}
		if err := c.Send(KindFeedback, 0, make([]byte, MinMaxFrame+1)); !errors.Is(err, ErrTooLarge) {
			t.Errorf("a frame above the older peer's limit: %v, want ErrTooLarge", err)
		}
	})
	if !reflect.DeepEqual(got, want) {
		t.Errorf("understood\n%+v, want\n%+v", got, want)
	}
	if said, ok := errors.AsType[*ByeError](end); !ok || said.Reason != "" {
		t.Errorf("Run ended with %v, want the BYE", end)
	}
	if !slices.EqualFunc(p.read, sent, func(a, b Frame) bool {
		return a.Kind == b.Kind && a.Flags == b.Flags && bytes.Equal(a.Body, b.Body)
	}) {
		t.Errorf("the older peer read %d frames other than those sent", len(p.read))
	}
}

// A kind that may not be skipped ends the connection, and the peer hears why.
func TestAKindThatMustBeUnderstoodEndsTheConnection(t *testing.T) {
	for _, kind := range []Kind{0, 11, 127} {
		var p peer
		_, end := meet(t, testHello, &p, encode(testHello), AppendFrame(nil, kind, 0, nil), func(*Conn) {})
		if _, ok := errors.AsType[*ProtocolError](end); !ok {
			t.Errorf("kind %d: Run ended with %v, want a *ProtocolError", kind, end)
		}
		if len(p.read) != 1 || p.read[0].Kind != KindBye {
			t.Errorf("kind %d: the peer read %+v, want a BYE", kind, p.read)
		}
	}
}

package rpc

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math/rand/v2"
	"testing"
	"testing/iotest"
)

// splitReader gives a stream in pieces of random sizes.
type splitReader struct {
	b   []byte
	rng *rand.Rand
}

func (s *splitReader) Read(p []byte) (int, error) {
	if len(s.b) == 0 {
		return 0, io.EOF
	}
	n := copy(p[:min(len(p), 1+s.rng.IntN(1<<s.rng.IntN(18)))], s.b)
	s.b = s.b[n:]
	return n, nil
}

// cutFrames is a reader written in the plainest way: what it makes of a whole
// stream is what reader must make of any pieces of it.
func cutFrames(stream []byte, limit int) (list []Frame, end error) {
	for {
		switch {
		case len(stream) == 0:
			return list, io.EOF
		case len(stream) < headerSize:
			return list, io.ErrUnexpectedEOF
		}
		size := uint64(binary.LittleEndian.Uint32(stream))
		if size > uint64(limit) {
			return list, &ProtocolError{}
		}
		if uint64(len(stream)) < headerSize+size {
			return list, io.ErrUnexpectedEOF
		}
		f := Frame{Kind: Kind(stream[4]), Flags: Flags(stream[5]), Body: stream[headerSize : headerSize+size]}
		if f.Flags&FlagCompressed != 0 {
			if f.Body, end = decompress(nil, f.Body, limit); end != nil {
				return list, end
			}
		}
		list = append(list, f)
		stream = stream[headerSize+size:]
	}
}

// checkReader reads a stream to its end and compares with cutFrames.
func checkReader(t *testing.T, src io.Reader, stream []byte, limit int) {
	t.Helper()
	want, wantErr := cutFrames(stream, limit)
	r := newReader(src, limit, true)
	for i := 0; ; i++ {
		f, err := r.next()
		if err != nil {
			if i != len(want) {
				t.Fatalf("%d frames, want %d: %v", i, len(want), err)
			}
			if _, bad := errors.AsType[*ProtocolError](wantErr); bad {
				if _, bad = errors.AsType[*ProtocolError](err); !bad {
					t.Fatalf("ended with %v, want a *ProtocolError", err)
				}
			} else if !errors.Is(err, wantErr) {
				t.Fatalf("ended with %v, want %v", err, wantErr)
			}
			return
		}
		if i >= len(want) || f.Kind != want[i].Kind || f.Flags != want[i].Flags || !bytes.Equal(f.Body, want[i].Body) {
			t.Fatalf("frame %d is not as it was sent", i)
		}
		_ = append(f.Body, 0xee) // must not reach the frames behind
	}
}

func TestFramesAreCutFromAnyPieces(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	var stream []byte
	var comp compressor
	for i := range 200 {
		body := make([]byte, rng.IntN(1<<rng.IntN(19)))
		for j := range body {
			body[j] = byte(i + j/64)
		}
		kind, flags := Kind(rng.IntN(256)), Flags(0)
		if small := comp.try(body); small != nil && i%2 == 0 {
			body, flags = small, FlagCompressed
		}
		stream = AppendFrame(stream, kind, flags, body)
	}
	checkReader(t, bytes.NewReader(stream), stream, MaxFrame)
	for range 5 {
		checkReader(t, &splitReader{b: stream, rng: rng}, stream, MaxFrame)
	}
	checkReader(t, iotest.DataErrReader(bytes.NewReader(stream)), stream, MaxFrame)
	checkReader(t, &splitReader{b: stream, rng: rng}, stream, 100_000) // until one is too large
	stream = stream[:len(stream)/2]
	checkReader(t, iotest.HalfReader(bytes.NewReader(stream)), stream, MaxFrame)
}

func TestTheBufferGrowsForALargeFrameAndShrinksAgain(t *testing.T) {
	const large = 3 << 20
	var stream []byte
	for range 2 {
		stream = AppendFrame(stream, KindReply, 0, make([]byte, large))
	}
	stream = AppendFrame(stream, KindDrain, 0, nil)
	r := newReader(bytes.NewReader(stream), large, false)
	for range 2 {
		if f, err := r.next(); err != nil || len(f.Body) != large {
			t.Fatalf("%d bytes, %v", len(f.Body), err)
		}
		if most := headerSize + large; len(r.buf) > most {
			t.Errorf("the buffer has %d bytes, and no frame more than %d", len(r.buf), most)
		}
	}
	if _, err := r.next(); err != nil {
		t.Fatal(err)
	}
	if _, err := r.next(); !errors.Is(err, io.EOF) {
		t.Fatalf("%v, want EOF", err)
	}
	if len(r.buf) > keepReading {
		t.Errorf("the buffer keeps %d bytes after the large frames", len(r.buf))
	}
}

// Whatever of the frames is taken, the others are as they were sent, and what was taken stays.
func TestTakenFramesLeaveTheOthersWhole(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	var stream []byte
	var sent [][]byte
	for range 400 {
		body := make([]byte, rng.IntN(1<<rng.IntN(20)))
		for i := range body {
			body[i] = byte(rng.Uint32())
		}
		sent = append(sent, body)
		stream = AppendFrame(stream, KindReply, 0, body)
	}
	for _, src := range []io.Reader{bytes.NewReader(stream), &splitReader{b: stream, rng: rng}} {
		r := newReader(src, MaxFrame, false)
		var taken []Frame
		var which []int
		for i, body := range sent {
			f, err := r.next()
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(f.Body, body) {
				t.Fatalf("frame %d is not as it was sent", i)
			}
			if rng.IntN(2) == 0 && f.Take() {
				taken, which = append(taken, f), append(which, i)
			}
		}
		for i, f := range taken {
			if !bytes.Equal(f.Body, sent[which[i]]) {
				t.Errorf("frame %d did not stay", which[i])
			}
		}
		if len(taken) < 10 {
			t.Errorf("%d frames were taken", len(taken))
		}
	}
}

func TestAnExpandedBodyIsGivenBack(t *testing.T) {
	var comp compressor
	stream := AppendFrame(nil, KindReply, FlagCompressed, comp.try(make([]byte, 8<<20)))
	stream = AppendFrame(stream, KindReply, FlagCompressed, comp.try(make([]byte, 4<<10)))
	r := newReader(bytes.NewReader(stream), MaxFrame, true)
	for _, want := range []int{8 << 20, 4 << 10} {
		if f, err := r.next(); err != nil || len(f.Body) != want {
			t.Fatalf("%d bytes, %v; want %d", len(f.Body), err, want)
		}
	}
	if cap(r.raw) > keepReading {
		t.Errorf("%d bytes are kept for expanding", cap(r.raw))
	}
}

func TestACompressedBodyIsRefusedUnlessAgreed(t *testing.T) {
	var comp compressor
	stream := AppendFrame(nil, KindReply, FlagCompressed, comp.try(make([]byte, 4<<10)))
	_, err := newReader(bytes.NewReader(stream), MaxFrame, false).next()
	if _, ok := errors.AsType[*ProtocolError](err); !ok {
		t.Errorf("%v, want a *ProtocolError", err)
	}
}

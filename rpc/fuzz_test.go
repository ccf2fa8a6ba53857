package rpc

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/topsail-serving/topsail/serving"
)

// addBodies adds the bodies of the golden frames of one kind.
func addBodies(f *testing.F, kind Kind) {
	for _, g := range readGolden(f) {
		if frame := g.frame(f); frame.Kind == kind {
			f.Add(bytes.Clone(frame.Body))
		}
	}
}

// fuzzKind feeds a decoder. What it refuses, it refuses with a *ProtocolError;
// what it takes can be encoded, and then decodes to what encodes to the same bytes.
func fuzzKind(f *testing.F, kind Kind) {
	addBodies(f, kind)
	f.Fuzz(func(t *testing.T, body []byte) {
		frame := Frame{Kind: kind, Body: body}
		if kind == KindReply {
			frame.Flags = FlagEnd
		}
		sent := bytes.Clone(body)
		v, err := decode(frame)
		if !bytes.Equal(body, sent) {
			t.Fatal("the decoder wrote into the body")
		}
		if err != nil {
			checkRefusal(t, frame, err)
			return
		}
		first := encode(v)
		again, err := decode(first)
		if err != nil {
			t.Fatalf("decode what was encoded, %x: %v", first.Body, err)
		}
		if second := encode(again); second.Flags != first.Flags || !bytes.Equal(second.Body, first.Body) {
			t.Fatalf("encoded as\n%x, and then as\n%x", first.Body, second.Body)
		}
	})
}

func FuzzHello(f *testing.F)    { fuzzKind(f, KindHello) }
func FuzzAnnounce(f *testing.F) { fuzzKind(f, KindAnnounce) }
func FuzzPredict(f *testing.F)  { fuzzKind(f, KindPredict) }
func FuzzReply(f *testing.F)    { fuzzKind(f, KindReply) }
func FuzzCancel(f *testing.F)   { fuzzKind(f, KindCancel) }
func FuzzBye(f *testing.F)      { fuzzKind(f, KindBye) }
func FuzzFeedback(f *testing.F) { fuzzKind(f, KindFeedback) }
func FuzzLoad(f *testing.F)     { fuzzKind(f, KindLoad) }
func FuzzUnload(f *testing.F)   { fuzzKind(f, KindUnload) }
func FuzzMetrics(f *testing.F)  { fuzzKind(f, KindMetrics) }

// A payload is built by one decoder and checked by another; they must agree.
func FuzzPayload(f *testing.F) {
	for _, g := range readGolden(f) {
		if p, ok := goldenValues()[g.name].(predict); ok {
			for _, in := range p.Inputs {
				f.Add(in.Payload)
			}
		}
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		checked := cursor{frame: "payload", b: body}
		taken := checked.skipPayload()
		values, err := ParsePayload(body)
		if sound := checked.err == nil && len(taken) == len(body); sound != (err == nil) {
			t.Fatalf("skipPayload takes %d of %d bytes (%v), ParsePayload %d values (%v)", len(taken), len(body), checked.err, len(values), err)
		}
		if err != nil {
			checkRefusal(t, Frame{Body: body}, err)
			return
		}
		for i := range values {
			_, _ = serving.AppendJSON(nil, values[i]) // may refuse, must not panic
		}
		again, err := ParsePayload(AppendPayload(nil, values...))
		if err != nil || !bytes.Equal(AppendPayload(nil, again...), AppendPayload(nil, values...)) {
			t.Fatalf("%+v became %+v (%v)", values, again, err)
		}
	})
}

func FuzzDecompress(f *testing.F) {
	for _, g := range readGolden(f) {
		if g.bytes[5]&byte(FlagCompressed) != 0 {
			f.Add(g.bytes[headerSize:])
		}
	}
	f.Add([]byte{0, 0, 0, 0, 0x1f, 0, 1, 0, 0xff})
	f.Fuzz(func(t *testing.T, body []byte) {
		const limit = 1 << 16
		raw, err := decompress(nil, body, limit)
		if err != nil {
			checkRefusal(t, Frame{Body: body}, err)
			return
		}
		if len(raw) > limit {
			t.Fatalf("%d bytes are above the limit", len(raw))
		}
		dirty, err := decompress(bytes.Repeat([]byte{0xee}, limit), body, limit)
		if err != nil || !bytes.Equal(dirty, raw) {
			t.Fatalf("what was in the buffer before shows: %v", err)
		}
		var comp compressor
		if small := comp.try(raw); small != nil {
			if back, err := decompress(nil, small, limit); err != nil || !bytes.Equal(back, raw) {
				t.Fatalf("%x does not survive being compressed: %v", raw, err)
			}
		}
	})
}

// However a stream arrives, the same frames come out of it.
func FuzzReader(f *testing.F) {
	var all []byte
	for i, g := range readGolden(f) {
		f.Add(g.bytes, uint64(i))
		all = append(all, g.bytes...)
	}
	f.Add(all, uint64(99))
	f.Fuzz(func(t *testing.T, stream []byte, seed uint64) {
		const limit = 1 << 17
		checkReader(t, bytes.NewReader(stream), stream, limit)
		checkReader(t, &splitReader{b: stream, rng: rand.New(rand.NewPCG(seed, 0))}, stream, limit)
	})
}

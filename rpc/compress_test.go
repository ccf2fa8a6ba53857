package rpc

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

// noise is data that does not compress.
func noise(n int) []byte {
	rng := rand.NewChaCha8([32]byte{5})
	b := make([]byte, n)
	_, _ = rng.Read(b) // never fails
	return b
}

func TestWhatIsCompressedExpandsToItself(t *testing.T) {
	var comp compressor
	rapid.Check(t, func(t *rapid.T) {
		body := noise(rapid.IntRange(0, 3000).Draw(t, "noise"))
		body = append(body, bytes.Repeat([]byte("abc"), rapid.IntRange(0, 3000).Draw(t, "repeats"))...)
		comp.rest = 0
		small := comp.try(body)
		if small == nil {
			return
		}
		if float64(len(small)) > float64(len(body))/compressPay {
			t.Fatalf("%d bytes for %d do not pay", len(small), len(body))
		}
		raw, err := decompress(bytes.Repeat([]byte{0xff}, len(body)), small, len(body))
		if err != nil || !bytes.Equal(raw, body) {
			t.Fatalf("%d bytes became %d, and %d again: %v", len(body), len(small), len(raw), err)
		}
	})
}

// The body that only just pays must be found, and the one beyond must not: the
// space that the compressor gets has no room for more.
func TestCompressionPaysFromItsRatioOn(t *testing.T) {
	var comp compressor
	paid, unpaid := 0, 0
	for repeats := range 600 {
		body := append(noise(3000), make([]byte, repeats)...)
		comp.rest = 0
		full := make([]byte, 2*len(body))
		n, err := comp.lz4.CompressBlock(body, full)
		if err != nil {
			t.Fatal(err)
		}
		pays := float64(4+n) <= float64(len(body))/compressPay
		if got := comp.try(body) != nil; got != pays {
			t.Fatalf("%d bytes that compress to %d: try gives a body: %v", len(body), 4+n, got)
		}
		if pays {
			paid++
		} else {
			unpaid++
		}
	}
	if paid < 100 || unpaid < 100 {
		t.Errorf("%d bodies paid and %d did not: the test is not at the border", paid, unpaid)
	}
}

func TestCompressionRestsAfterABodyThatDoesNotPay(t *testing.T) {
	var comp compressor
	good := make([]byte, compressMin)
	if comp.try(good) == nil {
		t.Fatal("zeros do not compress")
	}
	if comp.try(good[1:]) != nil {
		t.Errorf("a body below %d bytes is compressed", compressMin)
	}
	if comp.try(noise(compressMin)) != nil {
		t.Fatal("noise compresses")
	}
	for i := range compressRest {
		comp.try(good[1:]) // not counted
		if comp.try(good) != nil {
			t.Fatalf("body %d after the one that did not pay is compressed", i)
		}
	}
	if comp.try(good) == nil {
		t.Errorf("compression still rests after %d bodies", compressRest)
	}
}

func TestCompressionKeepsNoLargeBuffer(t *testing.T) {
	var comp compressor
	if comp.try(make([]byte, 8<<20)) == nil {
		t.Fatal("zeros do not compress")
	}
	if cap(comp.buf) > keepBuffer {
		t.Errorf("%d bytes are kept for compressing", cap(comp.buf))
	}
}

func TestABadCompressedBodyIsRefused(t *testing.T) {
	var comp compressor
	good := bytes.Clone(comp.try(make([]byte, 4<<10)))
	raw := func(n uint32) []byte {
		b := bytes.Clone(good)
		binary.LittleEndian.PutUint32(b, n)
		return b
	}
	for name, body := range map[string][]byte{
		"nothing":              {},
		"half a size":          {1, 0},
		"no block":             {1, 0, 0, 0},
		"one byte more":        raw(4<<10 + 1),
		"one byte less":        raw(4<<10 - 1),
		"empty raw":            raw(0),
		"above the limit":      raw(1<<16 + 1),
		"above 2 GiB":          raw(1<<31 + 4<<10),
		"a cut block":          good[:len(good)-1],
		"a block and a byte":   append(bytes.Clone(good), 0x10),
		"a match before start": {5, 0, 0, 0, 0x11, 'a', 9, 0, 0x10, 'b'},
		"a match at offset 0":  {10, 0, 0, 0, 0x11, 'a', 0, 0, 0x40, 'b', 'c', 'd', 'e'},
	} {
		got, err := decompress(nil, body, 1<<16)
		bad, ok := errors.AsType[*ProtocolError](err)
		if !ok || bad.Offset > len(body) {
			t.Errorf("%s: %d bytes, %v", name, len(got), err)
		}
	}
	if got, err := decompress(nil, []byte{0, 0, 0, 0}, 1<<16); err != nil || len(got) != 0 {
		t.Errorf("an empty body: %d bytes, %v", len(got), err)
	}
	if got, err := decompress(nil, good, 4<<10-1); err == nil {
		t.Errorf("a body above the limit gives %d bytes", len(got))
	}
	if got, err := decompress(nil, raw(4<<10), 4<<10); err != nil || len(got) != 4<<10 {
		t.Errorf("a body at the limit: %d bytes, %v", len(got), err)
	}
}

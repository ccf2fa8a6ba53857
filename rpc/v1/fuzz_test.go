package v1_test

import (
	"bytes"
	"testing"

	v1 "github.com/topsail-serving/topsail/rpc/v1"
)

// Whatever is decoded can be encoded and decoded again to the same inputs.
func FuzzDecodeBatch(f *testing.F) {
	for _, g := range golden {
		f.Add(frame(f, g.request))
	}
	f.Add(frame(f, "00 00000000"))
	f.Fuzz(func(t *testing.T, request []byte) {
		batch, err := v1.DecodeBatch(bytes.NewReader(request))
		if err != nil || batch.Format == v1.Shutdown {
			return
		}
		again, err := v1.AppendBatch(nil, batch.Format.InputType(), 0, batch.Inputs)
		if err != nil {
			t.Fatalf("encode what was decoded: %v", err)
		}
		second, err := v1.DecodeBatch(bytes.NewReader(again))
		if err != nil {
			t.Fatalf("decode what was encoded: %v", err)
		}
		if !equal(second.Inputs, batch.Inputs) {
			t.Fatalf("got %x, want %x", second.Inputs, batch.Inputs)
		}
	})
}

func FuzzDecodeReply(f *testing.F) {
	f.Add(frame(f, "000000000000f83f 00000000000000c0"), 2)
	f.Add([]byte{}, 0)
	f.Add([]byte("x"), -1)
	f.Fuzz(func(t *testing.T, reply []byte, n int) {
		outputs, err := v1.DecodeReply(reply, n)
		if err != nil {
			return
		}
		if again := v1.AppendReply(nil, outputs); !bytes.Equal(again, reply) {
			t.Fatalf("got %x, want %x", again, reply)
		}
	})
}

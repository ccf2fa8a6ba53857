package v1_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"pgregory.net/rapid"

	v1 "github.com/topsail-serving/topsail/rpc/v1"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/test/require"
)

var allTypes = []serving.InputType{serving.Bytes, serving.Ints, serving.Floats, serving.Doubles, serving.Strings}

func equal(a, b [][]byte) bool { return slices.EqualFunc(a, b, bytes.Equal) }

// widened is what inputs of Floats are on the wire.
func widened(inputs [][]byte) [][]byte {
	var wide [][]byte
	for _, in := range inputs {
		var w []byte
		for i := 0; i < len(in); i += 4 {
			x := math.Float32frombits(binary.LittleEndian.Uint32(in[i:]))
			w = binary.LittleEndian.AppendUint64(w, math.Float64bits(float64(x)))
		}
		wide = append(wide, w)
	}
	return wide
}

func elementSize(t serving.InputType) int { return max(1, t.DType().Size()) }

func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		kind := rapid.SampledFrom(allTypes).Draw(t, "type")
		fixed := rapid.Bool().Draw(t, "fixed")
		length := rapid.IntRange(0, 40).Draw(t, "length")
		inputs := make([][]byte, rapid.IntRange(1, 20).Draw(t, "n"))
		for i := range inputs {
			size := length
			if !fixed {
				size = rapid.IntRange(0, 40).Draw(t, "size")
			}
			size *= elementSize(kind)
			inputs[i] = rapid.SliceOfN(rapid.Byte(), size, size).Draw(t, "input")
		}
		declared := 0
		if fixed {
			declared = length
		}

		request, err := v1.AppendBatch(nil, kind, declared, inputs)
		require.NoError(t, err)
		trailing := []byte("the next request")
		r := bytes.NewReader(append(request, trailing...))
		batch, err := v1.DecodeBatch(iotest.OneByteReader(r))
		require.NoError(t, err)
		if r.Len() != len(trailing) {
			t.Fatalf("decoding left %d bytes, want %d", r.Len(), len(trailing))
		}
		if fixed && kind != serving.Strings && batch.Format > v1.FixedBytes {
			t.Fatalf("inputs of one length went out in format %d", batch.Format)
		}
		want := inputs
		if kind == serving.Floats {
			want = widened(inputs)
		}
		if !equal(batch.Inputs, want) {
			t.Fatalf("got %x, want %x", batch.Inputs, want)
		}
	})
}

func TestTextRoundTrip(t *testing.T) {
	noise := make([]byte, 100_000)
	for i := range noise {
		noise[i] = byte(rand.Uint32())
	}
	for name, inputs := range map[string][][]byte{
		"compresses": {bytes.Repeat([]byte("sail "), 40_000), []byte("x")},
		"does not":   {noise, nil, noise[:77]},
		"one empty":  {nil},
	} {
		request, err := v1.AppendBatch(nil, serving.Strings, 0, inputs)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		batch, err := v1.DecodeBatch(bytes.NewReader(request))
		if err != nil || !equal(batch.Inputs, inputs) {
			t.Errorf("%s: decoded something else, error %v", name, err)
		}
	}
}

func TestReplyRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		outputs := rapid.SliceOf(rapid.Float64()).Draw(t, "outputs")
		got, err := v1.DecodeReply(v1.AppendReply(nil, outputs), len(outputs))
		if err != nil || !slices.Equal(got, outputs) {
			t.Fatalf("got %v, %v", got, err)
		}
	})
}

func TestAppendBatchRefuses(t *testing.T) {
	shared := make([]byte, 1<<20)
	for _, c := range []struct {
		name   string
		t      serving.InputType
		length int
		inputs [][]byte
		says   string
	}{
		{"no input", serving.Bytes, 0, nil, "1 to 65536 inputs, not 0"},
		{"too many inputs", serving.Bytes, 0, make([][]byte, v1.MaxBatch+1), "not 65537"},
		{"unknown type", 0, 0, [][]byte{nil}, "no format"},
		{"half an int", serving.Ints, 0, [][]byte{make([]byte, 4), make([]byte, 6)}, "input 1 has 6 bytes"},
		{"wrong length", serving.Doubles, 2, [][]byte{make([]byte, 16), make([]byte, 24)}, "input 1 has 3 elements, and the model takes 2"},
		{"all of another length", serving.Bytes, 2, [][]byte{{1}, {2}}, "input 0 has 1 elements"},
		{"too large", serving.Bytes, 0, slices.Repeat([][]byte{shared}, 2100), "use smaller batches"},
		{"too large once widened", serving.Floats, 0, slices.Repeat([][]byte{shared}, 1050), "use smaller batches"},
		{"too much text", serving.Strings, 0, slices.Repeat([][]byte{shared}, 2100), "use smaller batches"},
	} {
		b, err := v1.AppendBatch([]byte("before"), c.t, c.length, c.inputs)
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: error %v, want one that says %q", c.name, err, c.says)
		}
		if string(b) != "before" {
			t.Errorf("%s: left %d bytes in the buffer", c.name, len(b))
		}
	}
}

func TestDecodeBatchRefuses(t *testing.T) {
	for _, c := range []struct {
		name    string
		request string
		field   string
		offset  int
	}{
		{"unknown format", "08 01000000", "format", 0},
		{"shutdown with inputs", "00 01000000", "number of inputs", 1},
		{"no inputs", "01 00000000 00000000", "number of inputs", 1},
		{"too many inputs", "03 01000100 00000000", "number of inputs", 1},
		{"cut in the count", "01 0100", "header", 3},
		{"cut in the length", "01 01000000 0000", "header", 7},
		{"nothing after the count", "01 01000000", "header", 5},
		{"huge vectors", "02 00000100 ffffffff", "vector length", 5},
		{"huge content", "06 01000000 ffffffff", "content bytes", 5},
		{"cut in the values", "03 02000000 02000000 616263", "content", 12},
		{"large claim, no bytes", "03 01000000 0000007e", "content", 9},
		{"cut content", "06 01000000 05000000 01000000", "content", 13},
		{"content ends in a length", "06 02000000 07000000 01000000 61 0000", "length", 14},
		{"length beyond the content", "06 01000000 05000000 02000000 61", "elements", 13},
		{"length overflows", "05 01000000 05000000 ffffffff 61", "elements", 13},
		{"content left over", "06 01000000 06000000 01000000 61 62", "content bytes", 14},
		{"text: lengths cut", "07 02000000 04000000 01000000", "lengths", 9},
		{"text: negative length", "07 02000000 09000000 00000000 ffffffff 00", "length", 13},
		{"text: lengths overflow", "07 02000000 09000000 ffffff7d ffffff7d 00", "length", 13},
		{"text: more than a block can hold", "07 01000000 06000000 0000ff00 00 00", "compressed text", 13},
		{"text: longer than said", "07 01000000 07000000 01000000 20 61 62", "compressed text", 13},
		{"text: shorter than said", "07 01000000 07000000 03000000 20 61 62", "compressed text", 13},
		{"text: no block", "07 01000000 04000000 03000000", "compressed text", 13},
		{"text: no LZ4", "07 01000000 08000000 05000000 04 61 0500", "compressed text", 13},
	} {
		_, err := v1.DecodeBatch(bytes.NewReader(frame(t, c.request)))
		bad, ok := errors.AsType[*v1.ProtocolError](err)
		if !ok {
			t.Errorf("%s: error %v, want a *ProtocolError", c.name, err)
			continue
		}
		if bad.Field != c.field || bad.Offset != c.offset {
			t.Errorf("%s: %q at %d, want %q at %d: %v", c.name, bad.Field, bad.Offset, c.field, c.offset, err)
		}
	}
}

func TestProtocolErrorSaysWhatIsWrong(t *testing.T) {
	_, err := v1.DecodeBatch(bytes.NewReader(frame(t, "07 02000000 09000000 00000000 ffffffff 00")))
	if want := "rpc/v1: bad request: length at offset 13: -1 is out of range"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestDecodeBatchEnds(t *testing.T) {
	if _, err := v1.DecodeBatch(strings.NewReader("")); err != io.EOF {
		t.Errorf("before a request: %v, want io.EOF", err)
	}
	for _, g := range golden {
		request := frame(t, g.request)
		for cut := 1; cut < len(request); cut++ {
			_, err := v1.DecodeBatch(bytes.NewReader(request[:cut]))
			if !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Errorf("%s cut at %d: %v, want io.ErrUnexpectedEOF", g.name, cut, err)
			}
		}
	}
}

// A small request that claims two gigabytes gets no memory for them.
func TestDecodeBatchAllocatesWhatCame(t *testing.T) {
	for _, request := range []string{
		"03 01000000 0000007e 61",
		"06 01000000 0000007e 61",
		"07 01000000 05000000 0000007e 00",
	} {
		b := frame(t, request)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if _, err := v1.DecodeBatch(bytes.NewReader(b)); err == nil {
			t.Errorf("%s was decoded", request)
		}
		runtime.ReadMemStats(&after)
		if got := after.TotalAlloc - before.TotalAlloc; got > 1<<20 {
			t.Errorf("%s made the decoder allocate %d bytes", request, got)
		}
	}
}

func TestDecodeReplyRefuses(t *testing.T) {
	for _, size := range []int{0, 15, 17, 24} {
		if _, err := v1.DecodeReply(make([]byte, size), 2); err == nil {
			t.Errorf("%d bytes passed for the reply to 2 inputs", size)
		}
	}
}

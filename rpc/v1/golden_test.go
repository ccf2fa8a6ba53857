package v1_test

import (
	"bytes"
	"encoding/hex"
	"strings"
	"testing"

	v1 "github.com/topsail-serving/topsail/rpc/v1"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/test/require"
)

// frame reads hex written with spaces between the fields.
func frame(t testing.TB, text string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(text, " ", ""))
	require.NoError(t, err)
	return b
}

func frames(t testing.TB, texts ...string) [][]byte {
	t.Helper()
	list := make([][]byte, len(texts))
	for i, text := range texts {
		list[i] = frame(t, text)
	}
	return list
}

// golden holds requests written by hand from the description of the protocol.
var golden = []struct {
	name    string
	t       serving.InputType
	length  int
	inputs  []string // elements, in hex
	format  v1.Format
	request string
}{
	{"ints", serving.Ints, 2, []string{"01000000 feffffff", "03000000 04000000"}, v1.FixedInts,
		"01 02000000 02000000 01000000 feffffff 03000000 04000000"},
	{"doubles", serving.Doubles, 0, []string{"000000000000f83f", "00000000000000c0"}, v1.FixedDoubles,
		"02 02000000 01000000 000000000000f83f 00000000000000c0"},
	{"floats as doubles", serving.Floats, 0, []string{"0000003f 000020c0"}, v1.FixedDoubles,
		"02 01000000 02000000 000000000000e03f 00000000000004c0"},
	{"bytes", serving.Bytes, 0, []string{"6162", "6364"}, v1.FixedBytes,
		"03 02000000 02000000 6162 6364"},
	{"empty bytes", serving.Bytes, 0, []string{"", ""}, v1.FixedBytes,
		"03 02000000 00000000"},
	{"variable ints", serving.Ints, 0, []string{"01000000", "02000000 03000000"}, v1.VariableInts,
		"04 02000000 14000000 01000000 01000000 02000000 02000000 03000000"},
	{"variable doubles", serving.Doubles, 0, []string{"000000000000f83f", ""}, v1.VariableDoubles,
		"05 02000000 10000000 01000000 000000000000f83f 00000000"},
	{"variable floats as doubles", serving.Floats, 0, []string{"", "0000003f"}, v1.VariableDoubles,
		"05 02000000 10000000 00000000 01000000 000000000000e03f"},
	{"variable bytes", serving.Bytes, 0, []string{"61", "626364"}, v1.VariableBytes,
		"06 02000000 0c000000 01000000 61 03000000 626364"},
	// A token for 6 literals, and the 6 literals.
	{"strings that do not compress", serving.Strings, 0, []string{"6869", "796f2121"}, v1.Strings,
		"07 02000000 0f000000 02000000 04000000 60 68 69 79 6f 21 21"},
	// A token for no literals.
	{"strings without text", serving.Strings, 0, []string{"", ""}, v1.Strings,
		"07 02000000 09000000 00000000 00000000 00"},
}

func TestGoldenRequests(t *testing.T) {
	for _, g := range golden {
		t.Run(g.name, func(t *testing.T) {
			inputs, want := frames(t, g.inputs...), frame(t, g.request)
			got, err := v1.AppendBatch([]byte("before"), g.t, g.length, inputs)
			require.NoError(t, err)
			if !bytes.Equal(got, append([]byte("before"), want...)) {
				t.Errorf("encoded\n%x\nwant\n%x", got[len("before"):], want)
			}
			batch, err := v1.DecodeBatch(bytes.NewReader(want))
			require.NoError(t, err)
			if batch.Format != g.format {
				t.Errorf("decoded format %d, want %d", batch.Format, g.format)
			}
			if g.t == serving.Floats {
				inputs = widened(inputs)
			}
			if !equal(batch.Inputs, inputs) {
				t.Errorf("decoded %x, want %x", batch.Inputs, inputs)
			}
		})
	}
}

// A block that a compressor other than ours could write: one literal "a", a match
// of 14 at distance 1, and five last literals.
func TestGoldenCompressedText(t *testing.T) {
	batch, err := v1.DecodeBatch(bytes.NewReader(frame(t,
		"07 02000000 12000000 13000000 01000000 1a 61 0100 50 61 61 61 61 62")))
	require.NoError(t, err)
	if want := [][]byte{bytes.Repeat([]byte("a"), 19), []byte("b")}; !equal(batch.Inputs, want) {
		t.Errorf("decoded %q, want %q", batch.Inputs, want)
	}
}

func TestGoldenShutdown(t *testing.T) {
	batch, err := v1.DecodeBatch(bytes.NewReader(frame(t, "00 00000000")))
	if err != nil || batch.Format != v1.Shutdown || batch.Inputs != nil {
		t.Errorf("decoded %+v, %v", batch, err)
	}
}

func TestGoldenReply(t *testing.T) {
	want := frame(t, "000000000000f83f 00000000000000c0")
	if got := v1.AppendReply(nil, []float64{1.5, -2}); !bytes.Equal(got, want) {
		t.Errorf("encoded %x, want %x", got, want)
	}
	outputs, err := v1.DecodeReply(want, 2)
	if err != nil || len(outputs) != 2 || outputs[0] != 1.5 || outputs[1] != -2 {
		t.Errorf("decoded %v, %v", outputs, err)
	}
}

package serving_test

import (
	"bytes"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/test/require"
)

func TestNewInput(t *testing.T) {
	vector := serving.Value{DType: serving.Int64, Shape: []int{2, 1}, Data: []byte{1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0}}
	for name, c := range map[string]struct {
		to   serving.InputType
		from serving.Value
		want string // the data, or a part of the error behind "!"
	}{
		"text to strings":              {serving.Strings, serving.Text("a b"), "a b"},
		"numbers to strings":           {serving.Strings, vector, "[[1],[2]]"},
		"a number to strings":          {serving.Strings, serving.Number(1.5), "1.5"},
		"numbers to bytes":             {serving.Bytes, vector, "\x01\x02"},
		"numbers to ints":              {serving.Ints, vector, "\x01\x00\x00\x00\x02\x00\x00\x00"},
		"text to ints":                 {serving.Ints, serving.Text(" [1, 2]"), "\x01\x00\x00\x00\x02\x00\x00\x00"},
		"one number as text to ints":   {serving.Ints, serving.Text("3"), "\x03\x00\x00\x00"},
		"text to bytes":                {serving.Bytes, serving.Text("[1]"), "[1]"},
		"words to doubles":             {serving.Doubles, serving.Text("one"), "!neither a number"},
		"a fraction to ints":           {serving.Ints, serving.Number(0.5), "!0.5"},
		"a large number to ints":       {serving.Ints, serving.Number(1 << 31), "!2.147483648e+09"},
		"a large number to bytes":      {serving.Bytes, serving.Number(256), "!256"},
		"a large number to floats":     {serving.Floats, serving.Number(math.MaxFloat64), "!e+308"},
		"what only two ends know":      {serving.Doubles, serving.Value{DType: serving.Opaque, Data: []byte("x")}, "!neither a number"},
		"what only two ends know, too": {serving.Strings, serving.Value{DType: serving.Opaque, Data: []byte("x")}, "!opaque"},
	} {
		in, err := serving.NewInput(c.to, c.from)
		why, fails := strings.CutPrefix(c.want, "!")
		switch {
		case fails && (err == nil || !strings.Contains(err.Error(), why)):
			t.Errorf("%s: %q, %v; want an error with %q", name, in.Data, err, why)
		case !fails && (err != nil || string(in.Data) != c.want || in.Type != c.to):
			t.Errorf("%s: %q, %v; want %q", name, in.Data, err, c.want)
		}
	}
}

// Bytes fit into every type of numbers, and come back from it.
func TestNewInputKeepsNumbers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		data := rapid.SliceOf(rapid.Byte()).Draw(t, "data")
		through := rapid.SampledFrom([]serving.InputType{serving.Ints, serving.Floats, serving.Doubles}).Draw(t, "type")
		in := serving.Input{Type: serving.Bytes, Data: data}
		there, err := serving.NewInput(through, in.Value())
		require.NoError(t, err)
		back, err := serving.NewInput(serving.Bytes, there.Value())
		if err != nil || !bytes.Equal(back.Data, data) {
			t.Fatalf("%v came back as %v, %v", data, back.Data, err)
		}
	})
}

func TestJoinInput(t *testing.T) {
	values := []serving.Value{serving.Text("[1,2]"), serving.Number(3)}
	names := []string{"left", "right"}
	if in, err := serving.JoinInput(serving.Bytes, names, values[1:]); err != nil || string(in.Data) != "\x03" {
		t.Errorf("one: %q, %v", in.Data, err)
	}
	if in, err := serving.JoinInput(serving.Ints, names, values); err != nil || string(in.Data) != "\x01\x00\x00\x00\x02\x00\x00\x00\x03\x00\x00\x00" {
		t.Errorf("numbers: %q, %v", in.Data, err)
	}
	if in, err := serving.JoinInput(serving.Strings, names, values); err != nil || string(in.Data) != `{"left":[1,2],"right":3.0}` {
		t.Errorf("strings: %s, %v", in.Data, err)
	}
	if _, err := serving.JoinInput(serving.Doubles, names, []serving.Value{serving.Number(1), serving.Text("x")}); err == nil || !strings.Contains(err.Error(), "from right") {
		t.Errorf("words: %v", err)
	}
}

package selection

import (
	"encoding/binary"
	"encoding/json"
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/test/require"
)

func output(t testing.TB, v serving.Value) *serving.Output {
	t.Helper()
	o, err := serving.NewOutput(v)
	require.NoError(t, err)
	return o
}

// said is an output as JSON, as clients and records have it.
func said(t testing.TB, text string) *serving.Output {
	t.Helper()
	return output(t, serving.Value{DType: serving.JSON, Data: []byte(text)})
}

func floats(xs ...float64) serving.Value {
	v := serving.Value{DType: serving.Float64, Shape: []int{len(xs)}}
	for _, x := range xs {
		v.Data = binary.LittleEndian.AppendUint64(v.Data, math.Float64bits(x))
	}
	return v
}

func ints(xs ...int32) serving.Value {
	v := serving.Value{DType: serving.Int32, Shape: []int{len(xs)}}
	for _, x := range xs {
		v.Data = binary.LittleEndian.AppendUint32(v.Data, uint32(x))
	}
	return v
}

func TestSame(t *testing.T) {
	one := output(t, serving.Number(1))
	matrix := floats(1, 2, 3, 4)
	matrix.Shape = []int{2, 2}
	tests := []struct {
		a, b *serving.Output
		want bool
	}{
		{one, said(t, "1"), true},
		{one, said(t, "1e0"), true},
		{one, said(t, "2"), false},
		{one, said(t, `"1"`), false},
		{one, said(t, "[1]"), false},
		{one, said(t, "null"), false},
		{said(t, "-0"), said(t, "0.0"), true},
		{said(t, "[1,2]"), said(t, "[1.0,2.0]"), true},
		{output(t, floats(1, 2)), said(t, "[1,2]"), true},
		{output(t, floats(3)), said(t, "[3]"), true},
		{output(t, floats(1, 2)), output(t, ints(1, 2)), true},
		{output(t, floats(1, 2)), output(t, ints(1, 3)), false},
		{output(t, floats(1, 2)), output(t, floats(1, 2, 3)), false},
		{output(t, floats(1, 2, 3, 4)), output(t, matrix), false},
		{output(t, matrix), said(t, "[[1,2],[3,4]]"), true},
		{output(t, floats(0)), output(t, floats(math.Copysign(0, -1))), true},
		{output(t, serving.Value{DType: serving.Bool, Shape: []int{2}, Data: []byte{1, 0}}), output(t, ints(1, 0)), false},
		{said(t, `"<b>"`), said(t, `"\u003cb\u003e"`), true},
		{said(t, `"<b>"`), said(t, `"<i>"`), false},
		{said(t, `{"a":1,"b":[2]}`), said(t, `{"b":[2.0],"a":1}`), true},
		{said(t, `{"a":1}`), said(t, `{"a":null}`), false},
		{said(t, "true"), said(t, "false"), false},
		{said(t, "true"), said(t, "[]"), false},
		{said(t, "9007199254740993"), said(t, "9007199254740992"), true}, // as every JSON reader in between sees it
	}
	for _, test := range tests {
		if Same(test.a, test.b) != test.want || Same(test.b, test.a) != test.want {
			t.Errorf("%s and %s: want %v", test.a.JSON, test.b.JSON, test.want)
		}
	}
}

// TestSameIsEqualityOfValues compares with what encoding/json makes of the texts.
func TestSameIsEqualityOfValues(t *testing.T) {
	numbers := rapid.SliceOfN(rapid.Float64Range(-2, 2), 0, 3)
	rapid.Check(t, func(t *rapid.T) {
		a, b := numbers.Draw(t, "a"), numbers.Draw(t, "b")
		if rapid.Bool().Draw(t, "equal") {
			b = a
		}
		text, err := json.Marshal(b)
		require.NoError(t, err)
		left, _ := serving.NewOutput(floats(a...))
		right, _ := serving.NewOutput(serving.Value{DType: serving.JSON, Data: text})
		want := len(a) == len(b)
		for i := range min(len(a), len(b)) {
			want = want && a[i] == b[i]
		}
		if b == nil {
			want = false // which is null
		}
		if got := Same(left, right); got != want {
			t.Errorf("%s and %s: %v, want %v", left.JSON, right.JSON, got, want)
		}
	})
}

func TestNumberAndVector(t *testing.T) {
	tests := []struct {
		o      *serving.Output
		number bool
		vector int // its length; -1: none
	}{
		{output(t, serving.Number(-1.5)), true, 1},
		{said(t, "-1.5"), true, 1},
		{said(t, `"-1.5"`), false, -1},
		{said(t, "[1,2,3]"), false, 3},
		{said(t, "[]"), false, 0},
		{said(t, "[[1]]"), false, -1},
		{said(t, "[null]"), false, -1},
		{said(t, "null"), false, -1},
		{said(t, "true"), false, -1},
		{said(t, "{}"), false, -1},
		{output(t, ints(1, 2)), false, 2},
		{output(t, serving.Text("cat")), false, -1},
		{&serving.Output{}, false, -1},
	}
	for _, test := range tests {
		if _, ok := Number(test.o); ok != test.number {
			t.Errorf("%s is a number: %v", test.o.JSON, ok)
		}
		v, ok := Vector(nil, test.o)
		if ok != (test.vector >= 0) || ok && len(v) != test.vector {
			t.Errorf("%s is the vector %v, %v", test.o.JSON, v, ok)
		}
	}
}

func TestLoss(t *testing.T) {
	zeroOne := LossOf(&serving.PolicySpec{})
	strict := LossOf(&serving.PolicySpec{Loss: serving.LossZeroOne})
	absolute := LossOf(&serving.PolicySpec{Loss: serving.LossAbsolute, Scale: 10})
	squared := LossOf(&serving.PolicySpec{Loss: serving.LossSquared, Scale: 2})
	tests := []struct {
		loss     Loss
		out      string
		label    string
		want     float64
		mismatch bool
	}{
		{zeroOne, `"cat"`, `"cat"`, 0, false},
		{zeroOne, `"cat"`, `"dog"`, 1, false},
		{zeroOne, "3.0", "3", 0, false},
		{zeroOne, "1", `"1"`, 0, false}, // of a model that says the text 1
		{zeroOne, "true", `"true"`, 0, false},
		{zeroOne, `"02139"`, `"02139"`, 0, false},
		{zeroOne, `0.97`, `true`, 0.03, false}, {zeroOne, `0.97`, `"1"`, 0.03, false}, {zeroOne, `1`, `true`, 0, false},
		{zeroOne, `true`, `1`, 0, false}, {zeroOne, `false`, `1`, 1, false}, {zeroOne, `2139`, `"02139"`, 1, false}, {strict, `0.97`, `true`, 1, false},
		{zeroOne, `["a"]`, `"[\"a\"]"`, 0, false},
		{zeroOne, "1", `"0"`, 1, false},
		{zeroOne, "1", `"one"`, 1, false},
		{zeroOne, "[1,2]", "[1.0,2.0]", 0, false},
		{zeroOne, "3", "5", 1, false},
		{zeroOne, "0.9", "1", 0.1, false}, // a probability, and whether it was so
		{zeroOne, "0.25", "0", 0.25, false},
		{zeroOne, "34.5", "30", 1, false},
		{zeroOne, "0.5", "0.5", 0, false},
		{strict, "0.9", "1", 1, false},
		{zeroOne, "[0.1,0.9]", "1", 0, true}, // scores, and a class
		{zeroOne, "[1,2]", "1", 1, false},
		{zeroOne, "[0.1,0.9]", "[0,1]", 1, false},
		{absolute, "3", "5", 0.2, false},
		{absolute, "3", "500", 1, false},
		{absolute, "[1,2]", "[2,5]", 0.2, false},
		{absolute, "1e308", "-1e308", 1, false},
		{squared, "1", "2", 0.25, false},
		{squared, "[1,9]", "[2,2]", 0.625, false},
		{absolute, "3", "[5]", 0.2, false},
		{absolute, "3", `"cat"`, 0, true},
		{absolute, `"cat"`, "3", 0, true},
		{absolute, "3", "[3,4]", 0, true},
		{absolute, "[3]", "[3,4]", 0, true},
		{absolute, "[]", "[]", 0, true},
	}
	for _, test := range tests {
		got, err := test.loss.Of(said(t, test.out), said(t, test.label))
		if (err != nil) != test.mismatch || math.Abs(got-test.want) > 1e-12 {
			t.Errorf("%s for %s: %v, %v, want %v", test.out, test.label, got, err, test.want)
		}
	}
}

// A loss is always one, whatever numbers an output carries.
func TestLossOfAnyNumbers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := LossOf(&serving.PolicySpec{
			Loss:  rapid.SampledFrom([]string{serving.LossZeroOne, serving.LossAbsolute, serving.LossSquared}).Draw(t, "loss"),
			Scale: rapid.Float64Range(0, math.MaxFloat64).Draw(t, "scale"),
		})
		out := &serving.Output{Value: serving.Number(rapid.Float64().Draw(t, "out"))}
		label := &serving.Output{Value: serving.Number(rapid.Float64().Draw(t, "label"))}
		if got, err := l.Of(out, label); err != nil || !(got >= 0 && got <= 1) {
			t.Errorf("%v, %v", got, err)
		}
	})
}

func BenchmarkSame(b *testing.B) {
	pairs := map[string][2]*serving.Output{
		"equal labels":     {said(b, `"cat"`), said(b, `"cat"`)},
		"different labels": {said(b, `"cat"`), said(b, `"dog"`)},
		"numbers":          {output(b, serving.Number(1)), said(b, "1")},
		"vectors":          {output(b, floats(1, 2, 3, 4)), output(b, floats(1, 2, 3, 5))},
		"texts of vectors": {said(b, "[1,2,3,4]"), said(b, "[1.0,2.0,3.0,4.0]")},
	}
	for name, pair := range pairs {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				Same(pair[0], pair[1])
			}
		})
	}
}

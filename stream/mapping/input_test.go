package mapping

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	predictapi "github.com/topsail-serving/topsail/gateway/codec"
	"github.com/topsail-serving/topsail/rpc"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/test/require"
)

func TestInputs(t *testing.T) {
	le := func(xs ...float64) string {
		var b []byte
		for _, x := range xs {
			b, _ = appendNumber(b, x, serving.Float64)
		}
		return string(b)
	}
	for i, one := range []struct {
		value any
		t     serving.InputType
		want  string // of the data
		wrong string
	}{
		{[]any{1.5, int64(2), float32(0.5), true, json.Number("1e1"), big.NewRat(1, 4)}, serving.Doubles, le(1.5, 2, 0.5, 1, 10, 0.25), ""},
		{json.Number("7"), serving.Doubles, le(7), ""},
		{[]byte(le(3, 4)), serving.Doubles, le(3, 4), ""},
		{[]any{json.Number("-1"), false, 7.0, uint32(3)}, serving.Ints, "\xff\xff\xff\xff\x00\x00\x00\x00\x07\x00\x00\x00\x03\x00\x00\x00", ""},
		{math.NaN(), serving.Doubles, le(math.NaN()), ""},
		{[]any{json.Number("1.5")}, serving.Ints, "", "element 0: it must be a whole number"},
		{[]any{int64(1) << 40}, serving.Ints, "", "that int32 holds"},
		{[]any{json.Number("1e40")}, serving.Floats, "", "more than float32 holds"},
		{[]any{1e40}, serving.Floats, "", "more than float32 holds"},
		{[]any{json.Number("1e999")}, serving.Doubles, "", "more than float64 holds"},
		{[]any{"1"}, serving.Doubles, "", `element 0: it must be a number, not the text "1"`},
		{[]any{nil}, serving.Doubles, "", "element 0: it must be a number, not null"},
		{[]any{}, serving.Doubles, "", "at least one number"},
		{[]byte("abc"), serving.Doubles, "", "it has 3 bytes"},
		{map[string]any{}, serving.Doubles, "", "a list of numbers, not an object"},

		{"text", serving.Strings, "text", ""}, {[]byte("text"), serving.Strings, "text", ""}, {"", serving.Strings, "", ""},
		{map[string]any{"b": json.Number("1.0"), "a": "<x>"}, serving.Strings, `{"a":"<x>","b":1.0}`, ""},
		{[]byte{0xff}, serving.Strings, "", "not UTF-8"}, {nil, serving.Strings, "", "not null"},

		{[]byte{0, 255}, serving.Bytes, "\x00\xff", ""}, {"aGk=", serving.Bytes, "hi", ""}, {"aGk", serving.Bytes, "hi", ""},
		{"h!", serving.Bytes, "", "not base64"}, {"", serving.Bytes, "", "at least one byte"}, {json.Number("1"), serving.Bytes, "", "must be bytes"},

		{map[string]any{"messages": []any{}}, serving.Chat, `{"messages":[]}`, ""}, {"hi", serving.Chat, "", "must be an object"},
	} {
		in, err := inputOf(one.value, one.t, nil)
		if one.wrong != "" {
			if err == nil || !strings.Contains(err.Error(), one.wrong) {
				t.Errorf("%d: %v as %v: %v, want %s", i, one.value, one.t, err, one.wrong)
			}
			continue
		}
		if err != nil || string(in.Data) != one.want || in.Type != one.t {
			t.Errorf("%d: %v as %v is %q, %v, want %q", i, one.value, one.t, in.Data, err, one.want)
		}
	}
}

// TestTensorsAreThoseOfThePredictAPI: what the API makes of inputs is what we make of them.
func TestTensorsAreThoseOfThePredictAPI(t *testing.T) {
	dtypes := []serving.DType{
		serving.Bool, serving.Int8, serving.Int16, serving.Int32, serving.Int64, serving.Uint8, serving.Uint16, serving.Uint32, serving.Uint64,
		serving.Float16, serving.BFloat16, serving.Float32, serving.Float64, serving.String, serving.Blob, serving.JSON,
	}
	rapid.Check(t, func(t *rapid.T) {
		var inputs []serving.Tensor
		members := map[string]any{}
		for i := range rapid.IntRange(1, 3).Draw(t, "tensors") {
			dtype := rapid.SampledFrom(dtypes).Draw(t, "dtype")
			one := serving.Tensor{Name: fmt.Sprintf("t%d", i), Type: serving.ElementType(dtype)}
			var lengths []int
			if dtype != serving.JSON {
				lengths = rapid.SliceOfN(rapid.IntRange(1, 3), 0, 2).Draw(t, "shape")
			}
			for _, n := range lengths {
				one.Shape = append(one.Shape, rapid.SampledFrom([]int{-1, n}).Draw(t, "dimension"))
			}
			inputs = append(inputs, one)
			members[one.Name] = nested(t, dtype, lengths)
		}
		text, err := json.Marshal(map[string]any{"inputs": members})
		require.NoError(t, err)
		app := &serving.App{Name: "a", InputType: serving.Tensors, Signature: &serving.Signature{Inputs: inputs}}
		request, theirs := predictapi.DecodePredict(text, app, 1)
		tree, err := ParseJSON(text)
		require.NoError(t, err)
		in, ours := Tensors(tree.(map[string]any)["inputs"], inputs)
		if (theirs == nil) != (ours == nil) {
			t.Fatalf("%s: the API says %v, and we %v", text, theirs, ours)
		}
		if ours == nil && !bytes.Equal(in.Data, request.Input.Data) {
			t.Fatalf("%s is %x to the API, and %x to us", text, request.Input.Data, in.Data)
		}
	})
}

// nested is a value of a tensor's elements, in lists of these lengths.
func nested(t *rapid.T, dtype serving.DType, lengths []int) any {
	if len(lengths) > 0 {
		list := make([]any, lengths[0])
		for i := range list {
			list[i] = nested(t, dtype, lengths[1:])
		}
		return list
	}
	switch dtype {
	case serving.Bool:
		return rapid.Bool().Draw(t, "bool")
	case serving.String, serving.Blob:
		return rapid.SampledFrom([]string{"", "a", "aGk=", "é"}).Draw(t, "text")
	case serving.JSON:
		return rapid.SampledFrom([]any{nil, "a", []any{1, 2}, true}).Draw(t, "json")
	}
	return json.Number(rapid.SampledFrom([]string{"0", "-0", "1", "-1", "127", "128", "255", "256", "65504", "70000", "1.5", "4294967296", "1e39", "9223372036854775807"}).Draw(t, "number"))
}

func TestPlain(t *testing.T) {
	at := time.Date(2026, 5, 4, 3, 2, 1, 500, time.UTC)
	got, err := appendJSON(nil, map[string]any{
		"at": at, "of the day": 90 * time.Second, "decimal": big.NewRat(12345, 100), "id": [16]byte{1, 2}, "nan": math.NaN(), "inf": float32(math.Inf(-1)),
		"small": float32(0.1), "bytes": []byte("hi"), "list": []any{big.NewRat(1, 8)},
	})
	want := `{"at":"2026-05-04T03:02:01.0000005Z","bytes":"aGk=","decimal":123.45,"id":"01020000-0000-0000-0000-000000000000","inf":"-Infinity","list":[0.125],"nan":"NaN","of the day":"00:01:30","small":0.1}`
	if err != nil || string(got) != want {
		t.Errorf("%s, %v", got, err)
	}
}

func TestDepth(t *testing.T) {
	deep := func(n int) []byte { return []byte(strings.Repeat(`{"a":[`, n/2) + strings.Repeat(`]}`, n/2)) }
	if _, err := ParseJSON(deep(maxDepth)); err != nil {
		t.Error(err)
	}
	if _, err := ParseJSON(deep(maxDepth + 2)); err == nil || !strings.Contains(err.Error(), "nested deeper") {
		t.Errorf("too deep: %v", err)
	}
	if _, err := ParseJSON([]byte(`{"a": "[[[[\"[[["}`)); err != nil {
		t.Error(err)
	}
	for _, wrong := range []string{"", "{", `{} {}`, "\"\xff\"", "nul"} {
		if _, err := ParseJSON([]byte(wrong)); err == nil {
			t.Errorf("%q is JSON", wrong)
		}
	}
}

func FuzzInput(f *testing.F) {
	f.Add([]byte(`{"a": [1, 2, true], "b": "x"}`), "a")
	f.Add([]byte(document), "a.b")
	inputs := []serving.Tensor{{Name: "a", Type: serving.ElementType(serving.Float32), Shape: []int{-1, 2}}, {Name: "b", Type: serving.ElementType(serving.String)}}
	f.Fuzz(func(t *testing.T, value []byte, path string) {
		m, err := New(Config{Format: JSON, Input: path, ID: path}, nil)
		if err != nil {
			return
		}
		r, err := m.Read(t.Context(), &serving.StreamRecord{Stream: "s", Place: "0/1", Value: value})
		if err != nil {
			return
		}
		if len(r.ID) > maxName {
			t.Fatalf("the id has %d bytes", len(r.ID))
		}
		for kind := serving.Bytes; kind.Known(); kind++ {
			in, err := r.Input(kind, inputs)
			if err != nil {
				continue
			}
			if size := kind.DType().Size(); size > 0 && len(in.Data)%size != 0 {
				t.Fatalf("an input of %v has %d bytes", kind, len(in.Data))
			}
			if kind == serving.Tensors {
				all, err := rpc.ParsePayload(in.Data)
				if err == nil {
					err = serving.FitAll(inputs, all)
				}
				if err != nil {
					t.Fatalf("tensors %v: %v", all, err)
				}
			}
		}
	})
}

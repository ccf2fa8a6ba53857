package serving

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func le[T int32 | int64 | float32 | float64](xs ...T) []byte {
	var b bytes.Buffer
	for _, x := range xs {
		if err := binary.Write(&b, binary.LittleEndian, x); err != nil {
			panic(err)
		}
	}
	return b.Bytes()
}

func TestAppendJSON(t *testing.T) {
	for _, c := range []struct {
		name string
		in   Value
		want string
	}{
		{"whole float", Number(3), "3.0"},
		{"float", Number(-0.25), "-0.25"},
		{"tiny float", Number(1e-9), "1e-09"},
		{"huge float", Number(1e30), "1e+30"},
		{"negative zero", Number(math.Copysign(0, -1)), "-0.0"},
		{"float32 in its own precision", Value{DType: Float32, Data: le(float32(0.1))}, "0.1"},
		{"int", Value{DType: Int64, Data: le(int64(-7))}, "-7"},
		{"largest int", Value{DType: Int64, Data: le(int64(math.MaxInt64))}, "9223372036854775807"},
		{"bool", Value{DType: Bool, Data: []byte{1}}, "true"},
		{"vector", Value{DType: Int32, Shape: []int{3}, Data: le[int32](1, -2, 3)}, "[1,-2,3]"},
		{"empty vector", Value{DType: Int32, Shape: []int{0}}, "[]"},
		{"matrix", Value{DType: Uint8, Shape: []int{2, 2}, Data: []byte{1, 2, 3, 4}}, "[[1,2],[3,4]]"},
		{"no rows", Value{DType: Uint8, Shape: []int{2, 0}}, "[[],[]]"},
		{"JSON", Value{DType: JSON, Data: []byte(` {"a" : [1, 2]} `)}, `{"a":[1,2]}`},
		{"text that is a number", Text("1"), "1"},
		{"text that is an array", Text("[1, 2]"), "[1,2]"},
		{"text", Text("DEFAULT"), `"DEFAULT"`},
		{"text that looks like a number", Text("007"), `"007"`},
		{"Python's True", Text("True"), `"True"`},
		{"empty text", Text(""), `""`},
		{"text with quotes", Text("a \"b\"\n"), `"a \"b\"\n"`},
	} {
		got, err := AppendJSON([]byte("x"), c.in)
		if err != nil || string(got) != "x"+c.want {
			t.Errorf("%s: got %s, %v; want %s", c.name, got, err, c.want)
		}
	}
}

func TestAppendJSONRefuses(t *testing.T) {
	for name, in := range map[string]Value{
		"NaN":          Number(math.NaN()),
		"infinity":     {DType: Float32, Shape: []int{2}, Data: le(float32(1), float32(math.Inf(-1)))},
		"broken JSON":  {DType: JSON, Data: []byte(`{"a":`)},
		"opaque":       {DType: Opaque, Data: []byte("x")},
		"unknown type": {DType: 99, Data: []byte("x")},
		"short data":   {DType: Float64, Shape: []int{2}, Data: make([]byte, 8)},
		"long data":    {DType: Float64, Data: make([]byte, 16)},
	} {
		if got, err := AppendJSON(nil, in); err == nil {
			t.Errorf("%s became %s", name, got)
		}
		if out, err := NewOutput(in); err == nil {
			t.Errorf("%s is the output %s", name, out.JSON)
		}
	}
}

func TestNumbersReadBackAsTheyWere(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := rapid.Float64().Draw(t, "x")
		got, err := AppendJSON(nil, Number(x))
		if math.IsNaN(x) || math.IsInf(x, 0) {
			if err == nil {
				t.Fatalf("%v became %s", x, got)
			}
			return
		}
		var back float64
		if err != nil || json.Unmarshal(got, &back) != nil || math.Float64bits(back) != math.Float64bits(x) {
			t.Fatalf("%v became %s (%v), which reads as %v", x, got, err, back)
		}
	})
}

func TestTextIsAlwaysValidJSON(t *testing.T) {
	written := rapid.SampledFrom([]string{"the word", "true", " null ", "-1.5e3", `"a"`, `{"a": [1]}`, "[1", "<b>", `"`, "né", "\n7", ""})
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(rapid.SliceOf(rapid.Byte()), rapid.Map(written, func(s string) []byte { return []byte(s) })).Draw(t, "text")
		want, err := json.Marshal(string(text))
		if json.Valid(text) {
			want, err = json.Marshal(json.RawMessage(text))
		}
		if got := AppendText(nil, text); err != nil || !bytes.Equal(got, want) {
			t.Fatalf("%q became %q, want %q", text, got, want)
		}
	})
}

func TestNames(t *testing.T) {
	long := strings.Repeat("a", 63)
	for name, check := range map[string]struct {
		f         func(string) error
		good, bad []string
	}{
		"app":     {CheckAppName, []string{"wine", "Wine.2_b-c", "0", long}, []string{"", "admin", "v2", "health", "-a", "a/b", "a b", "é", long + "a", "a\n"}},
		"model":   {CheckModelName, []string{"wine-forest", "a", "0", long}, []string{"", "Wine", "a-", "-a", "a_b", long + "a", "a\n"}},
		"version": {CheckVersion, []string{"1", "2024-06.1+gpu_x", long}, []string{"", "+1", "a:b", "a,b", long + "a", "1\n"}},
	} {
		for _, s := range check.good {
			if err := check.f(s); err != nil {
				t.Errorf("%s %q: %v", name, s, err)
			}
		}
		for _, s := range check.bad {
			if check.f(s) == nil {
				t.Errorf("%s %q is accepted", name, s)
			}
		}
	}
}

func TestInputTypesHaveClippersNames(t *testing.T) {
	for _, want := range []InputType{Bytes, Ints, Floats, Doubles, Strings} {
		text, err := want.MarshalText()
		got, parseErr := ParseInputType(string(text))
		if err != nil || parseErr != nil || got != want {
			t.Errorf("%v is written %s and read as %v (%v, %v)", want, text, got, err, parseErr)
		}
	}
	for alias, want := range map[string]InputType{"b": Bytes, "int": Ints, "i": Ints, "f": Floats, "double": Doubles, "strs": Strings} {
		if got, err := ParseInputType(alias); err != nil || got != want {
			t.Errorf("%q is read as %v, %v", alias, got, err)
		}
	}
	if _, err := ParseInputType("Doubles"); err == nil {
		t.Error("names are case-sensitive, and Doubles was accepted")
	}
}

func TestEveryCauseHasANameAndAnExplanation(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range Causes() {
		if strings.HasPrefix(c.String(), "cause(") || seen[c.String()] {
			t.Errorf("cause %d is called %s", c, c)
		}
		seen[c.String()] = true
	}
	if f := (&Failure{Cause: NoReplica, Message: "detail"}); f.Explain() != "No connected models found for query" {
		t.Errorf("Clipper's sentence is %q", f.Explain())
	}
	if f := (&Failure{Cause: RefusedFull}); f.Explain() != "Refused: refused_full" {
		t.Errorf("without a message: %q", f.Explain())
	}
	f := &Failure{Cause: RefusedLate, Message: "too late\nin 3 ms"}
	if f.Explain() != "Refused: too late" || f.Detail() != "Refused: too late: in 3 ms" {
		t.Errorf("a refusal with figures is %q, in detail %q", f.Explain(), f.Detail())
	}
}

func BenchmarkNewOutput(b *testing.B) {
	v := Number(0.125)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := NewOutput(v); err != nil {
			b.Fatal(err)
		}
	}
}

package inference

import (
	"bytes"
	"encoding/binary"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/topsail-serving/topsail/rpc"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/test/require"
)

func tensor(name string, t serving.DType, shape ...int) serving.Tensor {
	return serving.Tensor{Name: name, Type: serving.ElementType(t), Shape: shape}
}

func doubles(xs ...float64) (data []byte) {
	for _, x := range xs {
		data = binary.LittleEndian.AppendUint64(data, math.Float64bits(x))
	}
	return data
}

func texts(list ...string) (data []byte) {
	for _, s := range list {
		data = serving.AppendElement(data, s)
	}
	return data
}

// An app without a signature has one input of vectors or texts, whose rows are queries.
func TestRowsOfTheShortForms(t *testing.T) {
	for _, tt := range []struct {
		of     serving.InputType
		length int
		v      serving.Value
		want   [][]byte
	}{
		{serving.Doubles, 0, serving.Value{DType: serving.Float64, Shape: []int{2, 2}, Data: doubles(1, 2, 3, 4)}, [][]byte{doubles(1, 2), doubles(3, 4)}},
		{serving.Doubles, 2, serving.Value{DType: serving.Float64, Shape: []int{1, 2}, Data: doubles(1, 2)}, [][]byte{doubles(1, 2)}},
		{serving.Doubles, 2, serving.Value{DType: serving.Float64, Shape: []int{2}, Data: doubles(1, 2)}, [][]byte{doubles(1, 2)}}, // without the batch
		{serving.Bytes, 0, serving.Value{DType: serving.Uint8, Shape: []int{2, 1}, Data: []byte{7, 8}}, [][]byte{{7}, {8}}},
		{serving.Strings, 0, serving.Value{DType: serving.Blob, Shape: []int{2}, Data: texts("a", "bc")}, [][]byte{[]byte("a"), []byte("bc")}},
		{serving.Strings, 0, serving.Value{DType: serving.Blob, Shape: []int{2, 1}, Data: texts("a", "bc")}, [][]byte{[]byte("a"), []byte("bc")}}, // a column
		{serving.Strings, 0, serving.Value{DType: serving.Blob, Shape: []int{1}, Data: texts("")}, [][]byte{{}}},
	} {
		app := &serving.App{InputType: tt.of}
		tt.v.Name = "whatever" // there is only one
		got, err := Rows(app, Inputs(app, tt.length), []serving.Value{tt.v}, nil, 10)
		if err != nil || len(got) != len(tt.want) {
			t.Errorf("%v: %v, %v", tt.v, got, err)
			continue
		}
		clear(tt.v.Data) // the rows own their memory
		for i := range got {
			if got[i].Type != tt.of || !bytes.Equal(got[i].Data, tt.want[i]) {
				t.Errorf("%v: row %d is %v, want %v", tt.v, i, got[i].Data, tt.want[i])
			}
		}
	}
}

func signed() *serving.App {
	return &serving.App{InputType: serving.Tensors, Signature: &serving.Signature{
		Inputs:  []serving.Tensor{tensor("image", serving.Uint8, -1, 2), tensor("text", serving.String), tensor("tags", serving.String, -1), tensor("more", serving.JSON)},
		Outputs: []serving.Tensor{tensor("score", serving.Float32), tensor("words", serving.String, -1)},
	}}
}

// What is around the data of the only value becomes its payload, or its input; where it cannot, they are copied.
func TestRowsAroundTheirData(t *testing.T) {
	image := &serving.App{InputType: serving.Tensors, Signature: &serving.Signature{Inputs: []serving.Tensor{tensor("image", serving.Uint8, -1, 2)}}}
	vector := &serving.App{InputType: serving.Bytes}
	data := []byte{1, 2, 3, 4}
	for _, tt := range []struct {
		app    *serving.App
		before int // bytes
		shape  []int
		kept   bool
	}{
		{image, 100, []int{1, 2, 2}, true}, {image, 100, []int{2, 2}, true}, {image, 23, []int{1, 2, 2}, true}, {image, 22, []int{1, 2, 2}, false},
		{image, 0, []int{1, 2, 2}, false}, {image, 100, []int{2, 1, 2}, false},
		{vector, 0, []int{1, 4}, true}, {vector, 10, []int{2, 2}, true},
	} {
		around := append(bytes.Repeat([]byte{9}, tt.before), data...)
		v := serving.Value{Name: "image", DType: serving.Uint8, Shape: tt.shape, Data: around[tt.before:]}
		want, err := Rows(tt.app, Inputs(tt.app, 0), []serving.Value{v}, nil, 9)
		require.NoError(t, err)
		got, err := Rows(tt.app, Inputs(tt.app, 0), []serving.Value{v}, around, 9)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%d bytes before %v: %v, %v; want %v", tt.before, tt.shape, got, err, want)
		}
		last := got[len(got)-1].Data
		if kept := &last[len(last)-1] == &around[len(around)-1]; kept != tt.kept {
			t.Errorf("%d bytes before %v of %v: kept %v", tt.before, tt.shape, tt.app.InputType, kept)
		}
	}
}

func TestRowsOfASignature(t *testing.T) {
	app := signed()
	got, err := Rows(app, Inputs(app, 0), []serving.Value{
		{Name: "more", DType: serving.Blob, Shape: []int{2}, Data: texts(`{"a":1}`, `2`)},
		{Name: "text", DType: serving.Blob, Shape: []int{2, 1}, Data: texts("x", "yz")},
		{Name: "image", DType: serving.Uint8, Shape: []int{2, 1, 2}, Data: []byte{1, 2, 3, 4}},
		{Name: "tags", DType: serving.Blob, Shape: []int{2, 2}, Data: texts("a", "b", "c", "")},
	}, nil, 2)
	if err != nil || len(got) != 2 {
		t.Fatal(got, err)
	}
	values, err := rpc.ParsePayload(got[1].Data)
	require.NoError(t, err)
	if err := serving.FitAll(app.Signature.Inputs, values); err != nil {
		t.Error(err)
	}
	if want := []serving.Value{
		{Name: "image", DType: serving.Uint8, Shape: []int{1, 2}, Data: []byte{3, 4}}, {Name: "text", DType: serving.String, Data: []byte("yz")},
		{Name: "tags", DType: serving.String, Shape: []int{2}, Data: texts("c", "")}, {Name: "more", DType: serving.JSON, Data: []byte(`2`)},
	}; !reflect.DeepEqual(values, want) {
		t.Errorf("got %v, want %v", values, want)
	}
}

func TestRowsThatAreRefused(t *testing.T) {
	app := &serving.App{InputType: serving.Doubles}
	one := func(v serving.Value) []serving.Value { return []serving.Value{v} }
	for want, values := range map[string][]serving.Value{
		`input "x" is unknown: the model has "input"`:                 {{Name: "x", DType: serving.Float64, Shape: []int{1, 1}}, {Name: "input", DType: serving.Float64, Shape: []int{1, 3}}},
		`input "input" is missing: it is FP64[-1,3]`:                  nil,
		`input "input" is FP32[1,3], and FP64[-1,3] is wanted`:        one(serving.Value{Name: "input", DType: serving.Float32, Shape: []int{1, 3}}),
		`input "input" is FP64[1,2], and FP64[-1,3] is wanted`:        one(serving.Value{Name: "input", DType: serving.Float64, Shape: []int{1, 2}}),
		`input "input" is FP64[0,3], and FP64[-1,3] is wanted`:        one(serving.Value{Name: "input", DType: serving.Float64, Shape: []int{0, 3}}),
		`input "input" is FP64[1,1,3], and FP64[-1,3] is wanted`:      one(serving.Value{Name: "input", DType: serving.Float64, Shape: []int{1, 1, 3}}),
		`input "input" is FP64[], and FP64[-1,3] is wanted`:           one(serving.Value{Name: "input", DType: serving.Float64}),
		`input "input" comes twice`:                                   {{Name: "input", DType: serving.Float64, Shape: []int{1, 3}}, {Name: "input", DType: serving.Float64, Shape: []int{1, 3}}},
		`the batch has 5 rows, and may have 4: send several requests`: one(serving.Value{Name: "input", DType: serving.Float64, Shape: []int{5, 3}, Data: make([]byte, 120)}),
		`input "input" ends in row 1`:                                 one(serving.Value{Name: "input", DType: serving.Float64, Shape: []int{2, 3}, Data: make([]byte, 24)}),
	} {
		if _, err := Rows(app, Inputs(app, 3), values, nil, 4); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	app = &serving.App{InputType: serving.Strings}
	for want, data := range map[string][]byte{`input "input", row 0: the text is not UTF-8`: texts("\xff"), `input "input" ends in row 0`: {9, 0, 0, 0}} {
		if _, err := Rows(app, Inputs(app, 0), one(serving.Value{Name: "input", DType: serving.Blob, Shape: []int{1}, Data: data}), nil, 4); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	app = signed()
	if _, err := Rows(app, Inputs(app, 0), []serving.Value{
		{Name: "text", DType: serving.Blob, Shape: []int{1}, Data: texts("x")}, {Name: "image", DType: serving.Uint8, Shape: []int{2, 1, 2}, Data: []byte{1, 2, 3, 4}},
	}, nil, 4); err == nil || err.Error() != `input "image" has 2 rows, and others have 1` {
		t.Error(err)
	}
}

func prediction(t *testing.T, values ...serving.Value) serving.Prediction {
	t.Helper()
	out, err := serving.NewOutputs(values)
	require.NoError(t, err)
	return serving.Prediction{Output: out.JSON, Full: out}
}

func TestStack(t *testing.T) {
	plain, app := &serving.App{InputType: serving.Doubles}, signed()
	score := func(x float32) serving.Value {
		return serving.Value{Name: "score", DType: serving.Float32, Data: binary.LittleEndian.AppendUint32(nil, math.Float32bits(x))}
	}
	words := func(list ...string) serving.Value {
		return serving.Value{Name: "words", DType: serving.String, Shape: []int{len(list)}, Data: texts(list...)}
	}
	def := serving.Prediction{Output: []byte("-1"), Default: true}
	for _, tt := range []struct {
		app    *serving.App
		rows   []serving.Prediction
		wanted []string
		want   []serving.Value
	}{
		{plain, []serving.Prediction{prediction(t, serving.Number(1)), prediction(t, serving.Number(2))}, nil, []serving.Value{{Name: "output", DType: serving.Float64, Shape: []int{2}, Data: doubles(1, 2)}}},
		{plain, []serving.Prediction{def, prediction(t, serving.Number(2))}, nil, []serving.Value{{Name: "output", DType: serving.Float64, Shape: []int{2}, Data: doubles(-1, 2)}}},
		{plain, []serving.Prediction{def}, nil, []serving.Value{{Name: "output", DType: serving.Float64, Shape: []int{1}, Data: doubles(-1)}}},
		{plain, []serving.Prediction{prediction(t, serving.Text("cat")), {Output: []byte(`"none"`), Default: true}}, nil, []serving.Value{{Name: "output", DType: serving.Blob, Shape: []int{2}, Data: texts("cat", "none")}}},
		{plain, []serving.Prediction{prediction(t, serving.Value{DType: serving.JSON, Data: []byte(`{"a":1}`)})}, nil, []serving.Value{{Name: "output", DType: serving.Blob, Shape: []int{1}, Data: texts(`{"a":1}`)}}},
		{app, []serving.Prediction{prediction(t, score(1), words("a", "b")), prediction(t, score(2), words("c", ""))}, nil, []serving.Value{
			{Name: "score", DType: serving.Float32, Shape: []int{2}, Data: append(score(1).Data, score(2).Data...)}, {Name: "words", DType: serving.Blob, Shape: []int{2, 2}, Data: texts("a", "b", "c", "")},
		}},
		{app, []serving.Prediction{prediction(t, score(1), words("a"))}, []string{"words"}, []serving.Value{{Name: "words", DType: serving.Blob, Shape: []int{1, 1}, Data: texts("a")}}},
	} {
		if got, err := Stack(tt.app, tt.rows, tt.wanted); err != nil || !reflect.DeepEqual(got, tt.want) {
			t.Errorf("got %v, %v; want %v", got, err, tt.want)
		}
	}
	for want, rows := range map[string][]serving.Prediction{
		`row 1: output "words" has shape [2]`:           {prediction(t, score(1), words("a")), prediction(t, score(1), words("a", "b"))},
		`row 0: there is no default for output "words"`: {def},
	} {
		if _, err := Stack(app, rows, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	if _, err := Stack(plain, []serving.Prediction{prediction(t, serving.Number(1))}, []string{"x"}); err == nil || !strings.Contains(err.Error(), `output "x" is unknown: the model has "output"`) {
		t.Error(err)
	}
}

func TestDefaultsThatFitTheType(t *testing.T) {
	for _, tt := range []struct {
		t    serving.Tensor
		text string
		fits bool
	}{
		{tensor("x", serving.Float32), "0.5", true}, {tensor("x", serving.Int8), "-128", true}, {tensor("x", serving.Int8), "128", false},
		{tensor("x", serving.Uint64), "18446744073709549568", true}, {tensor("x", serving.Uint8), "0.5", false}, {tensor("x", serving.Bool), "1", true},
		{tensor("x", serving.Bool), "2", false}, {tensor("x", serving.Float64, -1), "[1,2]", true}, {tensor("x", serving.Float64, 3), "[1,2]", false},
		{tensor("x", serving.Float64), `"a"`, false}, {tensor("x", serving.String), `"a"`, true}, {tensor("x", serving.String), `7`, true},
		{tensor("x", serving.String, -1), `["a"]`, false}, {tensor("x", serving.JSON), `{"a":[1]}`, true}, {tensor("x", serving.JSON), `null`, true},
		{tensor("x", serving.Float64), `null`, false}, {tensor("x", serving.String), `null`, false}, {tensor("x", serving.String), `"null"`, true}, {tensor("x", serving.Float64, -1), `[1,null]`, false}, {tensor("x", serving.Float64, -1, 2), "[[1,2]]", false},
	} {
		v, err := convert(&tt.t, []byte(tt.text), "it")
		if (err == nil) != tt.fits {
			t.Errorf("%s as %s: %v", tt.text, tt.t, err)
		}
		if err == nil && tt.t.Fits(&v) != nil {
			t.Errorf("%s as %s became %v", tt.text, tt.t, v)
		}
	}
}

// What the protocol has no place for is in parameters: of one row as it is, of several joined by commas.
func TestParameters(t *testing.T) {
	sure := 0.75
	a := serving.Prediction{
		QueryID: 7, Model: serving.ModelID{Model: "small", Version: "1"}, Full: &serving.Output{Confidence: &sure}, Ranked: true,
		PassedOver: []serving.PassedOver{{ModelID: serving.ModelID{Model: "large", Version: "2"}, Why: serving.MissedSLO}, {ModelID: serving.ModelID{Model: "mid", Version: "1"}, Why: serving.NoReplica}},
	}
	b := serving.Prediction{QueryID: 8, Default: true, Explanation: "why"}
	for _, tt := range []struct {
		rows []serving.Prediction
		want []Parameter
	}{
		{[]serving.Prediction{a}, []Parameter{{"query_id", int64(7)}, {"model", "small:1"}, {"confidence", 0.75}, {"passed_over", "large:2=missed_slo,mid:1=no_replica"}}},
		{[]serving.Prediction{b}, []Parameter{{"query_id", int64(8)}, {"default", true}, {"default_explanation", "why"}}},
		{[]serving.Prediction{a, b, a}, []Parameter{
			{"query_ids", "7,8,7"}, {"models", "small:1,,small:1"}, {"confidences", "0.75,,0.75"}, {"default", true}, {"default_rows", "1"}, {"default_explanation", "why"},
		}},
		{[]serving.Prediction{{QueryID: 1}, {QueryID: 2}}, []Parameter{{"query_ids", "1,2"}}},
		{[]serving.Prediction{{Full: &serving.Output{}}}, nil}, // a part
	} {
		if got := Parameters(tt.rows); !slices.Equal(got, tt.want) {
			t.Errorf("%v, want %v", got, tt.want)
		}
	}
}

// woken is an app of two models, of which one is ready.
type woken struct{ wakes int }

func (*woken) Ready(string, string) (bool, error) { return true, nil }

func (w *woken) Wake(string, string) error { w.wakes++; return nil }

func TestLoadWakesWhatSleepsBesideWhatIsReady(t *testing.T) {
	var w woken
	if err := Load(t.Context(), &w, "app"); err != nil || w.wakes != 1 {
		t.Errorf("%v, woken %d times", err, w.wakes)
	}
}

// A body without JSON is one row of the only input.
func TestRawBodies(t *testing.T) {
	vector := &serving.App{Name: "a", InputType: serving.Floats}
	texts := &serving.App{Name: "a", InputType: serving.Strings}
	image := &serving.App{Name: "a", InputType: serving.Tensors, Signature: &serving.Signature{Inputs: []serving.Tensor{tensor("x", serving.Uint8, -1, 2)}}}
	open := &serving.App{Name: "a", InputType: serving.Tensors, Signature: &serving.Signature{Inputs: []serving.Tensor{tensor("x", serving.Uint8, -1, -1)}}}
	two := &serving.App{Name: "a", InputType: serving.Tensors, Signature: &serving.Signature{Inputs: []serving.Tensor{tensor("x", serving.Uint8), tensor("y", serving.Uint8)}}}
	for _, tt := range []struct {
		app  *serving.App
		body string
		want string // of the input; "!" and what the error says
	}{
		{vector, "abcdefgh", "abcdefgh"}, {vector, "abcde", "!5 bytes are not FP32[-1,-1]"}, {vector, "", "!0 bytes"},
		{texts, "hello", "hello"}, {texts, "", ""}, {image, "abcd", ""}, {image, "abc", "!3 bytes"}, {open, "abcd", "!not UINT8[-1,-1,-1]"}, {two, "ab", `!the model has "x", "y"`},
	} {
		r := Request{Raw: []byte(tt.body)}
		queries, err := r.Queries(serving.Query{}, tt.app, 9)
		why, wrong := strings.CutPrefix(tt.want, "!")
		switch {
		case wrong && (err == nil || !strings.Contains(err.Error(), why)):
			t.Errorf("%q: %v, want %s", tt.body, err, why)
		case !wrong && (err != nil || len(queries) != 1):
			t.Errorf("%q: %v", tt.body, err)
		case !wrong && tt.app != image && string(queries[0].Input.Data) != tt.want:
			t.Errorf("%q became %q", tt.body, queries[0].Input.Data)
		}
	}
}

// A version that another one is to take the place of may take inputs of another length.
func TestMetadataOfAVersion(t *testing.T) {
	app := &serving.App{Name: "a", InputType: serving.Doubles, Models: []string{"m"}}
	version := func(v string, length int) *serving.Version {
		return &serving.Version{ModelID: serving.ModelID{Model: "m", Version: v}, InputType: serving.Doubles, InputLength: length}
	}
	cat := &serving.Catalog{Models: map[string]*serving.Model{"m": {Name: "m", Current: "1", Versions: map[string]*serving.Version{"1": version("1", 3), "2": version("2", 5)}}}}
	for v, want := range map[string]int{"": 3, "1": 3, "2": 5} {
		meta, err := NewMetadata(app, cat, v)
		config, other := NewConfig(app, cat, v, 8)
		if err != nil || other != nil || !slices.Equal(meta.Inputs[0].Shape, []int{-1, want}) || !slices.Equal(config.Input[0].Dims, []int{want}) {
			t.Errorf("version %q: %+v, %+v, %v, %v", v, meta, config, err, other)
		}
	}
	_, err := NewMetadata(app, cat, "3")
	_, other := NewConfig(app, cat, "3", 8)
	if err == nil || other == nil {
		t.Errorf("an unknown version: %v, %v", err, other)
	}
}

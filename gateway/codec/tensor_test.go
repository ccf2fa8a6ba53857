package codec_test

import (
	"cmp"
	"reflect"
	"testing"

	"github.com/topsail-serving/topsail/gateway/codec"
	"github.com/topsail-serving/topsail/rpc"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/test/require"
)

func tensor(name string, t serving.DType, shape ...int) serving.Tensor {
	return serving.Tensor{Name: name, Type: serving.ElementType(t), Shape: shape}
}

func signed(inputs ...serving.Tensor) *serving.App {
	return &serving.App{InputType: serving.Tensors, Signature: &serving.Signature{Inputs: inputs}}
}

// What is read must be what the same text says when it is written again.
func TestDecodeTensors(t *testing.T) {
	for _, test := range []struct {
		in       serving.Tensor
		text     string // of the input
		shape    []int
		again    string // how it is written; empty: as it was
		elements int    // bytes
	}{
		{tensor("x", serving.Float32, -1, 3), `[[1.5,2.5,-3.0],[0.1,1e-09,4.0]]`, []int{2, 3}, "", 24},
		{tensor("x", serving.Float32, 2, -1), `[[],[]]`, []int{2, 0}, "", 0},
		{tensor("x", serving.Float32, -1, -1), `[]`, []int{0, 0}, "", 0},
		{tensor("x", serving.Float64), `0.1`, nil, "", 8},
		{tensor("x", serving.Float16, -1), `[0.1,65504]`, []int{2}, "[0.099975586,65504.0]", 4},
		{tensor("x", serving.BFloat16, -1), `[0.1,-1e10]`, []int{2}, "[0.100097656,-9999221000.0]", 4},
		{tensor("x", serving.Int8, 2), `[-128,127]`, []int{2}, "", 2},
		{tensor("x", serving.Uint8, 2), `[-0,255]`, []int{2}, "[0,255]", 2},
		{tensor("x", serving.Int16, 2), `[-32768,32767]`, []int{2}, "", 4},
		{tensor("x", serving.Uint16, 2), `[0,65535]`, []int{2}, "", 4},
		{tensor("x", serving.Int32, 2), `[-2147483648,2147483647]`, []int{2}, "", 8},
		{tensor("x", serving.Uint32, 2), `[0,4294967295]`, []int{2}, "", 8},
		{tensor("x", serving.Int64, 2), `[-9223372036854775808,9223372036854775807]`, []int{2}, "", 16},
		{tensor("x", serving.Uint64, 2), `[0,18446744073709551615]`, []int{2}, "", 16},
		{tensor("x", serving.Bool, 2, 1), `[[true],[false]]`, []int{2, 1}, "", 2},
		{tensor("x", serving.String), `"a\u00e4"`, nil, `"aä"`, 3},
		{tensor("x", serving.String, 2), `["","é"]`, []int{2}, "", 10},
		{tensor("x", serving.Blob, -1), `["AAEC",""]`, []int{2}, "", 11},
		{tensor("x", serving.Blob), `"AAEC"`, nil, "", 3},
		{tensor("x", serving.JSON), `{"a":[1,null]}`, nil, "", 14},
	} {
		got, err := codec.DecodePredict([]byte(`{"inputs":{"x": `+test.text+` }}`), signed(test.in), maxBatch)
		if err != nil {
			t.Errorf("%s as %s: %v", test.text, test.in, err)
			continue
		}
		values, err := rpc.ParsePayload(got.Input.Data)
		if err != nil || len(values) != 1 || values[0].Name != "x" || len(values[0].Data) != test.elements || !reflect.DeepEqual(values[0].Shape, test.shape) {
			t.Errorf("%s as %s: %v, %v", test.text, test.in, values, err)
			continue
		}
		if err := test.in.Fits(&values[0]); err != nil {
			t.Errorf("%s: %v", test.text, err)
		}
		again, err := serving.AppendNamed(nil, values)
		if want := `{"x":` + cmp.Or(test.again, test.text) + `}`; err != nil || string(again) != want {
			t.Errorf("%s as %s is written %s (%v), and should be %s", test.text, test.in, again, err, want)
		}
	}
}

// The order of members does not count, nor whether the key is input or inputs: it is the same input.
func TestTensorsAreInTheOrderOfTheSignature(t *testing.T) {
	app := signed(tensor("a", serving.Int32), tensor("b", serving.String))
	want, err := codec.DecodePredict([]byte(`{"inputs":{"a":1,"b":"x"}}`), app, maxBatch)
	require.NoError(t, err)
	for _, body := range []string{`{"inputs":{"b":"x","a":1}}`, `{"input":{"b":"x","a":1}}`} {
		if got, err := codec.DecodePredict([]byte(body), app, maxBatch); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v, %v", body, got, err)
		}
	}
	if got, err := codec.DecodePredict([]byte(`{"input_batch":[{"b":"x","a":1}]}`), app, maxBatch); err != nil || !reflect.DeepEqual(got.Batch, []serving.Input{want.Input}) {
		t.Errorf("a batch: %v, %v", got, err)
	}
	one := takes(serving.Doubles)
	named, err := codec.DecodePredict([]byte(`{"inputs":{"input":[1,2]}}`), one, maxBatch)
	if err != nil || !reflect.DeepEqual(named.Input, doubles(1, 2)) {
		t.Errorf("the short form by name: %v, %v", named, err)
	}
}

func TestTensorsThatAreRefused(t *testing.T) {
	app := signed(tensor("image", serving.Uint8, -1, 2), tensor("text", serving.String))
	for body, want := range map[string]string{
		`{"inputs":[1]}`:                                       `inputs must be an object with "image", "text", and is an array`,
		`{"inputs":{}}`:                                        `inputs lacks "image", which is uint8[-1,2]`,
		`{"inputs":{"image":[[1,2]]}}`:                         `inputs lacks "text", which is string`,
		`{"inputs":{"img":[[1,2]],"text":""}}`:                 `inputs has "img", and must have "image", "text"`,
		`{"inputs":{"image":[[1,2]],"text":"","text":""}}`:     `inputs.text comes twice`,
		`{"inputs":{"image":[[1,2],[1]],"text":""}}`:           `inputs.image[1] must have 2 elements: "image" is uint8[-1,2]`,
		`{"inputs":{"image":[[1,2],[1,2,3]],"text":""}}`:       `inputs.image[1] must have 2 elements: "image" is uint8[-1,2]`,
		`{"inputs":{"image":[[1,2],3],"text":""}}`:             `inputs.image[1] must be an array, for "image" is uint8[-1,2], and is a number`,
		`{"inputs":{"image":[[1,256]],"text":""}}`:             `inputs.image[0][1] must be a whole number that uint8 holds, without point or exponent`,
		`{"inputs":{"image":[[1,1.0]],"text":""}}`:             `inputs.image[0][1] must be a whole number that uint8 holds, without point or exponent`,
		`{"inputs":{"image":[[1,"2"]],"text":""}}`:             `inputs.image[0][1] must be a number, and is a string`,
		`{"inputs":{"image":[[1,[2]]],"text":""}}`:             `inputs.image[0][1] must be a number, and is an array`,
		`{"inputs":{"image":[[1,2]],"text":7}}`:                `inputs.text must be a string, and is a number`,
		`{"inputs":{"image":[[1,2]],"text":""},"input":1}`:     `input must be an object with "image", "text", and is a number`,
		`{"inputs":{"image":[[1,2]],"text":""},"explan":true}`: `explan is unknown: did you mean "explain"? ("strict": false ignores it)`,
		`{"inputs":{"image":[[1,2`:                             `the body is not JSON: missing a comma or ] after an array element, at byte 24`,
	} {
		if _, err := codec.DecodePredict([]byte(body), app, maxBatch); err == nil || err.Error() != want {
			t.Errorf("%s:\n got %v\nwant %s", body, err, want)
		}
	}
	ragged := signed(tensor("x", serving.Float16, -1, -1))
	for body, want := range map[string]string{
		`{"inputs":{"x":[[1],[1,2]]}}`: `inputs.x[1] has another length than the arrays before it, which have 1 elements: "x" is float16[-1,-1]`,
		`{"inputs":{"x":[[1,2],[1]]}}`: `inputs.x[1] has another length than the arrays before it, which have 2 elements: "x" is float16[-1,-1]`,
		`{"inputs":{"x":[[70000]]}}`:   `inputs.x[0][0] must be between -65504 and 65504`,
	} {
		if _, err := codec.DecodePredict([]byte(body), ragged, maxBatch); err == nil || err.Error() != want {
			t.Errorf("%s:\n got %v\nwant %s", body, err, want)
		}
	}
}

// FuzzDecodeTensors: what is taken fits the signature, is a payload, and can be written as JSON that is
// taken again as the same.
func FuzzDecodeTensors(f *testing.F) {
	app := signed(tensor("a", serving.Float32, -1, 2), tensor("b", serving.String, -1), tensor("c", serving.JSON), tensor("d", serving.Int64), tensor("e", serving.Blob), tensor("f", serving.Bool, 2))
	f.Add([]byte(`{"inputs":{"a":[[1,2],[3,4]],"b":["x",""],"c":{"k":[1]},"d":-5,"e":"AAEC","f":[true,false]}}`))
	f.Add([]byte(`{"input_batch":[{"a":[],"b":[],"c":null,"d":0,"e":"","f":[true,true]}]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		got, err := codec.DecodePredict(body, app, maxBatch)
		if err != nil || got.Input.Type == 0 {
			return
		}
		values, err := rpc.ParsePayload(got.Input.Data)
		require.NoError(t, err)
		require.NoError(t, serving.FitAll(app.Signature.Inputs, values))
		again, err := serving.AppendNamed([]byte(`{"inputs":`), values)
		require.NoError(t, err)
		second, err := codec.DecodePredict(append(again, '}'), app, maxBatch)
		if err != nil {
			t.Fatalf("%s: %v", again, err)
		}
		back, _ := rpc.ParsePayload(second.Input.Data)
		for i := range values {
			if values[i].DType != serving.JSON && !reflect.DeepEqual(values[i], back[i]) {
				t.Fatalf("%v became %v", values[i], back[i])
			}
		}
	})
}

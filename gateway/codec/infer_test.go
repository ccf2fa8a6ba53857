package codec_test

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/gateway/codec"
	"github.com/topsail-serving/topsail/gateway/inference"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/test/require"
)

func TestDecodeInfer(t *testing.T) {
	ab := []byte("\x01\x00\x00\x00a\x02\x00\x00\x00bc")
	two := binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(nil, math.Float32bits(1)), math.Float32bits(2))
	numbers := serving.Value{Name: "x", DType: serving.Float32, Shape: []int{1, 2}, Data: two}
	for _, test := range []struct {
		text, rest string
		want       inference.Request
	}{
		{`{"inputs":[{"name":"x","shape":[1,2],"datatype":"FP32","data":[1,2]}]}`, "", inference.Request{Inputs: []serving.Value{numbers}}},
		{`{"inputs":[{"data":[[1.0,2]],"datatype":"FP32","shape":[1,2],"name":"x"}]}`, "", inference.Request{Inputs: []serving.Value{numbers}}},
		{
			`{"id":"q","parameters":{"timeout":5000,"binary_data_output":true,"uid":7,"context":"shop","priority":1,"sequence_id":0},"outputs":[{"name":"a"},{"name":"b","parameters":{"binary_data":false,"classification":3}}],"more":[{}],"inputs":[{"name":"x","shape":[1,2],"datatype":"FP32","parameters":{"binary_data_size":8,"content_type":"np"}}]}`,
			string(two),
			inference.Request{ID: "q", Options: inference.Options{Timeout: 5 * time.Millisecond, Binary: true, User: "7", Context: "shop", Priority: 1}, Inputs: []serving.Value{numbers}, Outputs: []inference.Output{{Name: "a", Binary: true}, {Name: "b"}}},
		},
		{
			`{"outputs":[{"name":"a"}],"parameters":{"binary_data_output":true,"timeout":0},"inputs":[{"name":"t","shape":[2],"datatype":"BYTES","parameters":{"binary_data_size":11}},{"name":"x","shape":[1,2],"datatype":"FP32","data":[1,2],"parameters":{}},{"name":"h","shape":[1],"datatype":"FP16","parameters":{"binary_data_size":2}}]}`,
			string(ab) + "\x00\x3c",
			inference.Request{
				Options: inference.Options{Binary: true}, Outputs: []inference.Output{{Name: "a", Binary: true}},
				Inputs: []serving.Value{{Name: "t", DType: serving.Blob, Shape: []int{2}, Data: ab}, numbers, {Name: "h", DType: serving.Float16, Shape: []int{1}, Data: []byte{0, 0x3c}}},
			},
		},
		{`{"id":null,"parameters":null,"outputs":null,"inputs":[{"name":"t","shape":[2],"datatype":"BYTES","parameters":null,"data":["a","bc"]}]}`, "", inference.Request{Inputs: []serving.Value{{Name: "t", DType: serving.Blob, Shape: []int{2}, Data: ab}}}},
		{`{"inputs":[{"name":"b","shape":[2,2],"datatype":"BOOL","data":[true,[false,1],0]}]}`, "", inference.Request{Inputs: []serving.Value{{Name: "b", DType: serving.Bool, Shape: []int{2, 2}, Data: []byte{1, 0, 1, 0}}}}},
		{`{"inputs":[{"name":"n","shape":[0,3],"datatype":"INT8","data":[]}]}`, "", inference.Request{Inputs: []serving.Value{{Name: "n", DType: serving.Int8, Shape: []int{0, 3}, Data: []byte{}}}}},
	} {
		header := len(test.text)
		if test.rest == "" {
			header = -1
		}
		got, err := codec.DecodeInfer([]byte(test.text+test.rest), header)
		if err != nil || !reflect.DeepEqual(got, test.want) {
			t.Errorf("%s:\n got %+v, %v\nwant %+v", test.text, got, err, test.want)
		}
	}
	got, err := codec.DecodeInfer([]byte(`{"inputs":[{"name":"x","shape":[1],"datatype":"FP64","data":[null]}]}`), -1)
	if err != nil || !math.IsNaN(math.Float64frombits(binary.LittleEndian.Uint64(got.Inputs[0].Data))) {
		t.Errorf("null is %v, %v", got, err)
	}
}

func TestInferRequestsThatAreRefused(t *testing.T) {
	input := func(more string) string { return `{"inputs":[{"name":"x",` + more + `}]}` }
	for _, test := range []struct {
		text, rest, want string
	}{
		{``, "", "the body is empty"},
		{`[]`, "", "the body must be an object"},
		{`{}`, "", `needs the key "inputs"`},
		{`{"inputs":[]}`, "", `needs the key "inputs"`},
		{`{"inputs":{}}`, "", "inputs must be an array of objects, and is an object"},
		{`{"inputs":[1]}`, "", "inputs[0] must be an object with name, shape, datatype and data, and is a number"},
		{`{"inputs":[{"shape":[1],"datatype":"FP32","data":[1]}]}`, "", "inputs[0] has no name"},
		{input(`"datatype":"FP32","data":[1]`), "", "inputs[0] has no shape"},
		{input(`"shape":[1],"datatype":"FP31","data":[1]`), "", `datatype "FP31" is unknown`},
		{input(`"shape":[1],"data":[1]`), "", `datatype "" is unknown`},
		{input(`"shape":[1],"datatype":"FP32"`), "", "has no data, and no binary_data_size"},
		{input(`"shape":[-1],"datatype":"FP32","data":[1]`), "", "inputs[0].shape[0] must be a whole number"},
		{input(`"shape":[1.5],"datatype":"FP32","data":[1]`), "", "inputs[0].shape[0] must be a whole number from 0 to 2^31 - 1"},
		{input(`"shape":[99999999999],"datatype":"FP32","data":[1]`), "", "inputs[0].shape[0] must be"},
		{input(`"shape":[65536,65536],"datatype":"FP32","data":[1]`), "", "more than 2^31 elements"},
		{input(`"shape":[1,1,1,1,1,1,1,1,1,1],"datatype":"FP32","data":[1]`), "", "more than 8 dimensions"},
		{input(`"shape":[2],"datatype":"FP32","data":[1]`), "", "inputs[0].data has 1 elements, and the shape [2] needs 2"},
		{input(`"shape":[1],"datatype":"FP32","data":[1,[2]]`), "", "inputs[0].data has 2 elements, and the shape [1] needs 1"},
		{input(`"shape":[1],"datatype":"FP32","data":1`), "", "inputs[0].data must be an array, and is a number"},
		{input(`"shape":[1],"datatype":"FP32","data":["1"]`), "", "inputs[0].data[0] must be a number, and is a string"},
		{input(`"shape":[1],"datatype":"INT32","data":[null]`), "", "inputs[0].data[0] must be a number, and is null"},
		{input(`"shape":[1],"datatype":"UINT8","data":[-1]`), "", "inputs[0].data[0] must be a whole number that uint8 holds"},
		{input(`"shape":[1],"datatype":"BYTES","data":[1]`), "", "inputs[0].data[0] must be a string, and is a number"},
		{input(`"shape":[1],"datatype":"FP16","data":[1]`), "", "FP16, which only binary data carry"},
		{input(`"shape":[1],"datatype":"FP32","data":[` + strings.Repeat("[", 20) + strings.Repeat("]", 20) + `]`), "", "nested deeper"},
		{input(`"shape":[1],"datatype":"FP32","data":[1],"parameters":{"binary_data_size":4}`), "abcd", "has data and a binary_data_size"},
		{input(`"shape":[1],"datatype":"FP32","parameters":{"binary_data_size":5}`), "abcde", "FP32[1] needs 4"},
		{input(`"shape":[1],"datatype":"FP32","parameters":{"binary_data_size":4}`), "abc", "it is 4, and 3 bytes are left"},
		{input(`"shape":[1],"datatype":"FP32","parameters":{"binary_data_size":4}`), "abcdef", "is followed by 2 bytes"},
		{input(`"shape":[1],"datatype":"FP32","parameters":{"binary_data_size":-4}`), "abcd", "must be a number of bytes"},
		{input(`"shape":[1],"datatype":"BYTES","parameters":{"binary_data_size":5}`), "\xff\xff\xff\xffa", "ends before the last of 1 elements"},
		{input(`"shape":[1],"datatype":"BYTES","parameters":{"binary_data_size":6}`), "\x01\x00\x00\x00ab", "1 bytes follow the last of 1 elements"},
		{input(`"shape":[100000000],"datatype":"BYTES","parameters":{"binary_data_size":4}`), "\x00\x00\x00\x00", "ends before the last"},
		{`{"inputs":[` + strings.Repeat(`{"name":"x","shape":[0],"datatype":"FP32","data":[]},`, 10000) + `{}]}`, "", "inputs has more than 64 elements"},
		{`{"inputs":[{"name":"x","sha`, "", "the body is not JSON"},
		{input(`"shape":[1],"datatype":"FP32","data":[1]`) + ` x`, "", "nothing may follow"},
		{`{"parameters":{"timeout":"soon"},"inputs":[]}`, "", "parameters.timeout must be a whole number of microseconds"},
		{`{"outputs":[{}],"inputs":[]}`, "", "outputs[0] has no name"},
	} {
		header := len(test.text)
		if test.rest == "" {
			header = -1
		}
		_, err := codec.DecodeInfer([]byte(test.text+test.rest), header)
		if _, typed := errors.AsType[*codec.Error](err); !typed || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%.120s:\n got %v\nwant %s", test.text, err, test.want)
		}
	}
	if _, err := codec.DecodeInfer([]byte(`{}`), 3); err == nil || !strings.Contains(err.Error(), "shorter than Inference-Header-Content-Length") {
		t.Error(err)
	}
}

func TestAppendInferAnswer(t *testing.T) {
	a := inference.Answer{
		Model: "m", Version: "1", ID: "q", Parameters: []inference.Parameter{{Name: "default", Value: true}},
		Outputs: []serving.Value{
			{Name: "x", DType: serving.Float32, Shape: []int{1, 2}, Data: make([]byte, 8)},
			{Name: "t", DType: serving.Blob, Shape: []int{2}, Data: serving.AppendElement(serving.AppendElement(nil, `a"`), "")},
			{Name: "b", DType: serving.Int8, Shape: []int{3}, Data: []byte{1, 2, 3}},
		},
	}
	binary := []bool{false, false, true}
	body, header, err := codec.AppendInferAnswer([]byte("-"), &a, binary)
	want := `{"model_name":"m","model_version":"1","id":"q","parameters":{"default":true},"outputs":[{"name":"x","datatype":"FP32","shape":[1,2],"data":[0.0,0.0]},{"name":"t","datatype":"BYTES","shape":[2],"data":["a\"",""]},{"name":"b","datatype":"INT8","shape":[3],"parameters":{"binary_data_size":3}}]}`
	if err != nil || header != len(want) || string(body) != "-"+want+"\x01\x02\x03" || !json.Valid([]byte(want)) {
		t.Errorf("%s, %d, %v", body, header, err)
	}
	a.Outputs[0].Data = bytes.Repeat([]byte{0xff}, 8)
	if _, _, err := codec.AppendInferAnswer(nil, &a, binary); err == nil {
		t.Error("NaN was written as JSON")
	}
}

// FuzzDecodeInfer: what is taken is a value of its datatype and shape, and comes back as it was through a
// request in which all of it is binary.
func FuzzDecodeInfer(f *testing.F) {
	f.Add([]byte(`{"inputs":[{"name":"x","shape":[1,2],"datatype":"FP32","data":[1,2]}]}`), -1)
	f.Add([]byte(`{"inputs":[{"name":"t","shape":[2],"datatype":"BYTES","parameters":{"binary_data_size":11}}]}`+"\x01\x00\x00\x00a\x02\x00\x00\x00bc"), 93)
	f.Add([]byte(`{"inputs":[{"name":"t","shape":[1],"datatype":"BOOL","data":[true]}],"outputs":[{"name":"a"}]}`), -1)
	f.Fuzz(func(t *testing.T, body []byte, header int) {
		got, err := codec.DecodeInfer(body, header)
		if err != nil {
			if _, typed := errors.AsType[*codec.Error](err); !typed {
				t.Fatalf("error of type %T", err)
			}
			return
		}
		type parameters struct {
			Size int `json:"binary_data_size"`
		}
		type input struct {
			Name       string     `json:"name"`
			Shape      []int      `json:"shape"`
			Datatype   string     `json:"datatype"`
			Parameters parameters `json:"parameters"`
		}
		var inputs []input
		var rest []byte
		for _, v := range got.Inputs {
			tensor := serving.Tensor{Name: v.Name, Type: serving.ElementType(v.DType), Shape: v.Shape}
			if err := tensor.Fits(&v); err != nil && v.DType != serving.Bool { // of which binary data may have any byte
				t.Fatal(err)
			}
			inputs = append(inputs, input{v.Name, v.Shape, v.DType.Datatype(), parameters{len(v.Data)}})
			rest = append(rest, v.Data...)
		}
		text, err := json.Marshal(map[string]any{"inputs": inputs})
		require.NoError(t, err)
		again, err := codec.DecodeInfer(append(text, rest...), len(text))
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		for i, v := range again.Inputs {
			if v.DType != got.Inputs[i].DType || !bytes.Equal(v.Data, got.Inputs[i].Data) {
				t.Fatalf("%v became %v", got.Inputs[i], v)
			}
		}
	})
}

package oipservice

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"strings"
	"testing"

	"github.com/topsail-serving/topsail/containers/gocontainer"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/test/require"
)

func float64s(list ...float64) (data []byte) {
	for _, x := range list {
		data = binary.LittleEndian.AppendUint64(data, math.Float64bits(x))
	}
	return data
}

func float32s(list ...float32) (data []byte) {
	for _, x := range list {
		data = binary.LittleEndian.AppendUint32(data, math.Float32bits(x))
	}
	return data
}

var (
	image  = serving.Tensor{Name: "image", Type: serving.ElementType(serving.Uint8), Shape: []int{-1, 2}}
	title  = serving.Tensor{Name: "title", Type: serving.ElementType(serving.String)}
	scores = serving.Tensor{Name: "scores", Type: serving.ElementType(serving.Float32), Shape: []int{-1}}
	label  = serving.Tensor{Name: "label", Type: serving.ElementType(serving.String)}
	pair   = &serving.Signature{Inputs: []serving.Tensor{image, title}, Outputs: []serving.Tensor{label, scores}}
)

const pairMetadata = `{"name": "m", "inputs": [{"name": "title", "datatype": "BYTES", "shape": [-1]}, {"name": "image", "datatype": "UINT8", "shape": [-1, -1, 2]}],
	"outputs": [{"name": "scores", "datatype": "FP32", "shape": [-1, 3]}, {"name": "label", "datatype": "BYTES", "shape": [-1]}]}`

var pairQuery = []serving.Value{
	{Name: "image", DType: serving.Uint8, Shape: []int{2, 2}, Data: []byte{1, 2, 3, 4}},
	{Name: "title", DType: serving.String, Data: []byte("a \"b\"")},
}

// A signature against a server that takes JSON alone, and one that takes bytes.
func TestNamedTensors(t *testing.T) {
	s := newServer(t)
	s.metadata = pairMetadata
	for _, s.binary = range []bool{false, true} {
		if s.binary {
			s.answers(`{"outputs": [{"name": "scores", "datatype": "FP32", "shape": [1, 2], "parameters": {"binary_data_size": 8}}, {"name": "label", "datatype": "BYTES", "shape": [1], "parameters": {"binary_data_size": 7}}, {"name": "more", "datatype": "INT64", "shape": [1], "data": [7]}]}`,
				append(float32s(0.5, -2), 3, 0, 0, 0, 'c', 'a', 't')...)
		} else {
			s.answers(`{"outputs": [{"name": "more", "datatype": "BOOL", "shape": [1, 2], "data": [true, false]}, {"name": "scores", "datatype": "FP32", "shape": [1, 2], "data": [[0.5, -2]]}, {"name": "label", "datatype": "BYTES", "shape": [1], "data": ["cat"]}]}`)
		}
		service, err := s.open(t, contract{serving.Tensors, pair})
		require.NoError(t, err)
		r := service.asks(t.Context(), pairQuery...)
		if r.Err != nil || len(r.Outputs) != 2 || text(r.Outputs[0])+"; "+text(r.Outputs[1]) != `label string "cat"; scores float32[2] [0.5,-2.0]` {
			t.Errorf("the outputs are %v, %v", r.Outputs, r.Err)
		}
		in := s.request.Inputs
		got := fmt.Sprintf("%s %s %v %s; %s %s %v %s; %v %x %v", in[0].Name, in[0].Datatype, in[0].Shape, in[0].Data, in[1].Name, in[1].Datatype, in[1].Shape, in[1].Data, s.request.Outputs, s.raw, s.request.Parameters)
		want := `image UINT8 [1 2 2] [[[1,2],[3,4]]]; title BYTES [1] ["a \"b\""]; [{label} {scores}]  map[]`
		if s.binary {
			want = `image UINT8 [1 2 2] ; title BYTES [1] ; [{label} {scores}] 0102030405000000` + fmt.Sprintf("%x", `a "b"`) + ` map[binary_data_output:true]`
		}
		if got != want || s.path != "/v2/models/m/infer" || s.key != "Bearer k" {
			t.Errorf("the request is\n%s\nnot\n%s\nto %s with %q", got, want, s.path, s.key)
		}
	}
}

// One element of a query may have a dimension at the server, or not.
func TestSingleElements(t *testing.T) {
	one := &serving.Signature{Inputs: []serving.Tensor{title}, Outputs: []serving.Tensor{label}}
	for shape, want := range map[string]string{"[-1, 1]": `[1 1] [["a"]]`, "[-1]": `[1] ["a"]`} {
		s := newServer(t)
		s.metadata = `{"inputs": [{"name": "title", "datatype": "BYTES", "shape": ` + shape + `}]}`
		s.answers(`{"outputs": [{"name": "label", "datatype": "BYTES", "shape": [1, 1], "data": ["cat"]}]}`)
		service, err := s.open(t, contract{serving.Tensors, one})
		if err != nil {
			t.Error(err)
			continue
		}
		r := service.asks(t.Context(), serving.Value{Name: "title", DType: serving.String, Data: []byte("a")})
		if got := fmt.Sprintf("%v %s", s.request.Inputs[0].Shape, s.request.Inputs[0].Data); r.Err != nil || got != want || text(r.Outputs[0]) != `label string "cat"` {
			t.Errorf("%s is sent as %s and answered by %v, %v", shape, got, r.Outputs, r.Err)
		}
	}
}

// A version without a signature, as what the server wants of it.
func TestVectors(t *testing.T) {
	for _, c := range []struct {
		of            serving.InputType
		data          []byte
		metadata      string
		wantShape     string
		wantData      string
		answer, wants string
	}{
		{serving.Doubles, float64s(1, 2.5), `{"name": "x", "datatype": "FP32", "shape": [-1, -1]}`, "x FP32 [1 2]", "[[1.0,2.5]]",
			`"FP64", "shape": [1, 1], "data": [[3.5]]`, " float64[] 3.5"},
		{serving.Doubles, float64s(1, 2, 3, 4), `{"name": "x", "datatype": "INT64", "shape": [-1, 2, -1]}`, "x INT64 [1 2 2]", "[[[1,2],[3,4]]]",
			`"INT64", "shape": [1, 2], "data": [9007199254740993, -1]`, " int64[2] [9007199254740993,-1]"},
		{serving.Ints, []byte{1, 0, 0, 0}, `{"name": "x", "datatype": "INT32", "shape": [1]}`, "x INT32 [1]", "[1]",
			`"UINT64", "shape": [], "data": [18446744073709551615]`, " uint64[] 18446744073709551615"},
		{serving.Floats, float32s(0.25), ``, "input FP32 [1 1]", "[[0.25]]", `"FP32", "shape": [1, 2], "data": [null, 1]`, " float32[2] [ output has the number NaN, which JSON cannot represent"},
		{serving.Strings, []byte("é"), `{"name": "x", "datatype": "BYTES", "shape": [-1, 1]}`, "x BYTES [1 1]", `[["é"]]`, `"BYTES", "shape": [1, 1], "data": ["a"]`, ` string "a"`},
		{serving.Strings, []byte("e"), `{"name": "x", "datatype": "BYTES", "shape": [-1]}`, "x BYTES [1]", `["e"]`, `"BYTES", "shape": [1, 2], "data": ["a", ""]`, ` string[2] ["a",""]`},
		{serving.Bytes, []byte{7}, `{"name": "x", "datatype": "UINT8", "shape": [-1, -1]}`, "x UINT8 [1 1]", "[[7]]", `"BOOL", "shape": [1], "data": [true]`, " bool[] true"},
		{serving.Bytes, []byte("ab"), `{"name": "x", "datatype": "BYTES", "shape": [-1]}`, "x BYTES [1]", `["ab"]`, `"FP64", "shape": [1, 1, 2], "data": [[1, 2]]`, " float64[1 2] [[1.0,2.0]]"},
	} {
		s := newServer(t)
		s.metadata = `{"inputs": [` + c.metadata + `]}`
		s.answers(`{"outputs": [{"name": "y", "datatype": ` + c.answer + `}, {"name": "z", "datatype": "BOOL", "shape": [1], "data": [true]}]}`)
		service, err := s.open(t, contract{inputType: c.of})
		if err != nil {
			t.Errorf("%v: %v", c.of, err)
			continue
		}
		r := service.asks(t.Context(), vectorOf(c.of, c.data))
		in := s.request.Inputs[0]
		if got := fmt.Sprintf("%s %s %v", in.Name, in.Datatype, in.Shape); got != c.wantShape || string(in.Data) != c.wantData {
			t.Errorf("%v is sent as %s %s, not %s %s", c.of, got, in.Data, c.wantShape, c.wantData)
		}
		if r.Err != nil || len(r.Outputs) != 1 || !strings.HasPrefix(text(r.Outputs[0]), strings.SplitN(c.wants, " output", 2)[0]) {
			t.Errorf("%v is answered with %v, %v; want %s", c.of, r.Outputs, r.Err, c.wants)
		}
	}
}

// What the server takes and the version does not say alike keeps it from being ready, with the reason.
func TestLayoutsThatDoNotFit(t *testing.T) {
	one := func(name, datatype, shape string) string {
		return `{"inputs": [{"name": "` + name + `", "datatype": "` + datatype + `", "shape": ` + shape + `}]}`
	}
	half := serving.Tensor{Name: "x", Type: serving.ElementType(serving.Float16), Shape: []int{2}}
	for _, c := range []struct {
		want, metadata string
		of             contract
	}{
		{`has no input "image": it has ["x"]`, one("x", "FP32", "[-1, 2]"), contract{serving.Tensors, pair}},
		{`"title" is FP32 on the server, and string in the signature`, strings.Replace(pairMetadata, "BYTES", "FP32", 1), contract{serving.Tensors, pair}},
		{`"image" has the shape [-1] on the server, and uint8[-1,2]`, strings.Replace(pairMetadata, "[-1, -1, 2]", "[-1]", 1), contract{serving.Tensors, pair}},
		{`takes ["title" "image"], and the signature has 1`, pairMetadata, contract{serving.Tensors, &serving.Signature{Inputs: pair.Inputs[:1]}}},
		{`give the version a signature with these inputs`, pairMetadata, contract{inputType: serving.Doubles}},
		{`takes FP32, and the version has input_type "strings"`, one("x", "FP32", "[-1]"), contract{inputType: serving.Strings}},
		{`takes BYTES, and the version has input_type "doubles"`, one("x", "BYTES", "[-1]"), contract{inputType: serving.Doubles}},
		{`"FLOAT" is unknown`, one("x", "FLOAT", "[-1]"), contract{inputType: serving.Doubles}},
		{`only binary tensors carry`, one("x", "FP16", "[-1, 2]"), contract{serving.Tensors, &serving.Signature{Inputs: []serving.Tensor{half}}}},
		{`is not the metadata of a model`, `[]`, contract{inputType: serving.Doubles}},
	} {
		s := newServer(t)
		s.metadata = c.metadata
		service, err := s.open(t, c.of)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %s", err, c.want)
		}
		if r := service.asks(t.Context(), pairQuery...); r.Err == nil || !strings.Contains(r.Err.Error(), "not said yet") {
			t.Errorf("a query is %v", r.Err)
		}
	}
}

func TestQueriesThatCannotBeSent(t *testing.T) {
	s := newServer(t)
	s.metadata = `{"inputs": [{"name": "x", "datatype": "INT8", "shape": [-1, 3, 2]}]}`
	service, err := s.open(t, contract{inputType: serving.Doubles})
	require.NoError(t, err)
	for want, v := range map[string]serving.Value{
		"128 cannot be int8": vectorOf(serving.Doubles, float64s(128, 0, 0, 0, 0, 0)),
		"0.5 cannot be int8": vectorOf(serving.Doubles, float64s(0.5, 0, 0, 0, 0, 0)),
		"5 elements do not":  vectorOf(serving.Doubles, float64s(1, 2, 3, 4, 5)),
		"12 elements do not": vectorOf(serving.Doubles, make([]byte, 96)),
	} {
		if r := service.asks(t.Context(), v); r.Err == nil || !strings.Contains(r.Err.Error(), want) {
			t.Errorf("%v, want %s", r.Err, want)
		}
	}
	if r := service.asks(t.Context(), pairQuery...); r.Err == nil || !strings.Contains(r.Err.Error(), "2 inputs") {
		t.Error(r.Err)
	}
	s.metadata = `{"inputs": [{"name": "x", "datatype": "FP32", "shape": [-1, -1]}]}`
	if service, err = s.open(t, contract{inputType: serving.Doubles}); err != nil {
		t.Fatal(err)
	}
	if r := service.asks(t.Context(), vectorOf(serving.Doubles, float64s(math.NaN()))); r.Err == nil || !strings.Contains(r.Err.Error(), "takes no binary tensors") {
		t.Error(r.Err)
	}
}

func TestAnswersThatAreWrong(t *testing.T) {
	s := newServer(t)
	s.metadata = pairMetadata
	service, err := s.open(t, contract{serving.Tensors, pair})
	require.NoError(t, err)
	scores := func(rest string) string { return `{"outputs": [{"name": "scores", "datatype": "FP32", ` + rest + `}]}` }
	for want, answer := range map[string]string{
		"is not JSON":               `{`,
		"without an output":         `{"outputs": []}`,
		`without output "label"`:    scores(`"shape": [1, 1], "data": [1]`),
		"needs 8 bytes, and 4 came": scores(`"shape": [1, 2], "data": [1]`),
		"more than 2^31":            scores(`"shape": [2147483647, 2147483647], "data": [1]`),
		"has no data":               scores(`"shape": [1]`),
		"a text cannot be FP32":     scores(`"shape": [1], "data": ["a"]`),
		"true cannot be FP32":       scores(`"shape": [1], "data": [true]`),
		"not a list of elements":    scores(`"shape": [1], "data": {"a": 1}`),
		"1e999 cannot be FP32":      scores(`"shape": [1], "data": [1e999]`),
		"9 bytes by its parameters": scores(`"shape": [1], "parameters": {"binary_data_size": 9}`),
		`"X" is unknown`:            `{"outputs": [{"name": "scores", "datatype": "X", "shape": [1], "data": [1]}]}`,
		"null cannot be INT8":       `{"outputs": [{"name": "scores", "datatype": "INT8", "shape": [1], "data": [null]}]}`,
		"1.5 cannot be INT64":       `{"outputs": [{"name": "scores", "datatype": "INT64", "shape": [1], "data": [1.5]}]}`,
		"the data end in element 0": `{"outputs": [{"name": "scores", "datatype": "BYTES", "shape": [1], "data": []}]}`,
	} {
		s.answers(answer)
		if r := service.asks(t.Context(), pairQuery...); r.Err == nil || !strings.Contains(r.Err.Error(), want) {
			t.Errorf("%s is %v, want %s", answer, r.Err, want)
		}
	}
	s.answers(scores(`"shape": [1], "parameters": {"binary_data_size": 4}`), 0, 0, 0, 0, 1)
	if r := service.asks(t.Context(), pairQuery...); r.Err == nil || !strings.Contains(r.Err.Error(), "1 bytes follow") {
		t.Error(r.Err)
	}
	if _, err := service.layout.Load().answer([]byte("{}"), "3"); err == nil || !strings.Contains(err.Error(), `"3" of its 2 bytes`) {
		t.Error(err)
	}
}

// Whether another replica may be asked depends on what the server says.
func TestRefusals(t *testing.T) {
	s := newServer(t)
	service, err := s.open(t, contract{inputType: serving.Doubles})
	if err == nil {
		t.Fatal("a server without the model is ready")
	}
	s.metadata = `{}`
	require.NoError(t, service.learn(t.Context()))
	x := vectorOf(serving.Doubles, float64s(1))
	for status, want := range map[int]gocontainer.Unavailable{400: {}, 500: {}, 429: {Full: true}, 503: {Full: true}, 502: {Why: "x"}, 504: {Why: "x"}} {
		s.infer = func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			io.WriteString(w, `{"error": "no"}`)
		}
		r := service.asks(t.Context(), x)
		u, unavailable := errors.AsType[gocontainer.Unavailable](r.Err)
		if _, bad := errors.AsType[gocontainer.BadInput](r.Err); bad != (status == 400) {
			t.Errorf("%d: %T", status, r.Err)
		}
		if r.Err == nil || unavailable != (want != gocontainer.Unavailable{}) || u.Full != want.Full || !strings.HasSuffix(r.Err.Error(), http.StatusText(status)+": no") {
			t.Errorf("%d is %v", status, r.Err)
		}
	}
	s.infer = func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusInternalServerError)
		io.WriteString(w, "begin"+strings.Repeat("x", 5000)+"end")
	}
	if r := service.asks(t.Context(), x); len(r.Err.Error()) > 700 || !strings.HasSuffix(r.Err.Error(), "end") {
		t.Error(r.Err)
	}
	s.infer = func(w http.ResponseWriter, q *http.Request) { <-q.Context().Done() }
	ctx, cancel := context.WithCancel(t.Context())
	go cancel()
	if r := service.asks(ctx, x); r.Err == nil {
		t.Error("a cancelled query is answered")
	}
	s.Close()
	if r := service.asks(t.Context(), x); !strings.Contains(fmt.Sprint(r.Err), "cannot be reached") {
		t.Error(r.Err)
	} else if _, unavailable := errors.AsType[gocontainer.Unavailable](r.Err); !unavailable {
		t.Errorf("a server that has gone is %v", r.Err)
	}
}

func TestServicesThatAreRefused(t *testing.T) {
	if err := Serve(t.Context(), Config{URL: "localhost"}, gocontainer.Config{}); err == nil || !strings.Contains(err.Error(), "not the URL of a server") {
		t.Error(err)
	}
}

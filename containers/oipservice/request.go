package oipservice

import (
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/topsail-serving/topsail/serving"
)

// request is the body of a request for one query; its first head bytes are JSON.
func (l *layout) request(values []serving.Value) (body []byte, head int, err error) {
	if len(values) != len(l.inputs) {
		return nil, 0, fmt.Errorf("the query has %d inputs, and the model takes %d", len(values), len(l.inputs))
	}
	b := []byte(`{"inputs":[`)
	var tensors []serving.Value
	for i := range l.inputs {
		v, err := l.inputs[i].tensor(values[i])
		if err != nil {
			return nil, 0, fmt.Errorf("input %q: %w", l.inputs[i].name, err)
		}
		if i > 0 {
			b = append(b, ',')
		}
		b = appendText(append(b, `{"name":`...), v.Name)
		b = append(append(append(b, `,"datatype":"`...), v.DType.Datatype()...), `","shape":`...)
		b = appendInts(b, v.Shape)
		if l.binary {
			b = strconv.AppendInt(append(b, `,"parameters":{"binary_data_size":`...), int64(len(v.Data)), 10)
			b, tensors = append(b, '}'), append(tensors, v)
		} else if b, err = appendData(append(b, `,"data":`...), v); err != nil {
			return nil, 0, fmt.Errorf("input %q: %w", v.Name, err)
		}
		b = append(b, '}')
	}
	b = append(b, ']')
	for i, t := range l.outputs {
		b = append(b, [2]string{`,"outputs":[{"name":`, `,{"name":`}[min(i, 1)]...)
		b = append(appendText(b, t.Name), '}')
		if i == len(l.outputs)-1 {
			b = append(b, ']')
		}
	}
	if l.binary {
		b = append(b, `,"parameters":{"binary_data_output":true}`...)
	}
	b = append(b, '}')
	head = len(b)
	for _, v := range tensors {
		b = append(b, v.Data...)
	}
	return b, head, nil
}

// tensor is a value of a query as the server takes it.
func (in *input) tensor(v serving.Value) (serving.Value, error) {
	t := serving.Value{Name: in.name, DType: in.dtype, Shape: v.Shape, Data: v.Data}
	switch {
	case v.Name == "": // of a version without a signature
		if in.dtype == serving.Blob || in.dtype == serving.String {
			t.Data, t.Shape = serving.AppendElement(nil, v.Data), []int{1}
			if len(in.shape) > 1 {
				t.Shape = []int{1, 1}
			}
			return t, nil
		}
		var err error
		if v.DType != in.dtype {
			if t.Data, err = serving.ConvertNumbers(v.DType, v.Data, in.dtype); err != nil {
				return t, err
			}
		}
		t.Shape, err = in.shaped(len(t.Data) / in.dtype.Size())
		return t, err
	case in.dtype.Size() == 0 && len(v.Shape) == 0: // a single text stands alone here
		t.Data = serving.AppendElement(nil, v.Data)
	}
	if in.batch {
		t.Shape = append([]int{1}, v.Shape...)
	}
	if in.alone {
		t.Shape = []int{1, 1}
	}
	return t, nil
}

func appendInts(b []byte, list []int) []byte {
	b = append(b, '[')
	for i, n := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, int64(n), 10)
	}
	return append(b, ']')
}

func appendText(b []byte, text string) []byte {
	quoted, _ := json.Marshal(text) // a string cannot fail
	return append(b, quoted...)
}

// appendData appends the elements of a tensor as JSON.
func appendData(b []byte, v serving.Value) ([]byte, error) {
	if v.DType.Size() == 0 { // the protocol has texts there
		v.DType = serving.String
	}
	b, err := serving.AppendJSON(b, v)
	if err != nil {
		err = fmt.Errorf("the server takes no binary tensors, and JSON cannot carry this one: %w", err)
	}
	return b, err
}

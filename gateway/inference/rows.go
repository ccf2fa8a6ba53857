package inference

import (
	"encoding/json"
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/topsail-serving/topsail/rpc"
	"github.com/topsail-serving/topsail/serving"
)

// Rows are the queries of a request: one for each row of its values, whose first dimension is the
// batch. A value of the rank of a single query is one row. What the inputs hold is copied, but for what is in around,
// as in Request. There are at most so many rows. Errors are for clients.
func Rows(app *serving.App, tensors []serving.Tensor, values []serving.Value, around []byte, most int) ([]serving.Input, error) {
	if app.InputType != serving.Tensors && len(values) == 1 { // what clients call the only input means nothing
		only := values[0]
		only.Name = tensors[0].Name
		values = []serving.Value{only}
	}
	sorted, n, err := match(tensors, values)
	if err != nil {
		return nil, err
	}
	if n > most {
		return nil, fmt.Errorf("the batch has %d rows, and may have %d: send several requests", n, most)
	}
	cut := make([]cutter, len(tensors))
	for i := range tensors {
		cut[i] = newCutter(&tensors[i], sorted[i])
	}
	inputs := make([]serving.Input, n)
	row := make([]serving.Value, len(tensors))
	for at := range inputs {
		for i := range cut {
			if row[i], err = cut[i].next(at); err != nil {
				return nil, err
			}
		}
		inputs[at].Type = app.InputType
		switch {
		case app.InputType == serving.Tensors && n > 1:
			inputs[at].Data = payload(row, nil)
		case app.InputType == serving.Tensors:
			inputs[at].Data = payload(row, around)
		case around != nil:
			inputs[at].Data = slices.Clip(row[0].Data)
		default:
			inputs[at].Data = append(make([]byte, 0, len(row[0].Data)), row[0].Data...)
		}
	}
	return inputs, nil
}

// payload is the payload of a row: of the only value around its data, if these are in memory that may be kept.
func payload(row []serving.Value, around []byte) []byte {
	if len(row) == 1 {
		if b := rpc.WrapPayload(around, &row[0]); b != nil {
			return b
		}
	}
	size := 2
	for i := range row {
		size += rpc.ValueSize(&row[i])
	}
	return rpc.AppendPayload(make([]byte, 0, size), row...)
}

// match sorts values as the tensors are, and says how many rows each has.
func match(tensors []serving.Tensor, values []serving.Value) (sorted []*serving.Value, rows int, err error) {
	sorted = make([]*serving.Value, len(tensors))
	for i := range values {
		v := &values[i]
		at := serving.Index(tensors, v.Name)
		switch {
		case at < 0:
			return nil, 0, fmt.Errorf("input %.60q is unknown: the model has %s", v.Name, names(tensors))
		case sorted[at] != nil:
			return nil, 0, fmt.Errorf("input %q comes twice", v.Name)
		}
		sorted[at] = v
		n, err := rowsOf(&tensors[at], v)
		switch {
		case err != nil:
			return nil, 0, err
		case rows == 0:
			rows = n
		case rows != n:
			return nil, 0, fmt.Errorf("input %q has %d rows, and others have %d", v.Name, n, rows)
		}
	}
	for i, v := range sorted {
		if v == nil {
			return nil, 0, fmt.Errorf("input %q is missing: it is %s", tensors[i].Name, Text(serving.DType(tensors[i].Type), batched(&tensors[i])))
		}
	}
	return sorted, rows, nil
}

func names(tensors []serving.Tensor) (list string) {
	for i, t := range tensors {
		if i > 0 {
			list += ", "
		}
		list += fmt.Sprintf("%q", t.Name)
	}
	return list
}

// rowsOf is how many rows a value has, or why it is no value of the tensor.
func rowsOf(t *serving.Tensor, v *serving.Value) (int, error) {
	shape := v.Shape
	if len(t.Shape) == 0 && len(shape) == 2 && shape[1] == 1 {
		shape = shape[:1] // as clients send columns
	}
	rows := 1
	if len(shape) == len(t.Shape)+1 {
		rows, shape = shape[0], shape[1:]
	}
	fits := v.DType.Datatype() == serving.DType(t.Type).Datatype() && len(shape) == len(t.Shape) && rows > 0
	for i := 0; fits && i < len(shape); i++ {
		fits = t.Shape[i] < 0 || t.Shape[i] == shape[i]
	}
	if !fits {
		return 0, fmt.Errorf("input %q is %s, and %s is wanted", t.Name, Text(v.DType, v.Shape), Text(serving.DType(t.Type), batched(t)))
	}
	return rows, nil
}

// cutter takes the rows off a value.
type cutter struct {
	tensor *serving.Tensor
	shape  []int // of a row
	size   int   // bytes of a row of numbers; 0: of texts
	each   int   // elements of a row
	data   []byte
}

func newCutter(t *serving.Tensor, v *serving.Value) cutter {
	c := cutter{tensor: t, data: v.Data}
	if len(t.Shape) > 0 {
		c.shape = v.Shape[len(v.Shape)-len(t.Shape):]
	}
	c.each = serving.Elements(c.shape)
	c.size = c.each * serving.DType(t.Type).Size()
	return c
}

// next is the next row; its data may point into the value's.
func (c *cutter) next(row int) (serving.Value, error) {
	v := serving.Value{Name: c.tensor.Name, DType: serving.DType(c.tensor.Type), Shape: c.shape}
	if v.DType.Size() > 0 {
		if len(c.data) < c.size {
			return v, fmt.Errorf("input %q ends in row %d", v.Name, row)
		}
		v.Data, c.data = c.data[:c.size], c.data[c.size:]
		return v, nil
	}
	all := c.data
	for range c.each {
		element, rest, ok := serving.NextElement(c.data)
		if !ok {
			return v, fmt.Errorf("input %q ends in row %d", v.Name, row)
		}
		if err := checkText(v.DType, element); err != nil {
			return v, fmt.Errorf("input %q, row %d: %w", v.Name, row, err)
		}
		if c.data = rest; len(c.shape) == 0 {
			v.Data = element
			return v, nil
		}
	}
	v.Data = all[:len(all)-len(c.data)]
	return v, nil
}

func checkText(t serving.DType, element []byte) error {
	switch {
	case t == serving.String && !utf8.Valid(element):
		return fmt.Errorf("the text is not UTF-8")
	case t == serving.JSON && !json.Valid(element):
		return fmt.Errorf("the text is not valid JSON")
	}
	return nil
}

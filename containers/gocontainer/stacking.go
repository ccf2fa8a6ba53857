package gocontainer

import (
	"fmt"
	"slices"

	"github.com/topsail-serving/topsail/serving"
)

// Stack makes one value of the inputs of a name of a batch, with the batch as its first dimension, as frameworks want it.
// The data are a copy. It fails where the inputs differ in type or shape.
func Stack(queries []Query, name string) (serving.Value, error) {
	var all serving.Value
	for i := range queries {
		in := queries[i].Input(name)
		switch {
		case in == nil:
			return all, fmt.Errorf("query %d of the batch has no input %q", i, name)
		case i == 0:
			all = serving.Value{Name: name, DType: in.DType, Shape: append([]int{len(queries)}, in.Shape...)}
		case in.DType != all.DType || !slices.Equal(in.Shape, all.Shape[1:]):
			return all, fmt.Errorf("input %q of query %d is %v%v, and of the first %v%v: answer them one by one", name, i, in.DType, in.Shape, all.DType, all.Shape[1:])
		}
		if in.DType.Size() == 0 && len(in.Shape) == 0 { // a single text is the bytes alone
			all.Data = serving.AppendElement(all.Data, in.Data)
		} else {
			all.Data = append(all.Data, in.Data...)
		}
	}
	return all, nil
}

// Rows are the results of a batch of n whose outputs have the batch as their first dimension. Their data are those of the outputs. It
// fails where an output has another number of rows.
func Rows(n int, outputs ...serving.Value) ([]Result, error) {
	results := make([]Result, n)
	for _, all := range outputs {
		if len(all.Shape) == 0 || all.Shape[0] != n {
			return nil, fmt.Errorf("output %q has the shape %v, and the batch %d queries", all.Name, all.Shape, n)
		}
		if err := all.Check(); err != nil {
			return nil, fmt.Errorf("output %q: %w", all.Name, err)
		}
		data := all.Data
		for i := range results {
			row := serving.Value{Name: all.Name, DType: all.DType}
			if len(all.Shape) > 1 {
				row.Shape = all.Shape[1:]
			}
			row.Data, data = cut(all.DType, row.Shape, data)
			results[i].Outputs = append(results[i].Outputs, row)
		}
	}
	return results, nil
}

// cut takes the elements of a shape off data, which have them.
func cut(t serving.DType, shape []int, data []byte) (row, rest []byte) {
	if size := t.Size(); size > 0 {
		n := size * serving.Elements(shape)
		return data[:n:n], data[n:]
	}
	if len(shape) == 0 {
		row, rest, _ = serving.NextElement(data)
		return row, rest
	}
	rest = data
	for range serving.Elements(shape) {
		_, rest, _ = serving.NextElement(rest)
	}
	n := len(data) - len(rest)
	return data[:n:n], rest
}

package gocontainer

import (
	"reflect"
	"strings"
	"testing"

	"github.com/topsail-serving/topsail/serving"
)

// What is stacked and taken apart again is the same, of numbers and of texts, with dimensions and without.
func TestStackAndRows(t *testing.T) {
	texts := func(list ...string) (data []byte) {
		for _, s := range list {
			data = serving.AppendElement(data, s)
		}
		return data
	}
	for _, c := range []struct {
		one, two serving.Value
		shape    []int
	}{
		{serving.Value{DType: serving.Int16, Shape: []int{2}, Data: []byte{1, 0, 2, 0}}, serving.Value{DType: serving.Int16, Shape: []int{2}, Data: []byte{3, 0, 4, 0}}, []int{2, 2}},
		{serving.Value{DType: serving.Bool, Data: []byte{1}}, serving.Value{DType: serving.Bool, Data: []byte{0}}, []int{2}},
		{serving.Text("a"), serving.Text(""), []int{2}},
		{serving.Value{DType: serving.String, Shape: []int{2}, Data: texts("a", "bc")}, serving.Value{DType: serving.String, Shape: []int{2}, Data: texts("", "d")}, []int{2, 2}},
	} {
		c.one.Name, c.two.Name = "x", "x"
		queries := []Query{{Inputs: []serving.Value{{Name: "y"}, c.one}}, {Inputs: []serving.Value{c.two}}}
		all, err := Stack(queries, "x")
		if err != nil || !reflect.DeepEqual(all.Shape, c.shape) || all.Check() != nil {
			t.Errorf("%v is stacked as %+v, %v", c.one, all, err)
			continue
		}
		results, err := Rows(2, all, all)
		if err != nil {
			t.Error(err)
			continue
		}
		for i, want := range []serving.Value{c.one, c.two} {
			if got := results[i].Outputs; len(got) != 2 || !same(got[0], want) || !same(got[1], want) {
				t.Errorf("row %d is %+v, not %+v", i, got, want)
			}
		}
	}
}

func same(a, b serving.Value) bool {
	return a.Name == b.Name && a.DType == b.DType && reflect.DeepEqual(a.Shape, b.Shape) && string(a.Data) == string(b.Data)
}

func TestWhatCannotBeStacked(t *testing.T) {
	x := func(v serving.Value) Query { v.Name = "x"; return Query{Inputs: []serving.Value{v}} }
	for want, queries := range map[string][]Query{
		"query 1 of the batch has no input":       {x(serving.Text("a")), {}},
		"is float64[], and of the first string[]": {x(serving.Text("a")), x(serving.Number(1))},
	} {
		if _, err := Stack(queries, "x"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	for want, v := range map[string]serving.Value{
		"has the shape [3], and the batch 2 queries": {DType: serving.Bool, Shape: []int{3}, Data: make([]byte, 3)},
		"the shape needs 2 bytes, and 3 came":        {DType: serving.Bool, Shape: []int{2}, Data: make([]byte, 3)},
	} {
		if _, err := Rows(2, v); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

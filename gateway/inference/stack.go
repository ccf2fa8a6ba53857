package inference

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/topsail-serving/topsail/serving"
)

// Stack makes the tensors of an answer of the predictions for its rows: those outputs that are wanted,
// or all. A default that fits the type of an output stands in it; one that does not fails, as do rows
// that cannot be stacked because they differ in shape.
func Stack(app *serving.App, predictions []serving.Prediction, wanted []string) ([]serving.Value, error) {
	tensors := outputsOf(app, predictions)
	if len(wanted) == 0 {
		for _, t := range tensors {
			wanted = append(wanted, t.Name)
		}
	}
	values := make([]serving.Value, len(wanted))
	for i, name := range wanted {
		at := serving.Index(tensors, name)
		if at < 0 {
			return nil, fmt.Errorf("output %.60q is unknown: the model has %s", name, names(tensors))
		}
		var err error
		if values[i], err = stackOne(&tensors[at], at, predictions); err != nil {
			return nil, err
		}
	}
	return values, nil
}

// outputsOf are the outputs of an answer: those of the signature, or what the models have put out.
func outputsOf(app *serving.App, predictions []serving.Prediction) []serving.Tensor {
	if outputs := app.Signature.OutputTensors(); len(outputs) > 0 {
		return outputs
	}
	for i := range predictions {
		if full := predictions[i].Full; full != nil {
			var tensors []serving.Tensor
			for _, v := range full.All() {
				name := v.Name
				if full.Values == nil {
					name = DefaultOutput
				}
				tensors = append(tensors, serving.Tensor{Name: name, Type: serving.ElementType(v.DType), Shape: v.Shape})
			}
			return tensors
		}
	}
	return Outputs(app)
}

// stackOne stacks one output of all rows.
func stackOne(t *serving.Tensor, at int, predictions []serving.Prediction) (serving.Value, error) {
	out := serving.Value{Name: t.Name, DType: serving.DType(t.Type)}
	for row := range predictions {
		v, err := outputOf(t, at, &predictions[row])
		if err != nil {
			return out, fmt.Errorf("row %d: %w", row, err)
		}
		switch {
		case row == 0:
			out.Shape = append([]int{len(predictions)}, v.Shape...)
		case !slices.Equal(out.Shape[1:], v.Shape):
			return out, fmt.Errorf("row %d: output %q has shape %v, and that of the rows before it %v: send them in several requests", row, t.Name, v.Shape, out.Shape[1:])
		}
		if out.DType.Size() == 0 && len(v.Shape) == 0 {
			out.Data = serving.AppendElement(out.Data, v.Data)
		} else {
			out.Data = append(out.Data, v.Data...)
		}
	}
	if out.DType == serving.JSON || out.DType == serving.String {
		out.DType = serving.Blob
	}
	return out, nil
}

// outputOf is one output of one row, as a value of the tensor's type.
func outputOf(t *serving.Tensor, at int, p *serving.Prediction) (serving.Value, error) {
	if p.Full == nil {
		return defaultOf(t, at, p)
	}
	all := p.Full.All()
	if at >= len(all) {
		return serving.Value{}, fmt.Errorf("the model has not put out %q", t.Name)
	}
	v := all[at]
	if v.DType == serving.DType(t.Type) {
		return v, nil
	}
	return convert(t, p.Full.JSON, "the output")
}

// defaultOf is the default of an app as an output: its first, if it fits.
func defaultOf(t *serving.Tensor, at int, p *serving.Prediction) (serving.Value, error) {
	if at > 0 {
		return serving.Value{}, fmt.Errorf("there is no default for output %q: %s", t.Name, p.Explanation)
	}
	return convert(t, p.Output, "the default "+string(p.Output))
}

// convert reads JSON as a value of the tensor's type: a number, a text, or a list of numbers.
func convert(t *serving.Tensor, text []byte, what string) (serving.Value, error) {
	v := serving.Value{Name: t.Name, DType: serving.DType(t.Type)}
	if v.DType != serving.JSON && string(text) == "null" { // which is a zero for the decoder
		return v, fmt.Errorf("%s is not %s", what, t)
	}
	if v.DType.Size() == 0 {
		var s string
		if v.DType == serving.JSON || json.Unmarshal(text, &s) != nil {
			v.Data = text
		} else {
			v.Data = []byte(s)
		}
		if len(t.Shape) == 0 {
			return v, nil
		}
		return v, fmt.Errorf("%s is not %s", what, t)
	}
	var numbers []float64
	if bytes.Contains(text, []byte("null")) { // so is an element
		return v, fmt.Errorf("%s is not %s", what, t)
	}
	if len(t.Shape) == 0 {
		numbers = make([]float64, 1)
		if json.Unmarshal(text, &numbers[0]) != nil {
			return v, fmt.Errorf("%s is not %s", what, t)
		}
	} else if len(t.Shape) != 1 || json.Unmarshal(text, &numbers) != nil || t.Shape[0] >= 0 && len(numbers) != t.Shape[0] {
		return v, fmt.Errorf("%s is not %s", what, t)
	} else {
		v.Shape = []int{len(numbers)}
	}
	for _, x := range numbers {
		var err error
		if v.Data, err = serving.AppendNumber(v.Data, v.DType, x); err != nil {
			return v, fmt.Errorf("%s is not %s", what, t)
		}
	}
	return v, nil
}

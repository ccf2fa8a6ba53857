package oipservice

import (
	"fmt"
	"slices"

	"github.com/topsail-serving/topsail/serving"
)

// contract is what the version says of its inputs and outputs.
type contract struct {
	inputType serving.InputType
	signature *serving.Signature
}

// metadata is what a server says of a model.
type metadata struct {
	Inputs  []tensorMetadata `json:"inputs"`
	Outputs []tensorMetadata `json:"outputs"`
}

type tensorMetadata struct {
	Name     string `json:"name"`
	Datatype string `json:"datatype"`
	Shape    []int  `json:"shape"`
}

// layout is how queries become requests.
type layout struct {
	inputs  []input
	outputs []serving.Tensor // of the signature; none: whatever comes
	named   bool             // the version has named inputs, and its outputs keep their names
	binary  bool             // the server takes and answers tensors as bytes
}

// input is one input of the model.
type input struct {
	name  string
	dtype serving.DType
	shape []int // of the server, a batch of one in front included; -1 is any length. Of a vector nil means [1, n]
	alone bool  // one element of a query has a dimension there, as Triton has it
	batch bool  // a dimension of the batch stands in front of that of a query
}

// vectorInput is the name of the one input where the server does not say.
const vectorInput = "input"

// layout compares what the version says with what the server does. The error is for the operator, who has
// to change the version.
func (c contract) layout(model *metadata, extensions []string) (*layout, error) {
	l := &layout{
		outputs: c.signature.OutputTensors(), named: len(c.signature.InputTensors()) > 0,
		binary: slices.Contains(extensions, "binary_tensor_data") || slices.Contains(extensions, "binary_tensor_data_extension"),
	}
	var err error
	if l.named {
		l.inputs, err = namedInputs(c.signature.Inputs, model.Inputs)
	} else {
		l.inputs, err = vector(c.inputType, model.Inputs)
	}
	if err != nil {
		return nil, err
	}
	for _, in := range l.inputs {
		if !l.binary && (in.dtype == serving.Float16 || in.dtype == serving.BFloat16) {
			return nil, fmt.Errorf("input %q is %s, which only binary tensors carry, and the server does not take them", in.name, in.dtype.Datatype())
		}
	}
	return l, nil
}

// namedInputs are those of a signature, as the server has them. Of a server that names none they
// are taken to have a batch in front.
func namedInputs(tensors []serving.Tensor, known []tensorMetadata) (list []input, err error) {
	for _, t := range tensors {
		in := input{name: t.Name, dtype: serving.DType(t.Type), batch: true}
		i := slices.IndexFunc(known, func(k tensorMetadata) bool { return k.Name == t.Name })
		switch {
		case i < 0 && len(known) > 0:
			return nil, fmt.Errorf("the server's model has no input %q: it has %s", t.Name, namesOf(known))
		case i >= 0 && known[i].Datatype != in.dtype.Datatype():
			return nil, fmt.Errorf("input %q is %s on the server, and %s in the signature", t.Name, known[i].Datatype, t)
		case i >= 0 && len(t.Shape) == 0 && len(known[i].Shape) == 2 && known[i].Shape[1] == 1:
			in.alone = true
		case i >= 0 && len(known[i].Shape) == len(t.Shape):
			in.batch = false
		case i >= 0 && len(known[i].Shape) != len(t.Shape)+1:
			return nil, fmt.Errorf("input %q has the shape %v on the server, and %s in the signature, which leaves the batch out", t.Name, known[i].Shape, t)
		}
		list = append(list, in)
	}
	if len(known) > len(list) {
		return nil, fmt.Errorf("the server's model takes %s, and the signature has %d of them", namesOf(known), len(list))
	}
	return list, nil
}

// vector is the one input of a version without a signature. Numbers are converted to what the server takes.
func vector(of serving.InputType, known []tensorMetadata) ([]input, error) {
	in := input{name: vectorInput, dtype: of.DType()}
	switch {
	case len(known) > 1:
		return nil, fmt.Errorf("the server's model takes %s: give the version a signature with these inputs", namesOf(known))
	case len(known) == 1:
		dtype, err := serving.ParseDatatype(known[0].Datatype)
		if err != nil {
			return nil, err
		}
		text := of == serving.Strings
		if text != (dtype == serving.Blob) && !(of == serving.Bytes && dtype == serving.Blob) {
			return nil, fmt.Errorf("the server's model takes %s, and the version has input_type %q", known[0].Datatype, of)
		}
		if !text {
			in.dtype = dtype
		}
		in.name, in.shape = known[0].Name, known[0].Shape
	}
	return []input{in}, nil
}

func namesOf(known []tensorMetadata) string {
	var names []string
	for _, k := range known {
		names = append(names, k.Name)
	}
	return fmt.Sprintf("%q", names)
}

// shaped is the shape of n elements of a vector, as the server wants it.
func (in *input) shaped(n int) ([]int, error) {
	if len(in.shape) < 2 {
		if len(in.shape) == 1 {
			return []int{n}, nil
		}
		return []int{1, n}, nil
	}
	shape, open, rest := slices.Clone(in.shape), -1, n
	shape[0] = 1
	for i, d := range shape[1:] {
		switch {
		case d > 0 && rest%d == 0:
			rest /= d
		case d < 0 && open < 0:
			open = i + 1
		default:
			return nil, fmt.Errorf("%d elements do not have the shape %v that the server wants", n, in.shape)
		}
	}
	if open >= 0 {
		shape[open], rest = rest, 1
	}
	if rest != 1 {
		return nil, fmt.Errorf("%d elements do not have the shape %v that the server wants", n, in.shape)
	}
	return shape, nil
}

package serving

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Signature names the inputs and outputs of a model version or an app. Without inputs the input
// is the one that input_type says; without outputs they are not checked.
type Signature struct {
	Inputs  []Tensor `json:"inputs,omitempty" toml:"inputs" help:"the named inputs"`
	Outputs []Tensor `json:"outputs,omitempty" toml:"outputs" help:"the named outputs; the first is the output of clients that know one"`
}

// Tensor is one input or output of a signature.
type Tensor struct {
	Name  string      `json:"name" required:"yes" help:"the name of the tensor"`
	Type  ElementType `json:"type" required:"yes" help:"bool, int8 to int64, uint8 to uint64, float16, bfloat16, float32, float64, bytes, string or json"`
	Shape []int       `json:"shape,omitempty" help:"the dimensions of one query, without the batch; -1 is any length; empty is a scalar"`
}

// ElementType is the DType of a signature's tensor: any but Opaque.
type ElementType DType

// MarshalText and UnmarshalText let an ElementType stand in JSON and TOML by name.
func (t ElementType) MarshalText() ([]byte, error) { return []byte(DType(t).String()), nil }

func (t *ElementType) UnmarshalText(b []byte) error {
	for d := range dtypes {
		if d := DType(d); d.Known() && d != Opaque && d.String() == string(b) {
			*t = ElementType(d)
			return nil
		}
	}
	return fmt.Errorf("element type %q is unknown: use bool, int8, int16, int32, int64, uint8, uint16, uint32, uint64, float16, bfloat16, float32, float64, bytes, string or json", b)
}

// Bounds of a signature.
const (
	MaxTensors    = 64      // inputs, and outputs
	MaxTensorName = 255     // bytes of a name
	MaxDims       = 8       // of a shape
	MaxDim        = 1 << 31 // of a dimension
)

// Check says everything that is wrong with the signature, or nil. A nil signature is right.
func (s *Signature) Check() error {
	if s == nil {
		return nil
	}
	return errors.Join(checkTensors("inputs", s.Inputs), checkTensors("outputs", s.Outputs))
}

// checkInput says what is wrong with an input that is told by type, length and signature, or nil.
func checkInput(t InputType, length int, s *Signature) error {
	errs := []error{s.Check()}
	named := s != nil && len(s.Inputs) > 0
	switch {
	case !named && t == Tensors:
		errs = append(errs, errors.New("input_type \"tensors\" needs a signature with inputs"))
	case !named && !t.Known():
		errs = append(errs, errors.New("needs an input_type"))
	case named && t != 0 && t != Tensors:
		errs = append(errs, fmt.Errorf("has input_type %q and a signature with inputs: leave one of them out", t))
	}
	if length < 0 || length > 0 && (t.Text() || t == Tensors || named) {
		errs = append(errs, errors.New("input_length must be positive, and is for vectors only"))
	}
	return errors.Join(errs...)
}

// Complete is the input type that is meant: t, or where it is left out that of the signature.
func (s *Signature) Complete(t InputType) InputType {
	if t == 0 && s != nil && len(s.Inputs) > 0 {
		return Tensors
	}
	return t
}

// InputTensors are the inputs of a signature, which may be nil.
func (s *Signature) InputTensors() []Tensor {
	if s == nil {
		return nil
	}
	return s.Inputs
}

// OutputTensors are the outputs of a signature, which may be nil.
func (s *Signature) OutputTensors() []Tensor {
	if s == nil {
		return nil
	}
	return s.Outputs
}

func checkTensors(of string, tensors []Tensor) error {
	var errs []error
	if len(tensors) > MaxTensors {
		errs = append(errs, fmt.Errorf("signature: %s: more than %d", of, MaxTensors))
	}
	for i, t := range tensors {
		wrong := func(why string) { errs = append(errs, fmt.Errorf("signature: %s: %q: %s", of, t.Name, why)) }
		if t.Name == "" || len(t.Name) > MaxTensorName || strings.ContainsFunc(t.Name, func(r rune) bool { return r < ' ' }) {
			wrong(fmt.Sprintf("a name has 1 to %d bytes and no control characters", MaxTensorName))
		}
		if slices.ContainsFunc(tensors[:i], func(before Tensor) bool { return before.Name == t.Name }) {
			wrong("the name is used twice")
		}
		if t.Type == 0 {
			wrong("a type is missing")
		}
		if DType(t.Type) == JSON && len(t.Shape) > 0 {
			wrong("json has no shape: the JSON says it")
		}
		if len(t.Shape) > MaxDims {
			wrong(fmt.Sprintf("the shape has more than %d dimensions", MaxDims))
		}
		for _, d := range t.Shape {
			if d < -1 || d >= MaxDim {
				wrong("a dimension is -1, for any length, or 0 and above")
				break
			}
		}
	}
	return errors.Join(errs...)
}

// String is the tensor as errors say it, such as float32[-1,3].
func (t Tensor) String() string { return typeText(DType(t.Type), t.Shape) }

func typeText(t DType, shape []int) string {
	if len(shape) == 0 {
		return t.String()
	}
	return t.String() + strings.ReplaceAll(fmt.Sprint(shape), " ", ",")
}

// outputType is what a policy can take the tensor for.
func (t Tensor) outputType() OutputType {
	switch {
	case DType(t.Type).Size() > 0 && len(t.Shape) == 0:
		return OutputNumber
	case DType(t.Type).Size() > 0 && len(t.Shape) == 1:
		return OutputVector
	case DType(t.Type) == String && len(t.Shape) == 0:
		return OutputLabel
	}
	return OutputJSON
}

// Fits says why v is no value of the tensor, or nil. Names are not compared.
func (t Tensor) Fits(v *Value) error {
	fits := v.DType == DType(t.Type) && len(v.Shape) == len(t.Shape)
	for i := 0; fits && i < len(t.Shape); i++ {
		fits = t.Shape[i] < 0 || t.Shape[i] == v.Shape[i]
	}
	if !fits {
		return fmt.Errorf("%q is %s, and %s is wanted", t.Name, typeText(v.DType, v.Shape), t)
	}
	if err := v.Check(); err != nil {
		return fmt.Errorf("%q: %w", t.Name, err)
	}
	return nil
}

// FitAll says why values, sorted as the tensors are, are not what the tensors want, or nil.
func FitAll(tensors []Tensor, values []Value) error {
	if len(values) != len(tensors) {
		return fmt.Errorf("there are %d values, and %s wanted", len(values), names(tensors))
	}
	for i := range tensors {
		if values[i].Name != tensors[i].Name {
			return fmt.Errorf("value %d is %q, and %q is wanted", i, values[i].Name, tensors[i].Name)
		}
		if err := tensors[i].Fits(&values[i]); err != nil {
			return err
		}
	}
	return nil
}

// names are those of tensors, for an error.
func names(tensors []Tensor) string {
	quoted := make([]string, len(tensors))
	for i, t := range tensors {
		quoted[i] = fmt.Sprintf("%q", t.Name)
	}
	if len(quoted) == 1 {
		return quoted[0] + " is"
	}
	return strings.Join(quoted, ", ") + " are"
}

// Index is where a tensor of this name is, or -1.
func Index(tensors []Tensor, name string) int {
	return slices.IndexFunc(tensors, func(t Tensor) bool { return t.Name == name })
}

// Accepts says why a model cannot answer for an app with the signature, or nil: it must take what the
// app takes, and if both name outputs, put out what the app puts out.
func (s *Signature) Accepts(model *Signature) error {
	if s == nil && model == nil {
		return nil
	}
	if err := takes(model.InputTensors(), s.InputTensors()); err != nil {
		return err
	}
	for _, out := range s.OutputTensors() {
		if model == nil || len(model.Outputs) == 0 {
			break
		}
		i := Index(model.Outputs, out.Name)
		if i < 0 {
			return fmt.Errorf("the model has no output %q", out.Name)
		}
		if m := model.Outputs[i]; m.Type != out.Type || len(m.Shape) != len(out.Shape) {
			return fmt.Errorf("output %q is %s for the app, and %s for the model", out.Name, out, m)
		}
	}
	return nil
}

// takes says why what fits the inputs of an app may not fit those of a model, or nil: each must be
// there by name and type, with the same dimensions or dimensions of any length.
func takes(model, app []Tensor) error {
	for _, a := range app {
		i := Index(model, a.Name)
		if i < 0 {
			return fmt.Errorf("the model has no %q", a.Name)
		}
		m := model[i]
		same := m.Type == a.Type && len(m.Shape) == len(a.Shape)
		for d := 0; same && d < len(a.Shape); d++ {
			same = m.Shape[d] < 0 || m.Shape[d] == a.Shape[d]
		}
		if !same {
			return fmt.Errorf("%q is %s for the app, and %s for the model", a.Name, a, m)
		}
	}
	if len(model) != len(app) {
		return fmt.Errorf("the model has %s wanted, and the app has %d", names(model), len(app))
	}
	return nil
}

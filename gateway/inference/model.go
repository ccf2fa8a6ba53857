package inference

import (
	"fmt"
	"strings"

	"github.com/topsail-serving/topsail/serving"
)

// Names of the one input and output of an app without a signature.
const (
	DefaultInput  = "input"
	DefaultOutput = "output"
)

// Inputs are the inputs of an app, without the batch. An app without a signature has one, of so many
// elements (0: any number).
func Inputs(app *serving.App, length int) []serving.Tensor {
	if app.InputType == serving.Tensors {
		return app.Signature.InputTensors()
	}
	one := serving.Tensor{Name: DefaultInput, Type: serving.ElementType(app.InputType.DType())}
	if !app.InputType.Text() {
		one.Shape = []int{-1}
		if length > 0 {
			one.Shape[0] = length
		}
	}
	return []serving.Tensor{one}
}

// Outputs are the outputs of an app, without the batch. For an app without a signature the type is a
// guess by its output_type, since its models may answer with anything.
func Outputs(app *serving.App) []serving.Tensor {
	if outputs := app.Signature.OutputTensors(); len(outputs) > 0 {
		return outputs
	}
	one := serving.Tensor{Name: DefaultOutput, Type: serving.ElementType(serving.Float64)}
	switch app.OutputType {
	case serving.OutputVector:
		one.Shape = []int{-1}
	case serving.OutputLabel, serving.OutputJSON:
		one.Type = serving.ElementType(serving.Blob)
	}
	return []serving.Tensor{one}
}

// Text is a type and shape as the protocol's users read them, such as FP32[-1,3].
func Text(t serving.DType, shape []int) string {
	return t.Datatype() + strings.ReplaceAll(fmt.Sprint(shape), " ", ",")
}

// batched is a tensor's shape with the batch in front.
func batched(t *serving.Tensor) []int { return append([]int{-1}, t.Shape...) }

package serving

import "fmt"

// OutputType is what an app takes the outputs of its models for.
type OutputType string

// The types of outputs. A label is compared as a whole: a text or a number; a vector
// is a flat list of numbers.
const (
	OutputAny    OutputType = ""
	OutputNumber OutputType = "number"
	OutputLabel  OutputType = "label"
	OutputVector OutputType = "vector"
	OutputJSON   OutputType = "json"
)

func (t OutputType) check() error {
	switch t {
	case OutputAny, OutputNumber, OutputLabel, OutputVector, OutputJSON:
		return nil
	}
	return fmt.Errorf("output_type %q is unknown: use %q, %q, %q or %q", t, OutputNumber, OutputLabel, OutputVector, OutputJSON)
}

// Outputs is what the app takes the outputs of its models for: output_type, or else what its signature has, if that is
// one output.
func (a *App) Outputs() OutputType {
	if outputs := a.Signature.OutputTensors(); a.OutputType == OutputAny && len(outputs) == 1 {
		return outputs[0].outputType()
	}
	return a.OutputType
}

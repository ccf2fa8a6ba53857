package serving

import "fmt"

// InputType is the type of the one input that an app takes and its models get.
type InputType uint8

const (
	Bytes InputType = iota + 1
	Ints
	Floats
	Doubles
	Strings
	Tensors // those of a Signature
	Chat    // a request of OpenAI's API, as a JSON object
)

// inputTypeNames are the canonical names, as stored and echoed (Clipper's).
var inputTypeNames = [...]string{Bytes: "bytes", Ints: "integers", Floats: "floats", Doubles: "doubles", Strings: "strings", Tensors: "tensors", Chat: "chat"}

// Numeric says whether inputs of the type are vectors of numbers.
func (t InputType) Numeric() bool { return t >= Ints && t <= Doubles }

// Text says whether inputs of the type are texts, which have no dimensions.
func (t InputType) Text() bool { return t == Strings || t == Chat }

// Known says whether t is one of the types above.
func (t InputType) Known() bool { return t >= Bytes && t <= Chat }

func (t InputType) String() string {
	if t.Known() {
		return inputTypeNames[t]
	}
	return fmt.Sprintf("InputType(%d)", uint8(t))
}

// ParseInputType accepts the canonical names and Clipper's aliases.
func ParseInputType(s string) (InputType, error) {
	switch s {
	case "bytes", "byte", "b":
		return Bytes, nil
	case "integers", "ints", "integer", "int", "i":
		return Ints, nil
	case "floats", "float", "f":
		return Floats, nil
	case "doubles", "double", "d":
		return Doubles, nil
	case "strings", "string", "strs", "str", "s":
		return Strings, nil
	case "tensors":
		return Tensors, nil
	case "chat":
		return Chat, nil
	}
	return 0, fmt.Errorf("input type %q is unknown: use bytes, ints, floats, doubles, strings or chat", s)
}

// DType is the element type in which inputs of this type travel; Tensors travel as what they are,
// and have none.
func (t InputType) DType() DType {
	switch t {
	case Bytes:
		return Uint8
	case Ints:
		return Int32
	case Floats:
		return Float32
	case Doubles:
		return Float64
	}
	switch t {
	case Tensors:
		return 0
	case Chat:
		return JSON
	}
	return String
}

// MarshalText and UnmarshalText let an InputType stand in JSON and TOML by name.
func (t InputType) MarshalText() ([]byte, error) {
	if !t.Known() {
		return nil, fmt.Errorf("input type %d is unknown", uint8(t))
	}
	return []byte(t.String()), nil
}

func (t *InputType) UnmarshalText(b []byte) error {
	v, err := ParseInputType(string(b))
	*t = v
	return err
}

// Input is one input of a query. Data holds the elements in little-endian
// order, the text itself for Strings and Chat, or for Tensors a payload of the wire with the values in the
// order of the signature; it is owned by the Input and immutable.
type Input struct {
	Type InputType
	Data []byte
}

// Len is the number of elements: values of a vector, bytes of a text.
func (in Input) Len() int {
	if n := in.Type.DType().Size(); n > 1 {
		return len(in.Data) / n
	}
	return len(in.Data)
}

// Value is the input as the wire carries it: one unnamed vector or text. Tensors are not one.
func (in Input) Value() Value {
	v := Value{DType: in.Type.DType(), Data: in.Data}
	if !in.Type.Text() {
		v.Shape = []int{in.Len()}
	}
	return v
}

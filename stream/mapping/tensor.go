package mapping

import (
	"fmt"
	"slices"
	"strings"

	"github.com/topsail-serving/topsail/rpc"
	"github.com/topsail-serving/topsail/serving"
)

// Tensors is an object whose members are the inputs of a signature as one input.
func Tensors(v any, inputs []serving.Tensor) (serving.Input, error) {
	members, isObject := v.(map[string]any)
	if !isObject {
		return serving.Input{}, fmt.Errorf("it must be an object with %s, not %s", quotedNames(inputs), nounOf(v))
	}
	for name := range members {
		if serving.Index(inputs, name) < 0 {
			return serving.Input{}, fmt.Errorf("it has %.100q, and must have %s", name, quotedNames(inputs))
		}
	}
	return payload(inputs, func(name string) (any, error) {
		member, found := members[name]
		if !found {
			return nil, errMissing
		}
		return member, nil
	})
}

// payload is the tensors of a signature, each of the value that of finds for it, as one input.
func payload(inputs []serving.Tensor, of func(name string) (any, error)) (serving.Input, error) {
	values, size := make([]serving.Value, len(inputs)), 2
	for i := range inputs {
		v, err := of(inputs[i].Name)
		if err == nil {
			values[i], err = tensorOf(&inputs[i], v)
		}
		if err != nil {
			return serving.Input{}, fmt.Errorf("%.100q, which is %s: %w", inputs[i].Name, inputs[i], err)
		}
		size += rpc.ValueSize(&values[i])
	}
	return serving.Input{Type: serving.Tensors, Data: rpc.AppendPayload(make([]byte, 0, size), values...)}, nil
}

func quotedNames(inputs []serving.Tensor) string {
	names := make([]string, len(inputs))
	for i, t := range inputs {
		names[i] = fmt.Sprintf("%q", t.Name)
	}
	return strings.Join(names, ", ")
}

// tensorOf is a value as a tensor: lists, nested as its shape says.
func tensorOf(t *serving.Tensor, v any) (serving.Value, error) {
	out := serving.Value{Name: t.Name, DType: serving.DType(t.Type)}
	if len(t.Shape) > 0 {
		out.Shape = slices.Clone(t.Shape) // -1: not met yet
	}
	if raw, isBytes := v.([]byte); isBytes && len(t.Shape) == 1 && out.DType.Size() > 0 {
		list, err := appendVector(nil, raw, out.DType)
		if err != nil {
			return out, err
		}
		n := len(list) / out.DType.Size()
		if t.Shape[0] >= 0 && t.Shape[0] != n {
			return out, fmt.Errorf("it has %d elements, and must have %d", n, t.Shape[0])
		}
		out.Shape[0], out.Data = n, list
		return out, nil
	}
	err := appendNested(&out, v, 0)
	for i, d := range out.Shape {
		out.Shape[i] = max(d, 0) // below a list without elements
	}
	return out, err
}

// appendNested appends what is depth lists deep in a tensor.
func appendNested(out *serving.Value, v any, depth int) (err error) {
	if depth == len(out.Shape) {
		out.Data, err = appendElement(out.Data, v, out.DType, depth > 0)
		return err
	}
	list, isList := v.([]any)
	if !isList {
		return fmt.Errorf("it must be a list, not %s", nounOf(v))
	}
	if out.Shape[depth] >= 0 && out.Shape[depth] != len(list) {
		return fmt.Errorf("a list has %d elements, and must have %d", len(list), out.Shape[depth])
	}
	out.Shape[depth] = len(list)
	for _, element := range list {
		if err := appendNested(out, element, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// appendElement appends one element as the wire has it, in a list or alone.
func appendElement(data []byte, v any, t serving.DType, inList bool) ([]byte, error) {
	var element []byte
	switch t {
	case serving.Bool:
		on, isBool := v.(bool)
		if !isBool {
			return nil, fmt.Errorf("it must be true or false, not %s", nounOf(v))
		}
		return append(data, byte(oneIf(on))), nil
	case serving.JSON:
		return appendJSON(data, v)
	case serving.String:
		text, isText := v.(string)
		if !isText {
			return nil, fmt.Errorf("it must be a text, not %s", nounOf(v))
		}
		element = []byte(text)
	case serving.Blob:
		switch v := v.(type) {
		case []byte:
			element = v
		case string:
			var err error
			if element, err = decodeBase64(v); err != nil {
				return nil, err
			}
		default:
			return nil, fmt.Errorf("it must be bytes, or a text of them in base64, not %s", nounOf(v))
		}
	default:
		return appendNumber(data, v, t)
	}
	if inList {
		return serving.AppendElement(data, element), nil
	}
	return element, nil
}

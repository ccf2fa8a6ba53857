package mapping

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/topsail-serving/topsail/serving"
)

var (
	errNoNumbers = errors.New("it is empty: give at least one number")
	errNoBytes   = errors.New("it is empty: give at least one byte")
)

// inputOf is a value as an input of type t, of an app whose signature has these inputs where that is
// tensors.
func inputOf(v any, t serving.InputType, inputs []serving.Tensor) (serving.Input, error) {
	var data []byte
	var err error
	switch t {
	case serving.Tensors:
		return Tensors(v, inputs)
	case serving.Strings:
		data, err = textInput(v)
	case serving.Chat:
		if _, isObject := v.(map[string]any); !isObject {
			return serving.Input{}, fmt.Errorf(`it must be an object such as {"messages": [...]}, not %s`, nounOf(v))
		}
		data, err = appendJSON(nil, v)
	case serving.Bytes:
		data, err = bytesInput(v)
	default:
		data, err = appendVector(nil, v, t.DType())
		if err == nil && len(data) == 0 {
			err = errNoNumbers
		}
	}
	return serving.Input{Type: t, Data: data}, err
}

// textInput is a text as it is, and anything else but null as JSON.
func textInput(v any) ([]byte, error) {
	switch v := v.(type) {
	case nil:
		return nil, errors.New("it must be a text, not null")
	case string:
		return []byte(v), nil
	case []byte:
		if !utf8.Valid(v) {
			return nil, errNotUTF8
		}
		return v, nil
	}
	return appendJSON(nil, v)
}

// bytesInput is bytes, or what a text is in base64, as in the predict API.
func bytesInput(v any) (data []byte, err error) {
	switch v := v.(type) {
	case []byte:
		data = v
	case string:
		if data, err = decodeBase64(v); err != nil {
			return nil, err
		}
	default:
		return nil, fmt.Errorf("it must be bytes, or a text of them in base64, not %s", nounOf(v))
	}
	if len(data) == 0 {
		return nil, errNoBytes
	}
	return data, nil
}

func decodeBase64(text string) ([]byte, error) {
	encoding := base64.RawStdEncoding
	if strings.Contains(text, "=") {
		encoding = base64.StdEncoding
	}
	data, err := encoding.DecodeString(text)
	if err != nil {
		return nil, errors.New("it is not base64: use the standard alphabet (A-Z a-z 0-9 + /), with or without padding")
	}
	return data, nil
}

// appendVector appends the elements of a list, a single number, or bytes that are elements already.
func appendVector(data []byte, v any, t serving.DType) ([]byte, error) {
	switch v := v.(type) {
	case []any:
		for i, element := range v {
			var err error
			if data, err = appendNumber(data, element, t); err != nil {
				return nil, fmt.Errorf("element %d: %w", i, err)
			}
		}
		return data, nil
	case []byte:
		if len(v)%t.Size() != 0 {
			return nil, fmt.Errorf("it has %d bytes, and elements of %v have %d each: send them little-endian, one after the other", len(v), t, t.Size())
		}
		return append(data, v...), nil
	case map[string]any, string, nil:
		return nil, fmt.Errorf("it must be a number or a list of numbers, not %s", nounOf(v))
	}
	return appendNumber(data, v, t)
}

package records

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/stream/mapping"
)

// checkData says why bytes cannot be an input of type t, or nil.
func checkData(data []byte, t serving.InputType) error {
	switch size := t.DType().Size(); {
	case t == serving.Strings && !utf8.Valid(data):
		return errors.New("data is not UTF-8, and the app takes strings")
	case t == serving.Strings:
		return nil
	case t == serving.Chat && !isObject(data):
		return errNoObject
	case t == serving.Chat:
		return nil
	case len(data) == 0 && t == serving.Bytes:
		return errors.New("data is empty: give at least one byte")
	case len(data) == 0:
		return errNoNumbers
	case len(data)%size != 0:
		return fmt.Errorf("data has %d bytes, and the app takes %v of %d bytes each: send them little-endian, one after the other", len(data), t, size)
	}
	return nil
}

// parseInput reads the JSON of an input, which is valid JSON, as an input of type t.
func parseInput(text []byte, t serving.InputType) ([]byte, error) {
	switch t {
	case serving.Strings:
		s, err := parseString(text)
		return []byte(s), err
	case serving.Chat:
		if !isObject(text) {
			return nil, errNoObject
		}
		return bytes.Clone(text), nil
	case serving.Bytes:
		return parseBase64(text)
	}
	return parseNumbers(text, t)
}

// parseTensors reads the JSON of the inputs of a signature, as the predict API has them.
func parseTensors(text []byte, inputs []serving.Tensor) (serving.Input, error) {
	tree, err := mapping.ParseJSON(text)
	if err != nil {
		return serving.Input{}, fmt.Errorf("inputs are not valid JSON: %w", err)
	}
	in, err := mapping.Tensors(tree, inputs)
	if err != nil {
		return serving.Input{}, fmt.Errorf("inputs: %w", err)
	}
	return in, nil
}

// parseNamed reads an object with the one input of an app without a signature.
func parseNamed(text []byte, t serving.InputType) ([]byte, error) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(text, &members); err != nil || len(members) != 1 || members["input"] == nil {
		return nil, errors.New(`inputs must be an object with "input", the one input of the app`)
	}
	return parseInput(members["input"], t)
}

var errNoObject = errors.New(`input must be an object of JSON such as {"messages": [...]}`)

// isObject says whether a text is an object of JSON.
func isObject(text []byte) bool {
	return len(bytes.TrimSpace(text)) > 0 && bytes.TrimSpace(text)[0] == '{' && json.Valid(text)
}

func parseString(text []byte) (s string, err error) {
	if len(text) == 0 || text[0] != '"' {
		return "", fmt.Errorf("input must be a text, not %s", short(text))
	}
	err = json.Unmarshal(text, &s)
	return s, err
}

func parseBase64(text []byte) ([]byte, error) {
	encoded, err := parseString(text)
	if err != nil {
		return nil, err
	}
	encoding := base64.RawStdEncoding
	if strings.Contains(encoded, "=") {
		encoding = base64.StdEncoding
	}
	data, err := encoding.DecodeString(encoded)
	switch {
	case err != nil:
		return nil, errors.New("input is not base64: use the standard alphabet (A-Z a-z 0-9 + /), with or without padding")
	case len(data) == 0:
		return nil, errors.New("input is empty: give at least one byte, base64-encoded")
	}
	return data, nil
}

// parseNumbers reads a flat array. Since the text is valid JSON, all that lies between
// two commas and is a number for strconv is a number of JSON.
func parseNumbers(text []byte, t serving.InputType) ([]byte, error) {
	if len(text) < 2 || text[0] != '[' {
		return nil, fmt.Errorf("input must be an array of numbers, not %s", short(text))
	}
	rest := bytes.TrimSpace(text[1 : len(text)-1])
	if len(rest) == 0 {
		return nil, errNoNumbers
	}
	data := make([]byte, 0, (bytes.Count(rest, []byte{','})+1)*t.DType().Size())
	for more := true; more; {
		var element []byte
		element, rest, more = bytes.Cut(rest, []byte{','})
		var err error
		if data, err = appendNumber(data, bytes.TrimSpace(element), t); err != nil {
			return nil, err
		}
	}
	return data, nil
}

func appendNumber(data, text []byte, t serving.InputType) ([]byte, error) {
	switch string(text) { // as the predict API has it
	case "true":
		text = []byte("1")
	case "false":
		text = []byte("0")
	}
	switch t {
	case serving.Ints:
		x, err := strconv.ParseInt(string(text), 10, 32)
		if err != nil {
			return nil, fmt.Errorf("input must hold whole numbers between -2147483648 and 2147483647, without point or exponent, not %s", short(text))
		}
		return binary.LittleEndian.AppendUint32(data, uint32(int32(x))), nil
	case serving.Floats:
		x, err := strconv.ParseFloat(string(text), 32)
		if err != nil {
			return nil, fmt.Errorf("input must hold numbers that fit 32 bits, not %s", short(text))
		}
		return binary.LittleEndian.AppendUint32(data, math.Float32bits(float32(x))), nil
	}
	x, err := strconv.ParseFloat(string(text), 64)
	if err != nil {
		return nil, fmt.Errorf("input must hold numbers that fit 64 bits, not %s", short(text))
	}
	return binary.LittleEndian.AppendUint64(data, math.Float64bits(x)), nil
}

// short is the beginning of a text, for errors.
func short(text []byte) string {
	const most = 40
	if len(text) > most {
		return string(bytes.ToValidUTF8(text[:most], nil)) + "…"
	}
	if len(text) == 0 {
		return "nothing"
	}
	return string(text)
}

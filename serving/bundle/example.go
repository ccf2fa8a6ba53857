package bundle

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"

	"github.com/topsail-serving/topsail/serving"
)

// checkExample says why text is no input of this type and length (0: any), or nil.
func checkExample(text json.RawMessage, of serving.InputType, length int) error {
	n, err := exampleLength(text, of)
	switch {
	case err != nil:
		return err
	case n == 0 && of != serving.Strings:
		return fmt.Errorf("it is empty")
	case length > 0 && n != length:
		return fmt.Errorf("it has %d elements, and input_length is %d", n, length)
	}
	return nil
}

func exampleLength(text json.RawMessage, of serving.InputType) (int, error) {
	switch of {
	case serving.Strings:
		var s string
		if err := json.Unmarshal(text, &s); err != nil {
			return 0, fmt.Errorf("of type %v it has to be a string", of)
		}
		return len(s), nil
	case serving.Chat:
		var object map[string]json.RawMessage
		if err := json.Unmarshal(text, &object); err != nil || object == nil {
			return 0, fmt.Errorf("of type %v it has to be an object", of)
		}
		return len(text), nil
	case serving.Bytes:
		var s string
		if err := json.Unmarshal(text, &s); err != nil {
			return 0, fmt.Errorf("of type %v it has to be a string in base64", of)
		}
		b, err := base64.StdEncoding.DecodeString(s)
		if err != nil {
			return 0, fmt.Errorf("of type %v it has to be in base64: %w", of, err)
		}
		return len(b), nil
	}
	var numbers []float64
	if err := json.Unmarshal(text, &numbers); err != nil {
		return 0, fmt.Errorf("of type %v it has to be an array of numbers", of)
	}
	for _, x := range numbers {
		if of == serving.Ints && (x != math.Trunc(x) || x < math.MinInt32 || x > math.MaxInt32) {
			return 0, fmt.Errorf("of type %v it has to be whole numbers of 32 bits, and %v is not one", of, x)
		}
	}
	return len(numbers), nil
}

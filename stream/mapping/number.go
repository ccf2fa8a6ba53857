package mapping

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"strconv"

	"github.com/topsail-serving/topsail/serving"
)

// appendNumber appends a value as an element of a numeric type, little-endian. A boolean is 0 or 1.
func appendNumber(data []byte, v any, t serving.DType) ([]byte, error) {
	le := binary.LittleEndian
	switch t {
	case serving.Float64:
		x, err := floatOf(v, 64)
		return le.AppendUint64(data, math.Float64bits(x)), err
	case serving.Float32:
		x, err := floatOf(v, 32)
		return le.AppendUint32(data, math.Float32bits(float32(x))), err
	case serving.Float16:
		x, err := floatOf(v, 32)
		half := serving.ToHalf(float32(x))
		return le.AppendUint16(data, half), orRange(err, half&0x7fff == 0x7c00 && !math.IsInf(x, 0), t, v)
	case serving.BFloat16:
		x, err := floatOf(v, 32)
		brain := serving.ToBrainFloat(float32(x))
		return le.AppendUint16(data, brain), orRange(err, brain&0x7fff == 0x7f80 && !math.IsInf(x, 0), t, v)
	}
	return appendWhole(data, v, t)
}

// orRange is err, or says that a number is outside of what its type holds.
func orRange(err error, outside bool, t serving.DType, v any) error {
	if err == nil && outside {
		return fmt.Errorf("%s is more than %v holds", nounOf(v), t)
	}
	return err
}

// floatOf is a value as a number of so many bits.
func floatOf(v any, bits int) (float64, error) {
	switch v := v.(type) {
	case json.Number:
		x, err := strconv.ParseFloat(v.String(), bits)
		return x, orRange(nil, err != nil, floatType(bits), v)
	case float64:
		outside := bits == 32 && math.Abs(v) > math.MaxFloat32 && !math.IsInf(v, 0)
		return v, orRange(nil, outside, floatType(bits), v)
	case float32:
		return float64(v), nil
	case *big.Rat:
		x, _ := v.Float64()
		return x, orRange(nil, math.IsInf(x, 0), floatType(bits), v)
	case bool:
		return oneIf(v), nil
	case int32:
		return float64(v), nil
	case int64:
		return float64(v), nil
	case uint32:
		return float64(v), nil
	case uint64:
		return float64(v), nil
	}
	return 0, fmt.Errorf("it must be a number, not %s", nounOf(v))
}

func floatType(bits int) serving.DType {
	if bits == 32 {
		return serving.Float32
	}
	return serving.Float64
}

func oneIf(on bool) float64 {
	if on {
		return 1
	}
	return 0
}

// appendWhole appends a value as an element of a whole type.
func appendWhole(data []byte, v any, t serving.DType) ([]byte, error) {
	text, err := wholeText(v)
	if err != nil {
		return data, err
	}
	bits := 8 * t.Size()
	var x uint64
	if t == serving.Int8 || t == serving.Int16 || t == serving.Int32 || t == serving.Int64 {
		var signed int64
		signed, err = strconv.ParseInt(text, 10, bits)
		x = uint64(signed)
	} else {
		x, err = strconv.ParseUint(text, 10, bits)
		if text == "-0" {
			err = nil
		}
	}
	if err != nil {
		return data, fmt.Errorf("it must be a whole number that %v holds, without point or exponent, not %s", t, nounOf(v))
	}
	return binary.LittleEndian.AppendUint64(data, x)[:len(data)+t.Size()], nil
}

// wholeText is a number as its digits, where it has no fraction.
func wholeText(v any) (string, error) {
	switch v := v.(type) {
	case json.Number:
		return v.String(), nil
	case bool:
		return strconv.Itoa(int(oneIf(v))), nil
	case int32, int64, uint32, uint64:
		return fmt.Sprint(v), nil
	case float32:
		return strconv.FormatFloat(float64(v), 'f', -1, 32), nil
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64), nil
	case *big.Rat:
		return decimal(v).String(), nil
	}
	return "", fmt.Errorf("it must be a number, not %s", nounOf(v))
}

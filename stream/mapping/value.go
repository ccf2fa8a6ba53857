package mapping

import (
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/twmb/avro"
)

// plain is a tree in the types of JSON: times, decimals and the like, which Avro has, as texts or
// numbers; bytes stay what encoding/json makes base64.
func plain(v any) any {
	switch v := v.(type) {
	case map[string]any:
		members := make(map[string]any, len(v))
		for name, member := range v {
			members[name] = plain(member)
		}
		return members
	case []any:
		list := make([]any, len(v))
		for i, element := range v {
			list[i] = plain(element)
		}
		return list
	case time.Time:
		return v.Format(time.RFC3339Nano)
	case time.Duration: // a time of the day
		return time.Time{}.Add(v).Format("15:04:05.999999")
	case *big.Rat:
		return decimal(v)
	case avro.Duration:
		return v.String()
	case [16]byte:
		return uuidText(v)
	case float64:
		return plainFloat(v, 64)
	case float32:
		return plainFloat(float64(v), 32)
	}
	return v
}

// plainFloat is a number of JSON, or the text that protobuf's JSON has for what is none.
func plainFloat(x float64, bits int) any {
	switch {
	case math.IsNaN(x):
		return "NaN"
	case math.IsInf(x, 1):
		return "Infinity"
	case math.IsInf(x, -1):
		return "-Infinity"
	}
	return json.Number(strconv.FormatFloat(x, 'g', -1, bits))
}

// decimal is a number as it is, not rounded.
func decimal(r *big.Rat) json.Number {
	digits, _ := r.FloatPrec()
	return json.Number(r.FloatString(digits))
}

func uuidText(b [16]byte) string {
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// textOf is a value as a name: a text, or a whole number, which becomes its decimal text.
func textOf(v any) (string, error) {
	switch v := v.(type) {
	case string:
		return v, nil
	case []byte:
		if utf8.Valid(v) {
			return string(v), nil
		}
		return "", errNotUTF8
	case [16]byte:
		return uuidText(v), nil
	case json.Number:
		if !strings.ContainsAny(v.String(), ".eE") {
			return v.String(), nil
		}
	case int, int32, int64, uint32, uint64:
		return fmt.Sprint(v), nil
	}
	return "", fmt.Errorf("it must be a text or a whole number, not %s", nounOf(v))
}

// nounOf is what a value is, for errors.
func nounOf(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case map[string]any:
		return "an object"
	case []any:
		return "a list"
	case string:
		return fmt.Sprintf("the text %.40q", v)
	case []byte:
		return "bytes"
	case json.Number:
		return fmt.Sprintf("%.40s", v.String())
	case bool, int, int32, int64, uint32, uint64, float32, float64:
		return fmt.Sprint(v)
	}
	return fmt.Sprintf("%.40v", plain(v))
}

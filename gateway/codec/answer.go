package codec

import (
	"math"
	"strconv"
	"unicode/utf8"

	"github.com/topsail-serving/topsail/serving"
)

// AppendPrediction appends the answer to a request for one prediction.
func AppendPrediction(b []byte, p serving.Prediction) []byte {
	b = append(b, `{"query_id":`...)
	b = strconv.AppendInt(b, p.QueryID, 10)
	b = append(b, `,"output":`...)
	b = append(b, p.Output...)
	if p.Full != nil {
		b = appendBeside(b, p.Full)
	}
	if p.Default {
		b = append(b, `,"default":true`...)
		if p.Explanation != "" {
			b = append(b, `,"default_explanation":`...)
			b = AppendString(b, p.Explanation)
		}
	} else {
		b = append(b, `,"default":false`...)
	}
	if len(p.Missing)+len(p.Shed)+len(p.Failover) > 0 || p.Ranked || p.Explained != nil {
		b = appendDetails(b, &p)
	}
	return append(b, '}')
}

// appendBeside appends what a model has said beside or instead of one unnamed output.
func appendBeside(b []byte, o *serving.Output) []byte {
	if o.NamedJSON != nil {
		b = append(append(b, `,"outputs":`...), o.NamedJSON...)
	}
	if o.Confidence != nil && !math.IsNaN(*o.Confidence) && !math.IsInf(*o.Confidence, 0) {
		b = appendNumber(append(b, `,"confidence":`...), *o.Confidence)
	}
	if o.QualifiersJSON != nil {
		b = append(append(b, `,"qualifiers":`...), o.QualifiersJSON...)
	}
	return b
}

// AppendPart appends one part of an answer that comes in parts. A text stays one, also where it is valid
// JSON: it is a piece of a longer one.
func AppendPart(b []byte, out *serving.Output) []byte {
	b = append(b, `{"output":`...)
	if out.Value.DType == serving.String && len(out.Value.Shape) == 0 {
		b = AppendString(b, string(out.Value.Data))
	} else {
		b = append(b, out.JSON...)
	}
	return append(appendBeside(b, out), '}')
}

// AppendBatch appends the answer to a request for a batch, in the order of its
// inputs. As with Clipper, a batch of one is answered as a single prediction.
func AppendBatch(b []byte, ps []serving.Prediction) []byte {
	if len(ps) == 1 {
		return AppendPrediction(b, ps[0])
	}
	b = append(b, `{"batch_predictions":[`...)
	for i, p := range ps {
		if i > 0 {
			b = append(b, ',')
		}
		b = AppendPrediction(b, p)
	}
	return append(b, ']', '}')
}

// AppendError appends the body of a refusal: its class, and a sentence for people.
func AppendError(b []byte, class, cause string) []byte {
	b = append(b, `{"error":`...)
	b = AppendString(b, class)
	b = append(b, `,"cause":`...)
	b = AppendString(b, cause)
	return append(b, '}')
}

// AppendString appends s as a JSON string. What is not UTF-8 becomes U+FFFD.
func AppendString(b []byte, s string) []byte {
	const hex = "0123456789abcdef"
	b = append(b, '"')
	for _, r := range s { // invalid bytes come as U+FFFD
		switch {
		case r == '"' || r == '\\':
			b = append(b, '\\', byte(r))
		case r == '\n':
			b = append(b, '\\', 'n')
		case r < ' ':
			b = append(b, '\\', 'u', '0', '0', hex[r>>4], hex[r&0xf])
		default:
			b = utf8.AppendRune(b, r)
		}
	}
	return append(b, '"')
}

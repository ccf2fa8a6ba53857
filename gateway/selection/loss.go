package selection

import (
	"encoding/json"
	"errors"
	"math"
	"slices"

	"github.com/topsail-serving/topsail/serving"
)

// Loss measures how wrong an output is, from 0 to 1.
type Loss struct {
	kind  string
	scale float64
}

// LossOf is the loss that a policy names.
func LossOf(p *serving.PolicySpec) Loss {
	l := Loss{kind: p.Loss, scale: p.Scale}
	if l.scale == 0 {
		l.scale = 1
	}
	return l
}

var errNotNumbers = errors.New("the loss of the app compares numbers, or vectors of one length, and the label or the output is neither")

// Of is the loss of an output against a label. It fails where the loss compares numbers and they
// are not: numbers or vectors of one length, as the mean over their elements.
//
// Where the policy names no loss, numbers are compared by their difference as soon as one has a fraction:
// that of a probability and a class, or of two measurements, is never the same. Scores of several classes
// cannot be compared with one of them.
func (l Loss) Of(out, label *serving.Output) (float64, error) {
	x, isNumber := figure(out)
	y, also := figure(label)
	numbers := isNumber && also
	if l.kind == serving.LossZeroOne || l.kind == "" && !(numbers && (hasFraction(x) || hasFraction(y))) {
		switch {
		case numbers && x == y || Same(out, label) || sameText(out, label):
			return 0, nil
		case also && !isNumber && isScores(out):
			return 0, errNotNumbers
		}
		return 1, nil
	}
	if numbers {
		return l.between(x, y), nil
	}
	xs, ok := Vector(nil, out)
	ys, also := Vector(nil, label)
	if !ok || !also || len(xs) != len(ys) || len(xs) == 0 {
		return 0, errNotNumbers
	}
	total := 0.0
	for i := range xs {
		total += l.between(xs[i], ys[i])
	}
	return total / float64(len(xs)), nil
}

// figure is a number, true or false, or the text of one of them.
func figure(o *serving.Output) (float64, bool) {
	x, ok := Number(o)
	switch text := unquoted(o); {
	case ok:
		return x, true
	case text != nil:
		return figure(&serving.Output{JSON: text})
	}
	switch string(o.JSON) {
	case "true":
		return 1, true
	case "false":
		return 0, true
	}
	return 0, false
}

func hasFraction(x float64) bool { return x != math.Trunc(x) }

// isScores says whether an output is a vector of numbers some of which have fractions.
func isScores(out *serving.Output) bool {
	xs, ok := Vector(nil, out)
	return ok && len(xs) > 1 && slices.ContainsFunc(xs, hasFraction)
}

// sameText says whether a label is the text of an output. A model that says the text 1 is answered
// with the number 1, and the class is still called "1".
func sameText(out, label *serving.Output) bool {
	text := unquoted(label)
	return text != nil && Same(out, &serving.Output{JSON: text})
}

// unquoted is the JSON that a text is, or nil.
func unquoted(o *serving.Output) []byte {
	var text string
	if len(o.JSON) == 0 || o.JSON[0] != '"' || json.Unmarshal(o.JSON, &text) != nil || !json.Valid([]byte(text)) {
		return nil
	}
	return []byte(text)
}

func (l Loss) between(x, y float64) float64 {
	d := math.Abs(x-y) / l.scale
	if l.kind == serving.LossSquared {
		d *= d
	}
	if d < 1 {
		return d
	}
	return 1 // also for NaN
}

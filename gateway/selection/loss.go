package selection

import (
	"errors"
	"math"

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
func (l Loss) Of(out, label *serving.Output) (float64, error) {
	if l.kind == "" || l.kind == serving.LossZeroOne {
		if Same(out, label) {
			return 0, nil
		}
		return 1, nil
	}
	x, isNumber := Number(out)
	if y, also := Number(label); isNumber && also {
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

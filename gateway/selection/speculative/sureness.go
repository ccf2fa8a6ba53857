package speculative

import (
	"cmp"
	"math"

	"github.com/topsail-serving/topsail/gateway/selection"
	"github.com/topsail-serving/topsail/serving"
)

const defaultBar = 0.8

// sureness is how sure an answer must be, and by which value: a qualifier, or else the model's
// confidence. An answer that has none, or none that is a number, is the least sure, and never sure
// enough.
type sureness struct {
	bar       float64
	qualifier string
}

func newSureness(spec *serving.PolicySpec) sureness {
	return sureness{bar: cmp.Or(spec.Confidence, defaultBar), qualifier: spec.Qualifier}
}

// of is an answer's own, or negative infinity.
func (s *sureness) of(o *serving.Output) float64 {
	x, known := 0.0, false
	switch {
	case s.qualifier != "":
		x, known = qualifier(o, s.qualifier)
	case o.Confidence != nil:
		x, known = *o.Confidence, true
	}
	if !known || math.IsNaN(x) {
		return math.Inf(-1)
	}
	return x
}

func (s *sureness) enough(o *serving.Output) bool { return s.of(o) >= s.bar }

func qualifier(o *serving.Output, name string) (float64, bool) {
	for i := range o.Qualifiers {
		if o.Qualifiers[i].Name == name {
			return selection.Number(&serving.Output{Value: o.Qualifiers[i]})
		}
	}
	return 0, false
}

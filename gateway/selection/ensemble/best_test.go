package ensemble_test

import (
	"math"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/gateway/selection"
	"github.com/topsail-serving/topsail/serving"
)

func TestBest(t *testing.T) {
	sure := func(x float64) *serving.Output {
		o := label("x")
		o.Confidence = &x
		return o
	}
	margin := func(x float64) *serving.Output {
		o := sure(0.1)
		v := serving.Number(x)
		v.Name = "margin"
		o.Qualifiers = []serving.Value{{Name: "other", DType: serving.Uint8, Data: []byte{99}}, v}
		return o
	}
	silent := label("y")
	byMargin, within := serving.PolicySpec{Qualifier: "margin"}, serving.PolicySpec{WithinMicros: 5000}
	for name, c := range map[string]struct {
		spec       serving.PolicySpec
		elapsed    time.Duration
		final      bool
		come       []*serving.Output
		wins       int // -1: not decided
		ended      selection.Ending
		confidence float64
		again      time.Duration
	}{
		"the most confident":              {come: []*serving.Output{sure(0.2), sure(0.9), sure(0.5)}, wins: 1, ended: selection.EndedAll, confidence: 0.9},
		"of equals the first":             {come: []*serving.Output{broken, sure(0.5), sure(0.5)}, wins: 1, ended: selection.EndedAll, confidence: 0.5},
		"none confident, the first":       {come: []*serving.Output{broken, silent, label("z")}, wins: 1, ended: selection.EndedAll},
		"any confidence before none":      {come: []*serving.Output{silent, sure(0)}, wins: 1, ended: selection.EndedAll},
		"no number is no confidence":      {come: []*serving.Output{sure(math.NaN()), sure(0.1)}, wins: 1, ended: selection.EndedAll, confidence: 0.1},
		"above 1 is 1":                    {come: []*serving.Output{sure(1), sure(7)}, wins: 0, ended: selection.EndedAll, confidence: 1},
		"waits for all":                   {come: []*serving.Output{sure(0.99), nil}, wins: -1},
		"the deadline":                    {final: true, come: []*serving.Output{nil, sure(0.1)}, wins: 1, ended: selection.EndedDeadline, confidence: 0.1},
		"cannot be beaten":                {come: []*serving.Output{silent, sure(1), nil}, wins: 1, ended: selection.EndedCertain, confidence: 1},
		"can be equalled by a better one": {come: []*serving.Output{nil, sure(1), nil}, wins: 1, ended: selection.EndedAcceptable, confidence: 1},
		"waits for its limit":             {spec: within, come: []*serving.Output{sure(0.9), nil}, wins: -1, again: 5 * time.Millisecond},
		"its limit":                       {spec: within, elapsed: 5 * time.Millisecond, come: []*serving.Output{nil, sure(0.9)}, wins: 1, ended: selection.EndedTime, confidence: 0.9},
		"its limit, with nothing there":   {spec: within, elapsed: 5 * time.Millisecond, come: []*serving.Output{nil, broken}, wins: -1},
		"the largest qualifier":           {spec: byMargin, come: []*serving.Output{margin(1), margin(3), sure(1)}, wins: 1, ended: selection.EndedAll, confidence: 0.1},
		"a qualifier has no largest":      {spec: byMargin, come: []*serving.Output{margin(1), nil}, wins: -1},
		"without it, the first":           {spec: byMargin, come: []*serving.Output{sure(0.2), sure(0.9)}, wins: 0, ended: selection.EndedAll, confidence: 0.2},
	} {
		t.Run(name, func(t *testing.T) {
			app := newApp(serving.PolicyBest, c.spec, serving.OutputAny, len(c.come))
			app.plans()
			d := app.combineAt(selection.Moment{Elapsed: c.elapsed, Budget: 20 * time.Millisecond, Final: c.final}, c.come...)
			if d.Done != (c.wins >= 0) || d.Ended != c.ended || d.Confidence != c.confidence || d.Again != c.again {
				t.Fatalf("decides %+v", d)
			}
			if c.wins >= 0 && (d.Output != c.come[c.wins] || d.Model != app.candidates[c.wins].ModelID) {
				t.Errorf("answers with %v", d.Model)
			}
		})
	}
}

package ensemble_test

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/topsail-serving/topsail/gateway/selection"
	"github.com/topsail-serving/topsail/serving"
)

func TestVote(t *testing.T) {
	x, y, z := label("x"), label("y"), label("z")
	one, same := num(1), label("1")
	for name, c := range map[string]struct {
		spec       serving.PolicySpec
		elapsed    time.Duration
		final      bool
		come       []*serving.Output
		output     *serving.Output // nil: not decided
		ended      selection.Ending
		confidence float64
		again      time.Duration
	}{
		"nothing yet":                   {come: []*serving.Output{nil, nil, nil}},
		"a lead that can be lost":       {come: []*serving.Output{x, x, nil, nil}},
		"a lead that could be tied":     {come: []*serving.Output{x, x, y, nil}},
		"a lead for good":               {come: []*serving.Output{nil, x, x, x, y}, output: x, ended: selection.EndedCertain, confidence: 0.6},
		"all have voted":                {come: []*serving.Output{y, x, z, x}, output: x, ended: selection.EndedAll, confidence: 0.5},
		"a tie goes to the first":       {come: []*serving.Output{y, x, x, y}, output: y, ended: selection.EndedAll, confidence: 0.5},
		"failures do not vote":          {come: []*serving.Output{broken, broken, broken, x}, output: x, ended: selection.EndedAll, confidence: 0.25},
		"a failure settles it":          {come: []*serving.Output{x, x, broken, nil}, output: x, ended: selection.EndedCertain, confidence: 0.5},
		"the deadline":                  {final: true, come: []*serving.Output{nil, nil, y, nil}, output: y, ended: selection.EndedDeadline, confidence: 0.25},
		"equal numbers agree":           {come: []*serving.Output{y, one, same}, output: one, ended: selection.EndedAll, confidence: 2.0 / 3},
		"weights":                       {spec: serving.PolicySpec{Weights: map[string]float64{"a": 3, "b": 1, "c": 1}}, come: []*serving.Output{x, y, y}, output: x, ended: selection.EndedAll, confidence: 0.6},
		"consensus":                     {spec: serving.PolicySpec{Agreement: 0.6}, come: []*serving.Output{x, x, x, nil, nil}, output: x, ended: selection.EndedCertain, confidence: 0.6},
		"no consensus yet":              {spec: serving.PolicySpec{Agreement: 0.8}, come: []*serving.Output{x, x, x, nil, y}},
		"a consensus of few":            {spec: serving.PolicySpec{Agreement: 0.4}, come: []*serving.Output{nil, nil, nil, x, x}, output: x, ended: selection.EndedAcceptable, confidence: 0.4},
		"consensus of all":              {spec: serving.PolicySpec{Agreement: 1}, come: []*serving.Output{x, x, x}, output: x, ended: selection.EndedAll, confidence: 1},
		"waits for its limit":           {spec: serving.PolicySpec{WithinMicros: 5000}, come: []*serving.Output{x, nil, nil}, again: 5 * time.Millisecond},
		"its limit":                     {spec: serving.PolicySpec{WithinMicros: 5000}, elapsed: 5 * time.Millisecond, come: []*serving.Output{nil, y, nil}, output: y, ended: selection.EndedTime, confidence: 1.0 / 3},
		"its limit, with nothing there": {spec: serving.PolicySpec{WithinMicros: 5000}, elapsed: 5 * time.Millisecond, come: []*serving.Output{nil, broken, nil}},
		"consensus before the limit":    {spec: serving.PolicySpec{Agreement: 0.6, WithinMicros: 5000}, come: []*serving.Output{x, x, nil}, output: x, ended: selection.EndedCertain, confidence: 2.0 / 3},
		"no consensus at the limit":     {spec: serving.PolicySpec{Agreement: 0.9, WithinMicros: 5000}, elapsed: 6 * time.Millisecond, come: []*serving.Output{x, y, nil}, output: x, ended: selection.EndedTime, confidence: 1.0 / 3},
		"no consensus, before it":       {spec: serving.PolicySpec{Agreement: 0.9, WithinMicros: 5000}, come: []*serving.Output{x, y, nil}, again: 5 * time.Millisecond},
		"no consensus, and all voted":   {spec: serving.PolicySpec{Agreement: 0.9, WithinMicros: 5000}, come: []*serving.Output{x, y, y}, output: y, ended: selection.EndedAll, confidence: 2.0 / 3},
	} {
		t.Run(name, func(t *testing.T) {
			app := newApp(serving.PolicyVote, c.spec, serving.OutputAny, len(c.come))
			app.plans()
			d := app.combineAt(selection.Moment{Elapsed: c.elapsed, Budget: 20 * time.Millisecond, Final: c.final}, c.come...)
			if d.Done != (c.output != nil) || d.Output != c.output || d.Ended != c.ended || d.Again != c.again || abs(d.Confidence-c.confidence) > 1e-9 {
				t.Errorf("decides %+v", d)
			}
		})
	}
}

func TestVoteWithoutConsensus(t *testing.T) {
	x, y, z := label("x"), label("y"), label("z")
	for name, c := range map[string]struct {
		final bool
		come  []*serving.Output
		ended selection.Ending
		says  string
	}{
		"it cannot be reached any more": {come: []*serving.Output{x, y, nil, z, nil}, ended: selection.EndedCertain, says: "no consensus: 1 of 5 agree, a share of 0.20, and the app needs 0.80"},
		"nor with failures":             {come: []*serving.Output{x, x, nil, broken, broken}, ended: selection.EndedCertain, says: "no consensus: 2 of 5 agree"},
		"all have voted":                {come: []*serving.Output{x, y, y, z, y}, ended: selection.EndedAll, says: "no consensus: 3 of 5 agree"},
		"the deadline":                  {final: true, come: []*serving.Output{x, x, x, nil, nil}, ended: selection.EndedDeadline, says: "no consensus: 3 of 5 agree"},
	} {
		t.Run(name, func(t *testing.T) {
			app := newApp(serving.PolicyVote, serving.PolicySpec{Agreement: 0.8}, serving.OutputLabel, 5)
			app.plans()
			d := app.combine(c.final, c.come...)
			if !d.Done || d.Output != nil || d.Failure == nil || d.Failure.Cause != serving.ModelError || d.Ended != c.ended || !strings.HasPrefix(d.Failure.Message, c.says) {
				t.Errorf("decides %+v: %v", d, d.Failure)
			}
		})
	}
}

// The answer of a vote is the one that counting by hand gives, whoever is waited for.
func TestVoteCountsRight(t *testing.T) {
	choice := []*serving.Output{nil, broken, label("x"), label("y"), num(3), label("3"), num(-1)}
	rapid.Check(t, func(t *rapid.T) {
		come := rapid.SliceOfN(rapid.SampledFrom(choice), 1, 9).Draw(t, "come")
		app := newApp(serving.PolicyVote, serving.PolicySpec{}, serving.OutputLabel, len(come))
		app.plans()
		var want *serving.Output
		most := 0
		for _, o := range come {
			votes := 0
			for _, other := range come {
				if o != nil && o != broken && other != nil && other != broken && selection.Same(o, other) {
					votes++
				}
			}
			if votes > most {
				want, most = o, votes
			}
		}
		if d := app.combine(true, come...); !d.Done || d.Output != want {
			t.Fatalf("of %v it makes %+v", come, d)
		}
	})
}

func abs(x float64) float64 { return max(x, -x) }

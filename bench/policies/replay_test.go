package main

import (
	"testing"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/test/require"
)

// replayed sends three passes of the table through a policy.
func replayed(t *testing.T, table *Table, spec serving.PolicySpec) (*stream, *trace) {
	t.Helper()
	s := newTestStream(t, table, 1, 3*samples, false)
	app := &serving.App{Name: "lab", InputType: serving.Doubles, OutputType: serving.OutputLabel, SLO: serving.Duration(budget), Models: table.names(), Policy: spec}
	r, err := newReplayer(app, s, 1)
	require.NoError(t, err)
	out, err := r.replay()
	require.NoError(t, err)
	return s, out
}

func TestReplay(t *testing.T) {
	const n = 3 * samples
	for name, test := range map[string]struct {
		spec   serving.PolicySpec
		errors float64
		asked  int
	}{
		"the best alone":                       {serving.PolicySpec{Kind: serving.PolicySingle, Model: "a"}, 30, n},
		"the worst alone":                      {serving.PolicySpec{Kind: serving.PolicySingle, Model: "c"}, 150, n},
		"two of three are wrong at 20 of 100":  {serving.PolicySpec{Kind: serving.PolicyVote}, 60, 3 * n},
		"the sure ones are right":              {serving.PolicySpec{Kind: serving.PolicyBest}, 30, 3 * n},
		"the first that is sure is right":      {serving.PolicySpec{Kind: serving.PolicyFirstAcceptable}, 30, 3 * n},
		"50 of 100 ask a second, 20 a third":   {serving.PolicySpec{Kind: serving.PolicyCascade, Models: []string{"c", "b", "a"}}, 30, n + 150 + 60},
		"what is there when only c has come":   {serving.PolicySpec{Kind: serving.PolicyVote, WithinMicros: 1500}, 150, 3 * n},
		"a fast one bounds, within its time":   {serving.PolicySpec{Kind: serving.PolicyGuaranteed, Models: []string{"c", "b", "a"}, WithinMicros: 2500}, 60, 3 * n},
		"only the fast one is there that soon": {serving.PolicySpec{Kind: serving.PolicyGuaranteed, Models: []string{"c", "b", "a"}, WithinMicros: 500}, 150, 3 * n},
	} {
		t.Run(name, func(t *testing.T) {
			_, got := replayed(t, three(), test.spec)
			if len(got.losses) != n || sum(got.losses) != test.errors || got.asked != test.asked {
				t.Errorf("%d answers, %v errors, %d asked; not %d, %v, %d", len(got.losses), sum(got.losses), got.asked, n, test.errors, test.asked)
			}
		})
	}
}

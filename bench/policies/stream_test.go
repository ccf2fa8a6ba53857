package main

import (
	"slices"
	"testing"

	"github.com/topsail-serving/topsail/gateway/selection"
	"github.com/topsail-serving/topsail/test/require"
)

// samples are 100 with the labels 0 and 1 in turn.
const samples = 100

// says is a model that is wrong at samples 0 to errors-1, and sure of what it says from
// there on.
func says(name string, micros int64, errors int) Model {
	m := Model{Name: name, Micros: micros}
	for i := range samples {
		label := float64(i % 2)
		if i < errors {
			m.Outputs, m.Confidence = append(m.Outputs, 1-label), append(m.Confidence, 0.4)
			continue
		}
		m.Outputs, m.Confidence = append(m.Outputs, label), append(m.Confidence, 0.9)
	}
	return m
}

// tableOf has models in the order of their names.
func tableOf(name string, models ...Model) *Table {
	t := &Table{Name: name, Models: models}
	for i := range samples {
		t.Labels = append(t.Labels, float64(i%2))
		t.Inputs = append(t.Inputs, []float64{float64(i % 2), 1, 2})
	}
	return t
}

// three are models with 10, 20 and 50 errors, the better the slower.
func three() *Table {
	t := tableOf("five", says("a", 6000, 10), says("b", 2000, 20), says("c", 1000, 50))
	t.Models[0].Degraded = says("", 0, samples).Outputs
	return t
}

func newTestStream(t *testing.T, table *Table, seed uint64, queries int, drifting bool) *stream {
	t.Helper()
	s, err := newStream(table, seed, queries, drifting, selection.Loss{})
	require.NoError(t, err)
	return s
}

func TestStreamHasEverySampleOncePerPass(t *testing.T) {
	s := newTestStream(t, three(), 1, 2*samples+1, false)
	for _, pass := range [][]int{s.order[:samples], s.order[samples : 2*samples]} {
		for i, sample := range slices.Sorted(slices.Values(pass)) {
			if sample != i {
				t.Fatalf("a pass has sample %d in place of %d", sample, i)
			}
		}
	}
	if slices.Equal(s.order[:samples], s.order[samples:2*samples]) {
		t.Error("two passes have the same order")
	}
	if !slices.Equal(s.order, newTestStream(t, three(), 1, 2*samples+1, false).order) {
		t.Error("the same seed has another order")
	}
	if slices.Equal(s.order, newTestStream(t, three(), 2, 2*samples+1, false).order) {
		t.Error("another seed has the same order")
	}
}

func TestDriftIsTheSecondThirdOfOneModel(t *testing.T) {
	s := newTestStream(t, three(), 1, 3*samples, true)
	for model, want := range [][3]float64{{10, samples, 10}, {20, 20, 20}, {50, 50, 50}} {
		for third := range 3 {
			if got := sum(s.losses[model][third*samples : (third+1)*samples]); got != want[third] {
				t.Errorf("model %d, third %d: %v errors, not %v", model, third, got, want[third])
			}
		}
	}
	if s.best() != 1 {
		t.Errorf("the best single model in hindsight is %d, not 1", s.best())
	}
}

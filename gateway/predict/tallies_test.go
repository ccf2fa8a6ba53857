package predict

import (
	"maps"
	"testing"

	"github.com/topsail-serving/topsail/gateway/selection"
	"github.com/topsail-serving/topsail/serving"
)

// Versions keep their tallies from catalog to catalog, and what could not be handed on is taken again,
// but for versions that are gone.
func TestTalliesOutliveCatalogs(t *testing.T) {
	all := newTallies(make(chan struct{}, 1))
	a := serving.Definition{ModelID: a1, Generation: "g"}
	before, after, again := &version{Definition: a}, &version{Definition: a}, &version{Definition: a}
	all.link([]*version{before})
	before.tally.answers.Add(2)
	all.link([]*version{after, again})
	if after.tally != before.tally || again.tally != before.tally {
		t.Fatal("a version has another tally in the next catalog")
	}
	before.tally.failed(&before.tally.missed) // of a query that began before it
	after.tally.failed(&after.tally.failures)
	want := map[serving.Definition]selection.Tally{a: {ModelID: a1, Answers: 2, Failures: 1, Missed: 1}}
	taken := all.take()
	if !maps.Equal(taken, want) {
		t.Errorf("took %v", taken)
	}
	if more := all.take(); len(more) != 0 {
		t.Errorf("took %v once more", more)
	}
	all.restore(taken)
	if taken = all.take(); !maps.Equal(taken, want) {
		t.Errorf("after it was given back, took %v", taken)
	}
	all.link(nil)
	all.restore(taken)
	if more := all.take(); len(more) != 0 {
		t.Errorf("took %v of a version that is gone", more)
	}
}

// Bad news is told at once, and good news is not; neither takes memory.
func TestTalliesTellBadNews(t *testing.T) {
	urgent := make(chan struct{}, 1)
	all, v := newTallies(urgent), &version{Definition: serving.Definition{ModelID: a1}}
	all.link([]*version{v})
	v.tally.answers.Add(2 * badNews)
	for range badNews - 1 {
		v.tally.failed(&v.tally.missed)
	}
	if len(urgent) != 0 {
		t.Error("told too soon")
	}
	if v.tally.failed(&v.tally.failures); len(urgent) != 1 {
		t.Error("not told")
	}
	if n := testing.AllocsPerRun(100, func() { v.tally.failed(&v.tally.missed) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

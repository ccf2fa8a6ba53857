package fair_test

import (
	"math"
	"testing"

	"github.com/topsail-serving/topsail/internal/fair"
)

// serve does so many units of work for those that have some, and counts whose they were.
func serve(c *fair.Clock, n int, all ...*fair.Share) (served map[*fair.Share]int) {
	served = map[*fair.Share]int{}
	for range n {
		first := all[0]
		for _, s := range all[1:] {
			if s.Due(first) < 0 {
				first = s
			}
		}
		c.Take(first)
		served[first]++
	}
	return served
}

func TestSharesGoByWeight(t *testing.T) {
	var c fair.Clock
	heavy, light := &fair.Share{Weight: 10}, &fair.Share{Weight: 1}
	if got := serve(&c, 1100, heavy, light); got[heavy] != 1000 || got[light] != 100 {
		t.Errorf("of 1100 units one of weight 10 had %d, and one of weight 1 had %d", got[heavy], got[light])
	}
}

// What was not asked for is given away, all but a few units.
func TestAShareThatWasNotUsedIsNotOwed(t *testing.T) {
	const credit = 5
	var c fair.Clock
	busy, quiet := &fair.Share{Weight: 1}, &fair.Share{Weight: 1}
	serve(&c, 1000, busy)
	c.Wake(quiet, credit)
	got := serve(&c, 105, busy, quiet)
	if got[quiet] != 55 {
		t.Errorf("one that was quiet had %d of 105 units, want its half and half of a credit of %d", got[quiet], credit)
	}
	if got := serve(&c, 3, busy, quiet); got[quiet] == 0 || got[busy] == 0 {
		t.Errorf("the credit is not used up: %v", got)
	}
}

// What one had beyond its share while it was alone is not held against it.
func TestWhatWasLeftOverIsFree(t *testing.T) {
	var c fair.Clock
	busy, late := &fair.Share{Weight: 1}, &fair.Share{Weight: 1}
	serve(&c, 1000, busy)
	c.Wake(late, 0)
	if got := serve(&c, 100, busy, late); got[busy] < 49 {
		t.Errorf("one that had been alone had %d of the next 100 units", got[busy])
	}
}

func TestBeforeCountsWhatIsDue(t *testing.T) {
	var c fair.Clock
	mine, other := &fair.Share{Weight: 1}, &fair.Share{Weight: 4}
	for n := range 20 {
		for range 7 {
			want, clock, s, o := mine.Before(n, other), c, *mine, *other
			got := serve(&clock, n+want, &o, &s)
			if got[&o] != want || got[&s] != n || s.Due(&o) >= 0 {
				t.Errorf("%d units of the other are said to be due before unit %d; of %d in all it had %d", want, n, n+want, got[&o])
			}
			serve(&c, 1, mine, other)
		}
	}
}

func TestWeight(t *testing.T) {
	for w, want := range map[float64]float64{0: 1, -1: 1, math.NaN(): 1, 2.5: 2.5, 1e-300: 0.01, math.Inf(1): 1000} {
		if got := fair.Weight(w); got != want {
			t.Errorf("a weight of %v counts as %v, want %v", w, got, want)
		}
	}
}

package route

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/topsail-serving/topsail/serving"
)

// owners are the n that an affinity belongs to, in order.
func (g *Group) owners(affinity string, n int, not *Target, now time.Time) (all []*Target) {
	for i := range n {
		all = append(all, g.owner(fingerprint(affinity), i, n, not, now))
	}
	return all
}

func (g *Group) without(i int) *Group {
	return &Group{targets: slices.Delete(slices.Clone(g.targets), i, i+1)}
}

// TestOwners states what holds for every affinity: its owners are distinct, and the same at each
// gateway; only what belonged to a replica that goes, or is ejected, gets another one.
func TestOwners(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		now := time.Now()
		g := standing(rapid.IntRange(2, 12).Draw(t, "replicas"))
		affinity, n := rapid.String().Draw(t, "affinity"), rapid.IntRange(1, len(g.targets)).Draw(t, "owners")
		owners := g.owners(affinity, n, nil, now)
		for i, o := range owners {
			if o == nil || slices.Contains(owners[:i], o) {
				t.Fatalf("the owners %v are not %d replicas", owners, n)
			}
		}
		turned := &Group{targets: slices.Clone(g.targets)}
		slices.Reverse(turned.targets)
		if !slices.Equal(turned.owners(affinity, n, nil, now), owners) {
			t.Fatal("the order of the replicas matters")
		}
		if fewer := g.owners(affinity, max(1, n-1), nil, now); !slices.Equal(fewer, owners[:len(fewer)]) {
			t.Fatal("one owner less, and others change")
		}
		if next := g.owner(fingerprint(affinity), 0, n, owners[0], now); next == nil || next == owners[0] {
			t.Fatalf("other than an owner it is %v", next)
		}

		i := rapid.IntRange(0, len(g.targets)-1).Draw(t, "goes")
		goes := g.targets[i]
		after := g.without(i).owners(affinity, min(n, len(g.targets)-1), nil, now)
		for _, o := range owners {
			if o != goes && !slices.Contains(after, o) {
				t.Fatal("another replica went, and an owner with it")
			}
		}
		g.eject(i, now)
		for k, o := range g.owners(affinity, n, nil, now) {
			switch {
			case owners[k] != goes && o != owners[k]:
				t.Fatal("another replica was ejected, and an owner changed")
			case owners[k] == goes && (o == nil || o == goes):
				t.Fatal("an ejected replica is an owner")
			case owners[k] == goes && n < len(g.targets) && slices.Contains(owners, o):
				t.Fatal("an owner has the part of an ejected one, and another replica has none")
			}
		}
	})
}

// When a replica goes, those keys move that belonged to it; when one comes, its part.
func TestOwnersShareEvenly(t *testing.T) {
	g, now := standing(5), time.Now()
	shares, moved := map[*Target]int{}, 0
	for i := range 5000 {
		key := fmt.Sprint("key ", i)
		owner := g.owner(fingerprint(key), 0, 1, nil, now)
		shares[owner]++
		if g.without(4).owner(fingerprint(key), 0, 1, nil, now) != owner {
			moved++
		}
	}
	for _, n := range shares {
		if n < 850 || n > 1150 {
			t.Errorf("one of 5 owns %d of 5000 keys", n)
		}
	}
	if moved != shares[g.targets[4]] {
		t.Errorf("%d keys have moved, and %d belonged to the replica that went", moved, shares[g.targets[4]])
	}
	if one := standing(1); one.owner(1, 0, 1, nil, now) == nil || one.owner(1, 0, 1, one.targets[0], now) != nil {
		t.Error("an only replica is not the owner, or is in place of itself")
	}
}

// called are the calls of an affinity that each replica gets, of n.
func called(o *Owners, g *Group, a serving.Affinity, n int, now time.Time) map[*Target]int {
	calls := map[*Target]int{}
	for range n {
		calls[o.Pick(g, a, 100*time.Millisecond, nil, now)]++
	}
	return calls
}

// A number of owners that is given holds, and each has the same part, whatever other affinities do.
func TestGivenOwners(t *testing.T) {
	now := time.Now()
	for _, c := range []struct{ owners, replicas, want int }{{1, 4, 1}, {2, 4, 2}, {4, 4, 4}, {3, 8, 3}, {6, 4, 4}, {64, 100, 64}} {
		o, g := &Owners{}, standing(c.replicas)
		calls := map[*Target]int{}
		for range 12 * 64 {
			calls[o.Pick(g, serving.Affinity{Key: "hot", Owners: c.owners}, time.Second, nil, now)]++
			o.Pick(g, serving.Affinity{Key: "other", Owners: 2}, time.Second, nil, now)
		}
		for _, n := range calls {
			if len(calls) != c.want || n != 12*64/c.want {
				t.Errorf("%d owners of %d replicas get %v calls", c.owners, c.replicas, calls)
				break
			}
		}
	}
}

// An affinity gets owners while those that it has are busy with it. Others keep one.
func TestOwnersByRate(t *testing.T) {
	o, g, start := &Owners{}, standing(8), time.Now()
	calm, busy := serving.Affinity{Key: "calm"}, serving.Affinity{Key: "busy"}
	second := func(i int) map[*Target]int {
		now := start.Add(time.Duration(i) * time.Second)
		for _, t := range g.targets {
			if i < 2 { // of four owners none is busy any more
				t.replica.load.report(0, 40*time.Millisecond, now)
			}
		}
		if calls := called(o, g, calm, 3, now); len(calls) != 1 {
			t.Fatalf("second %d: an affinity with few calls has %d owners", i, len(calls))
		}
		return called(o, g, busy, 200, now)
	}
	var seen []int
	for i := range 8 {
		seen = append(seen, len(second(i)))
	}
	if want := []int{1, 2, 4, 4, 4, 4, 4, 4}; !slices.Equal(seen, want) {
		t.Errorf("the owners are %v second by second, want %v", seen, want)
	}
	for range 2 * lastCalls {
		o.Pick(g, calm, time.Second, nil, start.Add(10*time.Second))
	}
	if len(o.counts) != 1 || o.shared[fingerprint("busy")] != nil {
		t.Errorf("an affinity without calls is remembered: %v", o.counts)
	}
	for i := range 100_000 {
		o.Pick(g, serving.Affinity{Key: fmt.Sprint(i)}, time.Second, nil, start)
	}
	if len(o.last) != lastCalls || len(o.counts) > lastCalls || len(o.shared) > lastCalls {
		t.Errorf("%d calls, %d affinities and %d shared ones are remembered", len(o.last), len(o.counts), len(o.shared))
	}
}

// TestOwnershipFollowsTheRate has an affinity called at some rate, by a caller who waits when owners
// are at their limit: in the end they are enough, hardly more, and stay so.
func TestOwnershipFollowsTheRate(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		replicas := rapid.IntRange(1, 200).Draw(t, "replicas")
		each := rapid.Float64Range(1, 1000).Draw(t, "calls a second that a replica can do")
		s := &ownership{owners: 1}
		run := func(rate float64, seconds int) (changes int) {
			for i := range seconds {
				n := min(s.owners, replicas)
				most := float64(n) * each
				s.calls, s.busy = int(math.Round(100*min(rate, most))), 0 // of 100 s, as it were
				if rate > 0.9*most {
					s.busy = s.calls
				}
				if s.decide(time.Second, replicas); i > seconds/2 && min(s.owners, replicas) != n {
					changes++
				}
				s.calls, s.busy = 0, 0
			}
			return changes
		}
		for range 3 {
			of := rapid.Float64Range(0.1, 100).Draw(t, "owners' worth of calls")
			changes := run(of*each, 60)
			need := min(int(math.Ceil(of)), replicas, serving.MaxOwners)
			most := min(int(math.Ceil(of/0.9/ownersAim))+1, replicas, serving.MaxOwners)
			if n := min(s.owners, replicas); n < need || n > most {
				t.Fatalf("%d owners for what %v can do, of %d replicas", n, of, replicas)
			}
			if changes > 0 {
				t.Fatalf("%d changes of a number that was reached", changes)
			}
		}
	})
}

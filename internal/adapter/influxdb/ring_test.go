package influxdb

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/topsail-serving/topsail/serving"
)

const testLimit = 1000

// numberedEntry can be told apart, and makes so many points.
func numberedEntry(n, points int) entry {
	return entry{report: &serving.DemandReport{Second: time.Unix(int64(n), 0), Demands: make([]serving.Demand, points-1)}}
}

func number(e entry) int { return int(e.report.Second.Unix()) }

// TestRing takes and gives back at random: what is left in order is a run of the
// newest, within the bound, and what is not there was dropped or taken.
func TestRing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := newRing(testLimit)
		put, gone := 0, 0
		check := func() {
			points := 0
			for i, e := range r.entries {
				if number(e) != put-len(r.entries)+i {
					t.Fatalf("entry %d of %d is number %d of %d", i, len(r.entries), number(e), put)
				}
				points += e.points()
			}
			if points != r.points || (points > testLimit && len(r.entries) > 1) {
				t.Fatalf("%d points, counted as %d", points, r.points)
			}
			if put != gone+int(r.dropped)+len(r.entries) {
				t.Fatalf("%d put, %d taken, %d dropped, %d left", put, gone, r.dropped, len(r.entries))
			}
		}
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			for range rapid.IntRange(0, 5).Draw(t, "puts") {
				r.put(numberedEntry(put, rapid.IntRange(1, testLimit/4).Draw(t, "points")))
				put++
			}
			check()
			limit := rapid.IntRange(1, testLimit).Draw(t, "limit")
			taken := r.take(limit)
			points := 0
			for _, e := range taken {
				points += e.points()
			}
			if points > limit && len(taken) > 1 {
				t.Fatalf("took %d points of %d", points, limit)
			}
			for range rapid.IntRange(0, 3).Draw(t, "puts meanwhile") {
				r.put(numberedEntry(put, rapid.IntRange(1, testLimit/4).Draw(t, "points")))
				put++
			}
			if rapid.Bool().Draw(t, "give back") {
				r.giveBack(taken)
			} else {
				gone += len(taken)
			}
			check()
		}
	})
}

func TestRingKeepsOneThatIsTooLarge(t *testing.T) {
	r := newRing(testLimit)
	r.put(numberedEntry(0, 1))
	r.put(numberedEntry(1, 2*testLimit))
	if taken := r.take(1); len(taken) != 1 || number(taken[0]) != 1 || r.dropped != 1 {
		t.Errorf("took %v, dropped %d", taken, r.dropped)
	}
	if r.len() != 0 || r.points != 0 {
		t.Errorf("%d entries of %d points are left", r.len(), r.points)
	}
}

// BenchmarkPut is what WriteDemand costs while InfluxDB is away and the ring full.
func BenchmarkPut(b *testing.B) {
	r := newRing(testLimit)
	e := numberedEntry(0, 20)
	for range testLimit / 20 {
		r.put(e)
	}
	b.ReportAllocs()
	for b.Loop() {
		r.put(e)
	}
}

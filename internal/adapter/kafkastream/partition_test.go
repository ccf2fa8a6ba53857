package kafkastream

import (
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestPartition has members come and go, each of which reads from what is committed and commits records in
// any order: every record is given out until it is done, and never after that.
func TestPartition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var offsets []int64 // of records: some offsets have none
		for at := rapid.Int64Range(0, 1<<40).Draw(t, "first"); len(offsets) < 60; at += rapid.Int64Range(1, 3).Draw(t, "gap") {
			offsets = append(offsets, at)
		}
		room := rapid.IntRange(len(beyondVersion)+8, 200).Draw(t, "room")
		done, committed, metadata := map[int64]bool{}, int64(-1), ""
		for life := 0; len(done) < len(offsets); life++ {
			p := newPartition(committed, metadata)
			var flying []int64
			next, _ := slices.BinarySearch(offsets, committed)
			for steps := rapid.IntRange(1, 40).Draw(t, "steps"); steps > 0 || life > 20; steps-- {
				if next < len(offsets) && (len(flying) == 0 || rapid.Bool().Draw(t, "poll")) {
					offset := offsets[next]
					next++
					if is := p.take(offset); is == done[offset] {
						t.Fatalf("record %d is given out: %v, and done: %v", offset, is, done[offset])
					}
					if !done[offset] {
						flying = append(flying, offset)
					}
					continue
				}
				if len(flying) == 0 {
					break
				}
				var some []int64
				for i := rapid.IntRange(1, len(flying)).Draw(t, "some"); i > 0; i-- {
					at := rapid.IntRange(0, len(flying)-1).Draw(t, "which")
					some = append(some, flying[at])
					flying = slices.Delete(flying, at, at+1)
				}
				c := p.plan(some, room)
				if len(c.metadata) > room {
					t.Fatalf("%d bytes of metadata, and room for %d", len(c.metadata), room)
				}
				if !rapid.Bool().Draw(t, "fails") {
					p.done(c.records)
					committed, metadata = c.offset, c.metadata
					for _, offset := range c.records {
						done[offset] = true
					}
					some = slices.DeleteFunc(some, func(offset int64) bool { return slices.Contains(c.records, offset) })
				}
				flying = append(flying, some...)
			}
		}
		if last := offsets[len(offsets)-1] + 1; committed > last || committed < last && len(metadata) > 0 {
			t.Fatalf("all is done, and %d is committed, with %q", committed, metadata)
		}
	})
}

// TestLittleRoom leaves for later what the metadata has no room for, and what is behind it.
func TestLittleRoom(t *testing.T) {
	p := newPartition(0, "")
	var odd []int64
	for offset := range int64(1000) {
		p.take(offset)
		if offset%2 == 1 {
			odd = append(odd, offset)
		}
	}
	rand.Shuffle(len(odd), func(i, j int) { odd[i], odd[j] = odd[j], odd[i] })
	c := p.plan(odd, 200)
	if n := len(c.records); c.offset != 0 || len(c.metadata) > 200 || n < 60 || n == len(odd) || c.records[n-1] != int64(2*n-1) {
		t.Errorf("%d records in %d bytes, up to %v", len(c.records), len(c.metadata), c.records)
	}
	if all := p.plan(odd, mostMetadata); len(all.records) != len(odd) {
		t.Errorf("%d of %d records in %d bytes", len(all.records), len(odd), len(all.metadata))
	}
}

// FuzzBeyond reads metadata that anything may have written, and writes what it read.
func FuzzBeyond(f *testing.F) {
	f.Add("", int64(0))
	f.Add("member-1", int64(7))
	f.Add("topsail/2 AQE", int64(7))
	f.Add(encodeBeyond([]extent{{7, 8}, {10, 400}}, 1000), int64(7))
	f.Add(beyondVersion+"AAA", int64(7))
	f.Add(beyondVersion+"gICAgICAgICAAQE", int64(7))
	f.Fuzz(func(t *testing.T, metadata string, committed int64) {
		undone, end := decodeBeyond(metadata, committed)
		at := committed
		for i, e := range undone {
			if e.from != at && i == 0 || e.from < at || e.to <= e.from || e.to >= end {
				t.Fatalf("%v up to %d, from %d", undone, end, committed)
			}
			at = e.to
		}
		if len(undone) == 0 && end != committed {
			t.Fatalf("nothing is undone up to %d, from %d", end, committed)
		}
		again, end2 := decodeBeyond(encodeBeyond(undone, end), committed)
		if !slices.Equal(again, undone) || end2 != end {
			t.Fatalf("%v up to %d, and again %v up to %d", undone, end, again, end2)
		}
	})
}

package kafkastream

import (
	"cmp"
	"slices"
)

// extent is some offsets that follow each other.
type extent struct{ from, to int64 } // to is not in it

// partition is what a member has done of one partition, and what it has not.
type partition struct {
	lost chan struct{} // closed when the partition is no longer the member's

	read     int64            // behind the last record that came; below 0: none has, and none is committed
	known    int64            // behind all that came, to this member or to one before it
	undone   []extent         // below known, in order, with others between them
	inFlight map[int64]extent // what is done with the record of an offset: the offsets before it that have none, too
}

// newPartition is one of which all below an offset is committed, and what the metadata says.
func newPartition(committed int64, metadata string) *partition {
	p := &partition{lost: make(chan struct{}), read: committed, known: committed, inFlight: map[int64]extent{}}
	if committed >= 0 {
		p.undone, p.known = decodeBeyond(metadata, committed)
	}
	return p
}

// take takes in a record. It says false where that was done before.
func (p *partition) take(offset int64) bool {
	behind := offset + 1
	if p.read < 0 {
		p.read, p.known = offset, offset
	}
	own := extent{p.read, behind}
	p.read = behind
	if offset < p.known && !p.isUndone(offset) {
		p.undone = without(p.undone, own)
		return false
	}
	if behind > p.known {
		p.undone = append(p.undone, extent{p.known, behind})
		p.known = behind
		p.merge()
	}
	p.inFlight[offset] = own
	return true
}

// merge makes the last two extents one, where nothing is between them.
func (p *partition) merge() {
	if n := len(p.undone); n > 1 && p.undone[n-2].to == p.undone[n-1].from {
		p.undone[n-2].to = p.undone[n-1].to
		p.undone = p.undone[:n-1]
	}
}

func (p *partition) isUndone(offset int64) bool {
	i, _ := slices.BinarySearchFunc(p.undone, offset, func(e extent, offset int64) int { return cmp.Compare(e.to, offset+1) })
	return i < len(p.undone) && p.undone[i].from <= offset
}

// done notes that the records of some offsets are committed.
func (p *partition) done(offsets []int64) {
	for _, offset := range offsets {
		p.undone = without(p.undone, p.inFlight[offset])
		delete(p.inFlight, offset)
	}
}

// commitment is what to commit of one partition.
type commitment struct {
	*partition
	offset   int64   // all below it is done
	metadata string  // what is done beyond it
	records  []int64 // that are done with it
}

// plan is what to commit when some records are done. What the metadata has no room for is left for later,
// and with it all that is behind.
func (p *partition) plan(records []int64, room int) commitment {
	records = slices.Sorted(slices.Values(records))
	undone := slices.Clone(p.undone)
	for _, offset := range records {
		undone = without(undone, p.inFlight[offset])
	}
	if len(encodeBeyond(undone, p.known)) > room {
		undone = slices.Clone(p.undone)
		for i, offset := range records {
			less := without(slices.Clone(undone), p.inFlight[offset])
			if len(encodeBeyond(less, p.known)) > room {
				records = records[:i]
				break
			}
			undone = less
		}
	}
	c := commitment{partition: p, offset: p.known, metadata: encodeBeyond(undone, p.known), records: records}
	if len(undone) > 0 {
		c.offset = undone[0].from
	}
	return c
}

// without is extents less one, and may change them.
func without(extents []extent, less extent) []extent {
	first, _ := slices.BinarySearchFunc(extents, less.from, func(e extent, from int64) int { return cmp.Compare(e.to, from+1) })
	last := first
	var rest []extent
	for ; last < len(extents) && extents[last].from < less.to; last++ {
		if e := extents[last]; e.from < less.from {
			rest = append(rest, extent{e.from, less.from})
		}
		if e := extents[last]; e.to > less.to {
			rest = append(rest, extent{less.to, e.to})
		}
	}
	return slices.Replace(extents, first, last, rest...)
}

package batch

import (
	"math/bits"
	"time"
)

const (
	// gainFrom is from how many bytes on a batch has to show that its size is of use.
	gainFrom = 4 << 20
	// gainOver is over how many full batches sizes are compared, and gainLeast how much less an input has to take
	// in the larger ones.
	gainOver  = 8
	gainLeast = 0.03
	// gainAgain is after how many refusals a larger size is tried again.
	gainAgain = 256
)

// gain compares what an input takes in full batches of up to 1, 2, 4, 8, … inputs. Batches of tens of megabytes go
// through caches and sockets as a whole, while one processor waits for the other: beyond some size an input takes
// longer in a larger one.
type gain struct {
	each    [17]float64 // seconds, decayed
	seen    [17]int
	refused int
}

func octave(n int) int { return min(bits.Len(uint(n-1)), 16) }

func (g *gain) observe(n int, took time.Duration) {
	i, each := octave(n), took.Seconds()/float64(n)
	if g.seen[i]++; g.seen[i] == 1 {
		g.each[i] = each
	}
	g.each[i] += (each - g.each[i]) / gainOver
}

// useless says whether batches of an octave were compared with those of half the size, and gained nothing.
func (g *gain) useless(i int) bool {
	return i > 0 && i < len(g.seen) && min(g.seen[i], g.seen[i-1]) >= gainOver && g.each[i] > g.each[i-1]*(1-gainLeast)
}

// bound is how far batches of a size may grow after a full one of n took some time, where next is wanted: by an octave
// once this one is known, and back where it is useless. An input has so many bytes.
func (g *gain) bound(n int, took time.Duration, size, next int, bytes float64) int {
	g.observe(n, took)
	if bytes*float64(next) <= gainFrom {
		return next
	}
	i := octave(size)
	if g.useless(i) {
		return 1 << (i - 1)
	}
	if octave(next) > i && g.useless(i+1) {
		if g.refused++; g.refused%gainAgain == 0 {
			g.seen[i+1] = 0
		}
	} else if g.seen[i] >= gainOver {
		i++
	}
	return min(next, 1<<i)
}
